"""Hologram's programs as differentiable functions of torch's tensors."""
