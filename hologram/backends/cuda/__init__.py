"""NVIDIA GPUs, through CuPy's bindings of the CUDA runtime, the driver and NVRTC."""
