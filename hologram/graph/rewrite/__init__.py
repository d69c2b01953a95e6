"""The rewrite engine, its patterns, and the rules."""
