"""Lowering: fusion groups become kernel IR, by scalarization, loop nests and code placement."""
