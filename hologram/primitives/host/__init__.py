"""Host ops: factorizations, Fourier transforms and callbacks, which routines outside of kernels run."""
