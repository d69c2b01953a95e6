"""Sorts by merging and by digits."""
