"""Functions by element: those of the op table, and those composed of them."""
