"""Native code between a Python caller and a compiled graph: arguments are matched, the graph runs, results are wrapped."""
