"""OpenCL devices, through PyOpenCL."""
