"""Programs that solve equations: flows, fixed points."""
