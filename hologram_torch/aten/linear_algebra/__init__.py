"""Rows of products, factorizations, Fourier transforms and distances."""
