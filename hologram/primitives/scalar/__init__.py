"""Elementwise ops: those with machine instructions, and those that decompose into them."""
