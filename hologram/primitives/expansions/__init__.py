"""Mathematical functions as straight-line scalar code, which renderers make as wide as the machine's vectors.

Every function takes and gives float32 or float64 Values, is right to 2 ULP for every finite argument with or without FMA, and follows
C99 for zeros, infinities and NaN. Nothing here reads memory: range reduction is arithmetic, approximations are the polynomials of
``coefficients.py``, where the error of each stands. Work that ordinary arguments do not need stands in ``Value.rare``.

Largest errors seen, in ULP, with or without FMA, whichever is the larger (``benchmarks/vector_math.py`` measures them):

======== ======= =======   ======== ======= =======   ======== ======= =======   ======== ======= =======
function float32 float64   function float32 float64   function float32 float64   function float32 float64
======== ======= =======   ======== ======= =======   ======== ======= =======   ======== ======= =======
acos     1.12    1.06      cbrt     0.83    0.67      exp2     1.03    1.05      pow      1.13    1.41
acosh    1.82    1.75      cos      1.47    1.47      expm1    1.17    1.09      rsqrt    1.50    1.50
asin     1.66    1.57      cosh     1.10    1.09      hypot    1.18    1.15      sigmoid  1.98    1.99
asinh    1.70    1.55      erf      1.82    1.35      log      0.89    0.81      sin      1.47    1.47
atan     1.42    1.58      erfc     1.40    1.61      log10    0.80    0.76      sinh     1.38    1.38
atan2    1.51    1.55      erfinv   1.99    1.83      log1p    1.45    0.93      tan      1.37    1.29
atanh    1.36    1.23      exp      1.03    0.99      log2     0.96    0.94      tanh     1.71    1.84
======== ======= =======   ======== ======= =======   ======== ======= =======   ======== ======= =======
"""

from hologram.primitives.expansions.error_function import erf, erfc, erfinv
from hologram.primitives.expansions.exponential import cosh, exp, exp2, expm1, sigmoid, sinh, tanh
from hologram.primitives.expansions.inverse_trigonometric import acos, asin, atan, atan2
from hologram.primitives.expansions.logarithm import acosh, asinh, atanh, log, log1p, log2, log10
from hologram.primitives.expansions.power import cbrt, hypot, pow, rsqrt
from hologram.primitives.expansions.trigonometric import cos, sin, tan

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
