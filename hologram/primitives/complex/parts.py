"""Complex numbers: the ops that split and join them, and how other ops act on their parts.

No kernel computes with complex numbers. :mod:`hologram.graph.canonical.complex_split` makes two real values of each, by the ops' ``split``, before a
graph is reduced; what is left are ``real`` and ``imag`` of what a graph reads and ``complex`` of what it gives. ``split(*values, *attrs)`` takes a
:class:`Pair` for each complex input and a builder's value for any other, and gives a Pair, or a value where the result is not complex.

Every product and sum of the parts is rounded by itself, in the order of NumPy's scalar code, and division is Smith's (Algorithm 116, 1962), as
NumPy's, so ``exact`` has their bits. Products do not recover infinities, as in NumPy and unlike in C's Annex G: ``(inf + 0j) * (1 + 0j)`` is
``inf + nan j``. Products of many elements go from left to right, in C order of all reduced axes together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError, ShapeError
from hologram.ir.op import TABLE, Op, Shape, on_complex, register
from hologram.ir.symbolic import prod
from hologram.primitives import indexing, markers, movement, reductions  # noqa: F401, extended here
from hologram.primitives.complex import functions, products
from hologram.primitives.complex.functions import Pair
from hologram.primitives.scalar import composite, elementwise, mathematics  # noqa: F401, extended here
from hologram.primitives.scalar.composite import power_by_squaring
from hologram.primitives.scalar.elementwise import broadcast_shape, cast_reference

_COMPLEX = {dtypes.float32: dtypes.complex64, dtypes.float64: dtypes.complex128}

# --- the ops of complex numbers themselves ---------------------------------------------------------------------------


def _infer_part(name: str) -> Any:
    def infer(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
        (x,) = inputs
        if not x.dtype.is_complex:
            raise DTypeError(f"{name} does not take {x.dtype}")
        return x.shape, dtypes.real_of(x.dtype)

    return infer


def _infer_complex(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    re, im = inputs
    if re.dtype is not im.dtype or re.dtype not in _COMPLEX:
        raise DTypeError(f"complex takes two float32 or two float64, not {re.dtype} and {im.dtype}")
    return broadcast_shape("complex", inputs), _COMPLEX[re.dtype]


def _infer_conj(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    _infer_part("conj")(inputs, attrs)
    return inputs[0].shape, inputs[0].dtype


def join(re: Any, im: Any) -> np.ndarray:
    """The complex array of two real ones, bit for bit."""
    re, im = np.broadcast_arrays(re, im)
    out = np.empty(re.shape, np.result_type(re.dtype, np.complex64))
    out.real, out.imag = re, im
    return out


_PARTS = {"llvm": "parts", "c": "parts"}  # renderers write them
real = register(Op("real", "elementwise", 1, _infer_part("real"), lambda x: x.real, spelling={"c": _PARTS}, split=lambda z: z.re, kinds="c", cost=0))
imag = register(Op("imag", "elementwise", 1, _infer_part("imag"), lambda x: x.imag, spelling={"c": _PARTS}, split=lambda z: z.im, kinds="c", cost=0))
complex_ = register(Op("complex", "elementwise", 2, _infer_complex, join, spelling={"f": _PARTS}, split=Pair, kinds="f", cost=0))
conj = register(Op("conj", "elementwise", 1, _infer_conj, np.conjugate, split=lambda z: Pair(z.re, -z.im), kinds="c"))

# --- ops that act on each part by itself -----------------------------------------------------------------------------


class Each:
    """A ``split`` that does the same to both parts. ``moves``: the op only moves elements, so it can take them whole as well."""

    __slots__ = ("op", "moves")

    def __init__(self, op: Op, moves: bool) -> None:
        self.op, self.moves = op, moves

    def __call__(self, *rest: Any) -> Pair:
        values = [v for v in rest if isinstance(v, Pair) or hasattr(v, "op")]
        return Pair(*(self._part(values, i, rest[len(values) :]) for i in (0, 1)))

    def _part(self, values: list[Any], i: int, attrs: tuple[Any, ...]) -> Any:
        own = [v[i] if isinstance(v, Pair) else v for v in values]
        return own[0].op(self.op.name, *own[1:], attrs=attrs)


def _each_reference(reference: Callable[..., Any]) -> Callable[..., Any]:
    def on_parts(*rest: Any) -> Any:
        parts = [[getattr(v, side) if _is_complex(v) else v for v in rest] for side in ("real", "imag")]
        return join(*(reference(*own) for own in parts))

    return on_parts


# --- attaching -------------------------------------------------------------------------------------------------------


class _Real:
    """An input of the type of a complex one's parts, for an op's own type rule."""

    __slots__ = ("shape", "dtype")

    def __init__(self, x: Any) -> None:
        self.shape, self.dtype = x.shape, dtypes.real_of(x.dtype)


def _is_complex(x: Any) -> bool:
    return getattr(getattr(x, "dtype", None), "kind", "") == "c"


def _inferred(op: Op, real_result: bool) -> Any:
    own = op.infer

    def infer(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
        found = {x.dtype for x in inputs if x.dtype.is_complex}
        if not found:
            return own(inputs, attrs)
        if len(found) > 1 or (op.kind == "elementwise" and op.name != "select" and any(not x.dtype.is_complex for x in inputs)):
            raise DTypeError(f"{op.name}: element types {' and '.join(str(x.dtype) for x in inputs)} differ")
        shape, dtype = own(tuple(_Real(x) for x in inputs), attrs)
        return shape, dtype if real_result or not dtype.is_float else found.pop()

    return infer


def _attach(name: str, split: Callable[..., Any], reference: Callable[..., Any], *, real_result: bool = False, infer: Any = None) -> None:
    op = TABLE[name]
    own = op.reference

    def either(*rest: Any) -> Any:
        if not any(map(_is_complex, rest)):
            return own(*rest)
        with np.errstate(all="ignore"):
            return np.asarray(reference(*rest))

    if hasattr(own, "plain"):
        either.plain = own.plain  # type: ignore[attr-defined]  # of real numbers

    on_complex(op, split, infer or _inferred(op, real_result), either)


def _arithmetic(name: str, formula: Callable[..., Any]) -> None:
    """A formula that holds for the parts of values and of NumPy arrays alike."""

    def reference(*rest: Any) -> Any:
        found = formula(*(Pair(x.real, x.imag) if _is_complex(x) else x for x in rest))
        return join(*found).astype(rest[0].dtype)

    _attach(name, formula, reference)


# --- arithmetic ------------------------------------------------------------------------------------------------------


def _smith(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """NumPy's division, with its steps written out."""
    a, b, c, d = x.real, x.imag, y.real, y.imag
    swapped = np.abs(c) < np.abs(d)
    zero = (c == 0) & (d == 0)
    ratio = np.where(swapped, c, d) / np.where(swapped, d, c)
    scale = 1 / np.where(swapped, d + c * ratio, c + d * ratio)
    re = np.where(swapped, a * ratio + b, a + b * ratio) * scale
    im = np.where(swapped, b * ratio - a, b - a * ratio) * scale
    return join(np.where(zero, a / np.abs(c), re), np.where(zero, b / np.abs(c), im))


