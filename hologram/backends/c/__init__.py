"""Kernels in dialects of C, for devices."""
