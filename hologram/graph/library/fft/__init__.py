"""Fourier transforms: how lengths are factored, and how much memory transforms take."""
