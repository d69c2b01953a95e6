"""What every layer uses and nothing of which knows arrays: caches, locks, debug output."""
