"""Mathematical functions as straight-line scalar code, which renderers make as wide as the machine's vectors.

Every function takes and gives float32 or float64 Values, is right to 2 ULP for every finite argument with or without FMA, and follows
C99 for zeros, infinities and NaN. Nothing here reads memory: range reduction is arithmetic, approximations are the polynomials of
``coefficients.py``. Work that ordinary arguments do not need stands in ``Value.rare``.
"""

from hologram.primitives.vector_math.error_function import erf, erfc, erfinv
from hologram.primitives.vector_math.exponential import cosh, exp, exp2, expm1, sigmoid, sinh, tanh
from hologram.primitives.vector_math.inverse_trigonometric import acos, asin, atan, atan2
from hologram.primitives.vector_math.logarithm import acosh, asinh, atanh, log, log1p, log2, log10
from hologram.primitives.vector_math.power import cbrt, hypot, pow, rsqrt
from hologram.primitives.vector_math.trigonometric import cos, sin, tan

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "hypot",
    "log",
    "log10",
    "log1p",
    "log2",
    "pow",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "tan",
    "tanh",
]
