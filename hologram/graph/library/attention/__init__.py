"""Attention: pattern matching, nodes and kernels, of the forward pass and of derivatives."""
