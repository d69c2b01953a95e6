"""Which device runs which part of a graph."""
