"""Products of matrices and tensors, and the order in which several are multiplied."""
