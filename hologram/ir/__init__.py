"""The graph IR: nodes, op definitions, shapes and types, text, traversals, and the reference interpreter."""
