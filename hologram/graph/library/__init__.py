"""Kernels that are written, not derived from a group: attention and sorts."""
