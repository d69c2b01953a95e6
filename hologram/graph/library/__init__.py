"""Kernels that are written by hand, not derived from a fusion group: attention and sorts."""
