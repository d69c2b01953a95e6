"""Ufuncs: elementwise functions as objects with NumPy's methods ``reduce``, ``accumulate``, ``reduceat``, ``outer`` and ``at``."""
