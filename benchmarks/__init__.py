"""Hologram's own benchmarks: ``python -m benchmarks.run``."""
