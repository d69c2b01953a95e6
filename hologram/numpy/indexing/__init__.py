"""Indexing: views, reads, functional updates, assignment, and grids of indices."""
