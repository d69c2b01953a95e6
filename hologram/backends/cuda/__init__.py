"""NVIDIA GPUs, through CuPy's bindings of the CUDA runtime, the driver and NVRTC."""

from hologram.backends.cuda import executable  # attaches itself to the devices

__all__ = ["executable"]
