"""Tensors in other libraries: their memory by buffers and addresses, Arrow arrays, types of Numba."""