def _inverse(x: np.ndarray) -> np.ndarray:
    a, b = x.real, x.imag
    swapped = np.abs(a) < np.abs(b)
    ratio = np.where(swapped, a, b) / np.where(swapped, b, a)
    scale = np.where(swapped, a * ratio + b, a + b * ratio)
    return join(np.where(swapped, ratio, 1) / scale, np.where(swapped, -1, -ratio) / scale)


def _integer_pow(z: Pair, n: int) -> Pair:
    if n == 0:
        return Pair(z.re.const(1), z.re.const(0))
    power = power_by_squaring(z, abs(n))
    return power if n > 0 else functions.reciprocal(power)


def _integer_pow_reference(x: np.ndarray, n: int) -> np.ndarray:
    if n == 0:
        return np.ones_like(x)
    power = join(*power_by_squaring(Pair(x.real, x.imag), abs(n)))
    return power if n > 0 else _inverse(power)


_arithmetic("add", lambda x, y: x + y)
_arithmetic("sub", lambda x, y: x - y)
_arithmetic("mul", lambda x, y: x * y)
_arithmetic("neg", lambda x: -x)
_arithmetic("square", lambda x: x * x)
_attach("div", functions.div, _smith)
_attach("reciprocal", functions.reciprocal, _inverse)
_attach("integer_pow", _integer_pow, _integer_pow_reference)
_attach("eq", lambda x, y: x.re.eq(y.re) & x.im.eq(y.im), np.equal)
_attach("ne", lambda x, y: x.re.ne(y.re) | x.im.ne(y.im), np.not_equal)
for _name in ("isnan", "isinf"):
    _attach(_name, lambda x, name=_name: x.re.op(name) | x.im.op(name), getattr(np, _name))
_attach("isfinite", lambda x: x.re.op("isfinite") & x.im.op("isfinite"), np.isfinite)

# --- casts -----------------------------------------------------------------------------------------------------------


