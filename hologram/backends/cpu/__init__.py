"""Programs on the CPU."""
