"""Canonical graphs beside the rewrite rules: complex numbers split, bodies of control flow reduced, loops fused, distributed and split."""
