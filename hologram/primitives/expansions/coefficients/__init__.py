"""Polynomials of the decompositions: minimax tables, a file for each family of functions. See ``tools/minimax.py``."""
