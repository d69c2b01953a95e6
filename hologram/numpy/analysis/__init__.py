"""Numerical analysis: statistics, calculus, polynomials, window functions, and functions applied along axes."""
