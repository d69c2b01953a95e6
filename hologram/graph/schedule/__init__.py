"""Scheduling: the loop nests of kernels, with their tiles, vectors, unrolling and interleaving."""
