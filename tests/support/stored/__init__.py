"""Helpers for what Hologram keeps in files."""
