"""``device="hologram"``: tensors whose ops are recorded, and compiled and run when a value is read."""