def _infer_cast(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    (x,), to = inputs, dtypes.of(attrs[0])
    if x.dtype.is_complex and to.is_integer:
        raise DTypeError(f"cast from {x.dtype} to {to}: take the real part first")
    return x.shape, to


def _split_cast(x: Any, to: str) -> Any:
    """To a real type the real part is taken; to bool a number is tested against zero."""
    d = dtypes.of(to)
    if not isinstance(x, Pair):
        re = x.cast(dtypes.real_of(d))
        return Pair(re, re.const(0))
    if d.kind == "b":
        return x.re.ne(0) | x.im.ne(0)
    return Pair(x.re.cast(dtypes.real_of(d)), x.im.cast(dtypes.real_of(d))) if d.is_complex else x.re.cast(d)


def _cast_reference(x: np.ndarray, to: str) -> np.ndarray:
    d = dtypes.of(to)
    return cast_reference(x if d.is_complex or d.kind == "b" else x.real, to)


_attach("cast", _split_cast, _cast_reference, infer=_infer_cast)

# --- mathematics -----------------------------------------------------------------------------------------------------


def _wider(f: Callable[..., Any]) -> Callable[..., Any]:
    """References compute in a wider type where there is one, and round."""

    def reference(*xs: np.ndarray) -> Any:
        wide = np.clongdouble if xs[0].dtype.itemsize > 8 else np.complex128
        found = np.asarray(f(*(x.astype(wide) for x in xs)))
        return found.astype(xs[0].dtype if found.dtype.kind == "c" else xs[0].real.dtype)

    return reference


def _log1p(z: np.ndarray) -> np.ndarray:
    """``log|1+z|`` is found from ``|1+z|**2 - 1`` where that is small."""
    x, y = z.real, z.imag
    squares = x * (2 + x) + y * y
    re = np.where(np.abs(squares) < 0.5, np.log1p(squares) / 2, np.log(np.hypot(1 + x, y)))
    return join(re, np.arctan2(y, 1 + x))


def _expm1(z: np.ndarray) -> np.ndarray:
    x, y = z.real, z.imag
    e = np.exp(z)
    return join(np.where(np.isfinite(z), np.expm1(x) * np.cos(y) - 2 * np.sin(y / 2) ** 2, e.real - 1), e.imag)


def _sigmoid(z: np.ndarray) -> np.ndarray:
    left = z.real < 0
    e = np.exp(np.where(left, z, -z))
    y = np.where(left, z, -z).imag
    small = np.expm1(-np.abs(z.real)) * np.cos(y) + 2 * np.cos(y / 2) ** 2
    return np.where(left, e, 1) / join(np.where(np.cos(y) < 0, small, 1 + e.real), e.imag)


def _tanh(z: np.ndarray) -> np.ndarray:
    """At an infinite real part, the imaginary part is a zero of the sign of z's, as the Array API standard has it."""
    found = np.tanh(z)
    return join(found.real, np.where(np.isinf(z.real), np.copysign(0, z.imag), found.imag))


def _tan(z: np.ndarray) -> np.ndarray:
    found = _tanh(join(-z.imag, z.real))  # of i z
    return join(found.imag, -found.real)


def _sign(z: np.ndarray) -> np.ndarray:
    """A NaN in either part makes both NaN, which NumPy leaves open beside an infinity."""
    return np.where(np.isnan(z), z.dtype.type(complex(np.nan, np.nan)), np.sign(z))


_MATHEMATICS: dict[str, Callable[..., Any]] = {
    "sqrt": np.sqrt,
    "rsqrt": lambda z: 1 / np.sqrt(z),
    "exp": np.exp,
    "expm1": _expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": _log1p,
    "sigmoid": _sigmoid,
    "sin": np.sin,
    "cos": np.cos,
    "tan": _tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": _tanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "pow": np.power,
    "sign": _sign,
}
for _name, _reference in _MATHEMATICS.items():
    _attach(_name, getattr(functions, _name), _wider(_reference))
_attach("abs", functions.modulus, _wider(np.abs), real_result=True)

# --- movement, reductions, scans, scatters ---------------------------------------------------------------------------

_MOVES = ("reshape", "transpose", "broadcast", "slice", "pad", "concatenate", "select", "gather", "barrier", "scatter_set")
_LINEAR = ("reduce_sum", "cumsum", "scatter_add")
for _name in _MOVES:
    _op = TABLE[_name]
    on_complex(_op, Each(_op, True), _op.infer, _op.reference)
for _name in _LINEAR:
    _attach(_name, Each(TABLE[_name], False), _each_reference(TABLE[_name].reference))


def _in_turn(x: np.ndarray) -> np.ndarray:
    """Running products along the first axis."""
    out = x.copy()
    for i in range(1, len(x)):
        out[i] = join(*(Pair(out[i - 1].real, out[i - 1].imag) * Pair(x[i].real, x[i].imag)))
    return out


def _product(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    kept = [n for i, n in enumerate(x.shape) if i not in axes]
    count = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
    if count == 0:
        return np.ones(kept, x.dtype)
    return _in_turn(np.moveaxis(x, axes, range(len(axes))).reshape(count, *kept))[-1]


def _running_product(x: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
    front = np.moveaxis(x, axis, 0)
    running = _in_turn(front[::-1])[::-1] if reverse else _in_turn(front)
    return np.ascontiguousarray(np.moveaxis(running, 0, axis))


def _infer_product(op: Op, axes_of: Callable[[tuple[Any, ...]], tuple[int, ...]]) -> Any:
    general = _inferred(op, False)

    def infer(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
        (x,) = inputs
        found = general(inputs, attrs)
        n = prod(x.shape[a] for a in axes_of(attrs))
        if x.dtype.is_complex and not isinstance(n, int):
            raise ShapeError(f"{op.name}: a product of complex numbers along an axis of symbolic extent {n} is not supported")
        return found

    return infer


_attach("reduce_prod", products.product, _product, infer=_infer_product(TABLE["reduce_prod"], lambda attrs: attrs[0]))
_attach("cumprod", products.running_product, _running_product, infer=_infer_product(TABLE["cumprod"], lambda attrs: (attrs[0],)))

__all__ = ["Each", "Pair", "complex_", "conj", "imag", "join", "real"]
