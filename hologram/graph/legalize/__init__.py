"""Legalization: reductions, scans, convolutions, sorts and scatters in the forms that kernels have."""
