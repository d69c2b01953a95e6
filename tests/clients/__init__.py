"""Other libraries on Tensors: the real ones run here, in the versions that are installed. What is not installed is skipped."""
