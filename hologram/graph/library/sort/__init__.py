"""Sort kernels: merge sort and radix sort."""
