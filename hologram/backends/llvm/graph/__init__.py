"""The function of a whole graph as an LLVM module: steps in order, loops, branches, and calls of routines of the host."""
