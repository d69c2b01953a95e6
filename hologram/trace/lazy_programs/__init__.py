"""Programs of lazily recorded expressions: which one serves an expression, and how they are kept."""
