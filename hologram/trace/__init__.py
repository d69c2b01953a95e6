"""Tensors, recording, laziness, jit and dispatch."""
