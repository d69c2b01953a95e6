"""What errors and warnings say of traced values: where they come from, what made the first NaN, NumPy scalars that widen arrays."""
