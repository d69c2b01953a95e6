"""Values that cross between torch and Hologram: element types, memory on the CPU and on CUDA devices, strided views, threads."""
