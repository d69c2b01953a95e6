"""Fusion: which values are materialized, and which are computed together in one kernel."""
