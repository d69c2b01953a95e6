"""What other libraries are told about Tensors when they are imported: one module for each, with a function ``register``."""
