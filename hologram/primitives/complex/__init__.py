"""Complex numbers: their ops, how other ops split into real and imaginary parts, and functions of a complex variable."""
