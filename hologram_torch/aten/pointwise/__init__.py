"""Rows of element-wise ops."""
