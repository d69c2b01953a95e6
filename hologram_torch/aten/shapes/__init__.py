"""Rows of ops that create, move and index elements."""
