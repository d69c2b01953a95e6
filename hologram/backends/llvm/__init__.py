"""Code for CPUs: kernels and the function of a whole graph as LLVM IR, and that as object code."""
