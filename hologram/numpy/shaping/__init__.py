"""Shapes: axes reordered, added and broadcast, arrays joined, borders."""
