"""What functions made from rows of the op table say of themselves: what is computed, and an example with its result.

Types and errors follow from the row: :func:`docstring` writes them down.
"""

from __future__ import annotations

from textwrap import fill

from hologram import dtypes
from hologram.ir.aval import aval
from hologram.ir.op import Op

# by the function's first name: its first line, a call, the call's result
TEXTS = {
    "add": ('Sum ``x1 + x2``; integers wrap around, bool is "or".', "hnp.add([1, 2], 0.5)", "Tensor([1.5, 2.5], dtype=float32)"),
    "subtract": ("Difference ``x1 - x2``; integers wrap around.", "hnp.subtract([1, 2], [3, 1])", "Tensor([-2,  1], dtype=int64)"),
    "multiply": ('Product ``x1 * x2``; integers wrap around, bool is "and".', "hnp.multiply([1, 2, 3], 10)", "Tensor([10, 20, 30], dtype=int64)"),
    "divide": (
        "True quotient ``x1 / x2``; by zero an infinity or NaN, without a warning.",
        "hnp.divide([1, -1, 0], 0)",
        "Tensor([ inf, -inf,  nan], dtype=float32)",
    ),
    "negative": ("Negation ``-x``; unsigned integers wrap around.", "hnp.negative([1.5, -2.0])", "Tensor([-1.5,  2. ], dtype=float32)"),
    "abs": (
        "Absolute value of each element; of a complex number its modulus, which is real.",
        "hnp.abs([3 + 4j, -1])",
        "Tensor([5., 1.], dtype=float32)",
    ),
    "sqrt": (
        "Square root; NaN below zero, for complex numbers the principal one.",
        "hnp.sqrt([4.0, 2.0, -1.0])",
        "Tensor([2.       , 1.4142135,       nan], dtype=float32)",
    ),
    "copysign": (
        "Magnitude of ``x1`` with the sign of ``x2``, that of zeros and NaN included.",
        "hnp.copysign([1.0, 2.0], [-0.0, 3.0])",
        "Tensor([-1.,  2.], dtype=float32)",
    ),
    "maximum": (
        "Larger of two elements; NaN where either is NaN, and 0.0 for -0.0 and 0.0.",
        "hnp.maximum([1.0, hnp.nan, 3.0], 2.0)",
        "Tensor([ 2., nan,  3.], dtype=float32)",
    ),
    "minimum": (
        "Smaller of two elements; NaN where either is NaN, and -0.0 for -0.0 and 0.0.",
        "hnp.minimum([1.0, hnp.nan, 3.0], 2.0)",
        "Tensor([ 1., nan,  2.], dtype=float32)",
    ),
    "floor": ("Largest whole number not above ``x``.", "hnp.floor([-1.5, 1.5])", "Tensor([-2.,  1.], dtype=float32)"),
    "ceil": ("Smallest whole number not below ``x``.", "hnp.ceil([-1.5, 1.5])", "Tensor([-1.,  2.], dtype=float32)"),
    "trunc": ("Whole part of ``x``: rounding towards zero.", "hnp.trunc([-1.5, 1.5])", "Tensor([-1.,  1.], dtype=float32)"),
    "rint": (
        "Nearest whole number, of two the even one; both parts of complex numbers.",
        "hnp.rint([0.5, 1.5, 2.6])",
        "Tensor([0., 2., 3.], dtype=float32)",
    ),
    "equal": ("Whether ``x1 == x2``; NaN equals nothing.", "hnp.equal([1, 2], [1, 3])", "Tensor([ True, False], dtype=bool)"),
    "not_equal": ("Whether ``x1 != x2``; True with NaN.", "hnp.not_equal([1, 2], [1, 3])", "Tensor([False,  True], dtype=bool)"),
    "less": ("Whether ``x1 < x2``; False with NaN.", "hnp.less([1, 2, 3], 2)", "Tensor([ True, False, False], dtype=bool)"),
    "less_equal": ("Whether ``x1 <= x2``; False with NaN.", "hnp.less_equal([1, 2, 3], 2)", "Tensor([ True,  True, False], dtype=bool)"),
    "greater": ("Whether ``x1 > x2``; False with NaN.", "hnp.greater([1, 2, 3], 2)", "Tensor([False, False,  True], dtype=bool)"),
    "greater_equal": ("Whether ``x1 >= x2``; False with NaN.", "hnp.greater_equal([1, 2, 3], 2)", "Tensor([False,  True,  True], dtype=bool)"),
    "bitwise_and": ("Bitwise ``x1 & x2``; of bool the logical one.", "hnp.bitwise_and([12, 7], 10)", "Tensor([8, 2], dtype=int64)"),
    "bitwise_or": ("Bitwise ``x1 | x2``; of bool the logical one.", "hnp.bitwise_or([12, 7], 10)", "Tensor([14, 15], dtype=int64)"),
    "bitwise_xor": ("Bitwise exclusive or ``x1 ^ x2``; of bool the logical one.", "hnp.bitwise_xor([12, 7], 10)", "Tensor([ 6, 13], dtype=int64)"),
    "invert": ("Bitwise complement ``~x``; of bool the logical one.", "hnp.invert([0, 5])", "Tensor([-1, -6], dtype=int64)"),
    "floor_divide": (
        "Quotient rounded down, ``x1 // x2``; of integers by zero 0.",
        "hnp.floor_divide([7, -7, 7], [2, 2, 0])",
        "Tensor([ 3, -4,  0], dtype=int64)",
    ),
    "remainder": (
        "Remainder with the sign of the divisor, ``x1 % x2``; of integers by zero 0.",
        "hnp.remainder([7, -7, 7], [3, 3, 0])",
        "Tensor([1, 2, 0], dtype=int64)",
    ),
    "fmod": (
        "Remainder with the sign of the dividend, as C's; of integers by zero 0.",
        "hnp.fmod([7, -7, 7], [3, 3, 0])",
        "Tensor([ 1, -1,  0], dtype=int64)",
    ),
    "left_shift": (
        "``x1 << x2``: bits moved up; 0 for counts that are negative or not below the width.",
        "hnp.left_shift([1, 3], 2)",
        "Tensor([ 4, 12], dtype=int64)",
    ),
    "right_shift": (
        "``x1 >> x2``: bits moved down, copies of the sign coming in; a count beyond the width leaves the sign alone.",
        "hnp.right_shift([8, -8], 2)",
        "Tensor([ 2, -2], dtype=int64)",
    ),
    "sign": (
        "Sign of each element: -1, 0, 1 or NaN; of a complex number ``x / abs(x)``, of 0 itself.",
        "hnp.sign([-2.5, 0.0, 7.0])",
        "Tensor([-1.,  0.,  1.], dtype=float32)",
    ),
    "signbit": (
        "Whether the sign bit is set: of negative numbers, and of -0.0.",
        "hnp.signbit([-0.0, 0.0, -1.0])",
        "Tensor([ True, False,  True], dtype=bool)",
    ),
    "isnan": ("Whether an element is NaN; of a complex number whether a part is.", "hnp.isnan([1.0, hnp.nan])", "Tensor([False,  True], dtype=bool)"),
    "isinf": (
        "Whether an element is an infinity; of a complex number whether a part is.",
        "hnp.isinf([1.0, -hnp.inf])",
        "Tensor([False,  True], dtype=bool)",
    ),
    "isfinite": (
        "Whether an element is neither infinite nor NaN.",
        "hnp.isfinite([1.0, hnp.inf, hnp.nan])",
        "Tensor([ True, False, False], dtype=bool)",
    ),
    "heaviside": (
        "Step function: 0 below zero, 1 above, ``x2`` at zero.",
        "hnp.heaviside([-1.0, 0.0, 2.0], 0.5)",
        "Tensor([0. , 0.5, 1. ], dtype=float32)",
    ),
    "nextafter": (
        "Next representable number from ``x1`` towards ``x2``.",
        "hnp.nextafter(np.float32(1), 2) - 1",
        "Tensor(1.1920929e-07, dtype=float32)",
    ),
    "square": ("Square ``x * x``; integers wrap around.", "hnp.square([3, -4])", "Tensor([ 9, 16], dtype=int64)"),
    "reciprocal": (
        "Reciprocal ``1 / x``; unlike NumPy's that of integers is a float.",
        "hnp.reciprocal([2, 4])",
        "Tensor([0.5 , 0.25], dtype=float32)",
    ),
    "exp": ("Exponential function, e to the power ``x``.", "hnp.exp([0.0, 1.0])", "Tensor([1.       , 2.7182817], dtype=float32)"),
    "exp2": ("2 to the power ``x``.", "hnp.exp2([0.0, 3.0])", "Tensor([1., 8.], dtype=float32)"),
    "expm1": ("``exp(x) - 1``, accurate near zero.", "hnp.expm1([0.0, 1e-6])", "Tensor([0.0000000e+00, 1.0000005e-06], dtype=float32)"),
    "log": ("Natural logarithm; -inf at zero, NaN below.", "hnp.log([1.0, 2.0, 0.0])", "Tensor([0.       , 0.6931472,      -inf], dtype=float32)"),
    "log2": ("Logarithm to base 2; -inf at zero, NaN below.", "hnp.log2([1.0, 8.0])", "Tensor([0., 3.], dtype=float32)"),
    "log10": ("Logarithm to base 10; -inf at zero, NaN below.", "hnp.log10([1.0, 1000.0])", "Tensor([0., 3.], dtype=float32)"),
    "log1p": ("``log(1 + x)``, accurate near zero.", "hnp.log1p([0.0, 1e-6])", "Tensor([0.000000e+00, 9.999995e-07], dtype=float32)"),
    "sin": ("Sine of an angle in radians.", "hnp.sin([0.0, hnp.pi / 2])", "Tensor([0., 1.], dtype=float32)"),
    "cos": ("Cosine of an angle in radians.", "hnp.cos([0.0, hnp.pi])", "Tensor([ 1., -1.], dtype=float32)"),
    "tan": ("Tangent of an angle in radians.", "hnp.tan([0.0, 1.0])", "Tensor([0.       , 1.5574077], dtype=float32)"),
    "asin": (
        "Inverse sine in radians, from -π/2 to π/2; NaN beyond -1 and 1.",
        "hnp.asin([0.0, 1.0])",
        "Tensor([0.       , 1.5707964], dtype=float32)",
    ),
    "acos": ("Inverse cosine in radians, from 0 to π; NaN beyond -1 and 1.", "hnp.acos([1.0, 0.0])", "Tensor([0.       , 1.5707964], dtype=float32)"),
    "atan": ("Inverse tangent in radians, from -π/2 to π/2.", "hnp.atan([0.0, 1.0])", "Tensor([0.       , 0.7853981], dtype=float32)"),
    "atan2": (
        "Angle in radians, from -π to π, of the point with the ordinate ``x1`` and the abscissa ``x2``.",
        "hnp.atan2([1.0, -1.0], [1.0, -1.0])",
        "Tensor([ 0.7853981, -2.3561945], dtype=float32)",
    ),
    "sinh": ("Hyperbolic sine.", "hnp.sinh([0.0, 1.0])", "Tensor([0.       , 1.1752012], dtype=float32)"),
    "cosh": ("Hyperbolic cosine.", "hnp.cosh([0.0, 1.0])", "Tensor([1.       , 1.5430806], dtype=float32)"),
    "tanh": ("Hyperbolic tangent.", "hnp.tanh([0.0, 1.0])", "Tensor([0.       , 0.7615941], dtype=float32)"),
    "asinh": ("Inverse hyperbolic sine.", "hnp.asinh([0.0, 1.0])", "Tensor([0.       , 0.8813736], dtype=float32)"),
    "acosh": ("Inverse hyperbolic cosine; NaN below 1.", "hnp.acosh([1.0, 2.0])", "Tensor([0.      , 1.316958], dtype=float32)"),
    "atanh": (
        "Inverse hyperbolic tangent; infinite at -1 and 1, NaN beyond.",
        "hnp.atanh([0.0, 0.5])",
        "Tensor([0.        , 0.54930615], dtype=float32)",
    ),
    "erf": ("Error function; :mod:`hologram.special` has its kin.", "hnp.erf([0.0, 1.0])", "Tensor([0.       , 0.8427008], dtype=float32)"),
    "erfc": (
        "Complementary error function ``1 - erf(x)``, accurate for large ``x``.",
        "hnp.erfc([0.0, 5.0])",
        "Tensor([1.0000000e+00, 1.5374598e-12], dtype=float32)",
    ),
    "sigmoid": (
        "Logistic function ``1 / (1 + exp(-x))``; no overflow.",
        "hnp.sigmoid([-10.0, 0.0, 2.0])",
        "Tensor([4.5397872e-05, 5.0000000e-01, 8.8079703e-01], dtype=float32)",
    ),
    "rsqrt": ("Reciprocal of the square root, ``1 / sqrt(x)``.", "hnp.rsqrt([4.0, 0.25])", "Tensor([0.5, 2. ], dtype=float32)"),
    "cbrt": ("Real cube root, of negative numbers too.", "hnp.cbrt([8.0, -27.0])", "Tensor([ 2., -3.], dtype=float32)"),
    "hypot": ("Length ``sqrt(x1**2 + x2**2)``, without overflow between.", "hnp.hypot(3.0, [4.0, 0.0])", "Tensor([5., 3.], dtype=float32)"),
}

