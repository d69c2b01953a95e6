"""Indexing: views, reads, functional updates, and assignment."""
