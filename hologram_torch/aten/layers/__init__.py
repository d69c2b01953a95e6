"""Rows of the layers of neural networks."""
