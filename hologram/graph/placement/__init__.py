"""Device placement: which device runs which part of a graph."""
