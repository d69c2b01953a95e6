"""Canonicalization beside the rewrite rules: complex splitting, control-flow simplification, loop fusion, distribution and invariant motion."""
