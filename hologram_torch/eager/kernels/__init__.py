"""The dispatcher's kernels for the device."""
