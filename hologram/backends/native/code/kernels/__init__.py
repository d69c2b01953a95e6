"""Kernels that are native code of the runtime, the same for every program: sorts, and drivers of LAPACK."""
