"""Attention and what is like it: how it is found, and its kernels."""
