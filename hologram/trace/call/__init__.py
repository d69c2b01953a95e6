"""Calls of jitted functions: signatures, tracing a call, specialisations, and what serves calls natively."""
