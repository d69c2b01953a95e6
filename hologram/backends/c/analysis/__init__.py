"""What kernels are, before they are written: their accesses, products, tiles, vectors, and what matrix units take."""
