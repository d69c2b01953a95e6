"""What numbers are made of: bits, significands and exponents, divisors."""
