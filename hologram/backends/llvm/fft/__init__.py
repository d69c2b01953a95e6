"""Fourier transforms on CPUs: kernels for every radix, and the plans that call them. See docs/internals/fft.md."""
