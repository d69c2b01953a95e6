"""Loop nests: order, tiles, vectors, unrolling, interleaved rows."""
