"""Elements rearranged: rolled, flipped, repeated, inserted, put together from parts and on grids."""
