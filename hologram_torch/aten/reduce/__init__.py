"""Rows of reductions, scans, sorts and order statistics."""
