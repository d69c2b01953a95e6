"""Constant folding of arrays, and prepacking of the operands of products before loops."""
