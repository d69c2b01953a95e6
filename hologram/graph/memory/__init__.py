"""Addresses of all buffers in one arena, and their verifier."""