_NAMES = {"b": "bool", "f": "floats", "c": "complex numbers"}


def docstring(op: Op, names: tuple[str, ...], *, keeps_integers: bool, takes_complex: bool) -> str | None:
    """The docstring of the function that computes ``op`` and is called by any of ``names``; None for one that is written elsewhere.

    Beyond what the row says, the function may give integers back as they are, and take complex numbers.
    """
    if names[0] not in TEXTS:
        return None
    meaning, call, result = TEXTS[names[0]]
    refused = [_NAMES[kind] for kind in _refused(op, takes_complex)]
    errors = [f"DTypeError for {_listed(refused)}"] if refused else []
    if op.arity == 2:
        errors.append("ShapeError where the shapes do not broadcast")
    raises = f" Raises {', '.join(errors)}." if errors else ""
    others = [f"``{name}``" for name in dict.fromkeys(names[1:]) if name != names[0]]
    also = f" Also called {_listed(others)}." if others else ""
    facts = fill(f"{_result(op, keeps_integers)}{raises}{also}", 120)
    return f"{meaning}\n\n{facts}\n\n>>> {call}\n{result}\n"


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _result(op: Op, keeps_integers: bool) -> str:
    """Shape and type of the result, in words."""
    shape, common = ("``x1`` and ``x2`` broadcast.", "their common type") if op.arity == 2 else ("Any shape.", "the type of ``x``")
    if _gives_bool(op):
        return f"{shape} The result is bool."
    if keeps_integers:
        return f"{shape} The result has {common}; bool and integers are themselves."
    if _widens(op):
        return f"{shape} The result has {common}; bool and integers become float32, in NumPy mostly float64."
    return f"{shape} The result has {common}."


def _gives_bool(op: Op) -> bool:
    operand = aval(dtypes.float32 if "f" in op.kinds else dtypes.int64, ())
    return op.infer((operand,) * (op.arity or 1), ())[1] is dtypes.bool_


def _widens(op: Op) -> bool:
    """Whether bool and integers are computed as floats."""
    return "f" in op.kinds and "i" not in op.kinds


def _refused(op: Op, takes_complex: bool) -> list[str]:
    """The kinds of types that the function does not take."""
    taken = set(op.kinds) | ({"b"} if _widens(op) else set()) | ({"c"} if takes_complex else set())
    return [kind for kind in _NAMES if kind not in taken]
