"""Arguments of public functions: found by introspection, drawn by the names of parameters.

:data:`BY_NAME` says what a parameter of a name is. A function whose arguments depend on one another in another way than by broadcasting has a
drawer of its own (:mod:`drawers`). What can be drawn in neither way is reported as never reached, with the parameter's name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hologram import dtypes

from . import values
from .catalogue import parameters
from .draft import Draft, Refused, Value
from .drawers import arrays, linalg, nn, random  # noqa: F401, each registers what it draws
from .drawers.common import DRAWERS, index_array, without_phase
from .program import DType


class Call:
    """One call while its arguments are drawn: ``x`` is its first array, on which others depend."""

    def __init__(self, draft: Draft, function: str) -> None:
        self.d, self.function = draft, function
        self.x: Value | None = None

    @property
    def kinds(self) -> str:
        return "biufc"

    def array(self) -> Value:
        v = self.d.array(self.kinds) if self.x is None else self.d.mate(self.x, self.kinds)
        self.x = self.x or v
        return v

    @property
    def of(self) -> Value:
        if self.x is None:
            self.x = self.d.array(self.kinds)
        return self.x


def _axis(c: Call) -> int:
    n = len(c.of.shape)
    if n == 0:
        raise Refused("no axis")
    return c.d.integer(-n, n - 1)


def _axes(c: Call) -> Any:
    """An axis, several, or None."""
    n = len(c.of.shape)
    if c.d.chance(0.2) or n == 0:
        return None
    if c.d.chance(0.6):
        return _axis(c)
    count = c.d.integer(0 if c.d.chance(0.1) else 1, n)
    return tuple(int(a) - (n if c.d.chance(0.3) else 0) for a in c.d.rng.permutation(n)[:count])


def _axis_like(c: Call) -> Any:
    name = c.function.partition(".")[2]
    one = {"argmax", "argmin", "cumsum", "cumprod", "sort", "argsort", "diff", "flatnonzero", "repeat", "take", "nanargmax", "nanargmin", "cummax"}
    single = one | {"cummin", "cumulative_sum", "cumulative_prod", "nancumsum", "nancumprod", "glu", "unwrap", "trapezoid", "stack", "concatenate"}
    single |= {"concat", "split", "array_split", "insert", "delete", "append", "take_along_axis", "partition", "argpartition", "rollaxis", "compress"}
    single |= {"fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "vecdot", "cross", "shuffle", "permutation", "categorical", "unstack", "one_hot"}
    return _axis(c) if name in single or c.d.chance(0.6) else _axes(c)


def _scalar(c: Call) -> Any:
    d = c.d
    kind = c.of.kind
    if kind in "iu":
        return d.integer(0 if kind == "u" else -4, 7)
    return d.pick((0, 1, -1.5, 2.0, 0.25, 3)) if kind != "b" else d.chance(0.5)


def _where(c: Call) -> Any:
    shape = c.of.shape
    found = c.d.choose(lambda v: v.kind == "b" and v.shape == shape)
    return found or c.d.fresh("bool", shape, "tame", "plain")


def _dtype(c: Call) -> DType:
    kind = c.x.kind if c.x is not None else "f"
    if kind == "c":
        return DType(c.d.pick(("complex64", "complex128")))
    return DType(c.d.pick([t for t in values.DTYPES if kind not in "f" or dtypes.of(t).kind in "fc"]))


def _shape(c: Call) -> tuple[int, ...]:
    return c.d.shape(most=2000)


def _small(low: int, high: int) -> Callable[[Call], int]:
    return lambda c: c.d.integer(low, high)


def _flag(c: Call) -> bool:
    return c.d.chance(0.5)


def _float(low: float, high: float) -> Callable[[Call], float]:
    return lambda c: round(float(c.d.rng.uniform(low, high)), 3)


def _one_of(*options: Any) -> Callable[[Call], Any]:
    return lambda c: c.d.pick(options)


def _indices(c: Call) -> Any:
    return index_array(c.d, max(1, c.of.array.size))


def _pair_of_arrays(c: Call) -> Value:
    return c.array()


def _norm_order(c: Call) -> Any:
    return c.d.pick((1, 2, float("inf"), -1, 3))


BY_NAME: dict[str, Callable[[Call], Any]] = {
    **dict.fromkeys(("x", "x1", "x2", "a", "b", "y", "arr", "data", "p", "q", "logits", "predictions", "targets", "values", "labels"), Call.array),
    **dict.fromkeys(("condition", "x0"), Call.array),
    "axis": _axis_like,
    "axes": _axes,
    "axis1": _axis,
    "axis2": _axis,
    "source": _axis,
    "destination": _axis,
    **dict.fromkeys(("keepdims", "invert", "right", "rowvar", "bias", "increasing", "descending", "reverse", "include_initial", "deg"), _flag),
    **dict.fromkeys(("endpoint", "is_causal", "approximate", "equal_nan", "upper", "wrap", "stable", "return_counts", "sparse"), _flag),
    "where": _where,
    "initial": lambda c: c.d.integer(-3, 3) if c.of.kind in "if" else c.d.integer(0, 3),
    "dtype": _dtype,
    "shape": _shape,
    "dimensions": lambda c: c.d.shape(c.d.integer(1, 3), 1000),
    "fill_value": _scalar,
    **dict.fromkeys(("k", "offset"), _small(-3, 3)),
    **dict.fromkeys(("n", "N", "M", "n_rows", "n_cols", "num", "num_classes", "m", "ndim"), _small(1, 12)),
    "decimals": _small(-1, 3),
    "shift": lambda c: c.d.pick((1, -1, 2, 3, -5, 17, 0)),
    "repeats": _small(0, 4),
    "repetitions": lambda c: c.d.pick((2, 3, (2,), (1, 2), (2, 1, 3), (0,), 1)),
    "sections": _small(1, 4),
    "indices": _indices,
    "mode": lambda c: "clip" if c.function == "numpy.take" else c.d.pick(("full", "valid", "same")),
    "min": lambda c: c.d.pick((None, -1, 0)) if c.of.kind not in "u" else 0,
    "max": lambda c: c.d.pick((1, 2, 3)),
    "correction": _one_of(0, 1, 0.5),
    "ddof": _one_of(0, 1),
    "rtol": _one_of(1e-5, 1e-3),
    "atol": _one_of(1e-8, 1e-3),
    "start": _float(-3.0, 3.0),
    "stop": _float(4.0, 9.0),
    "step": _one_of(1, 0.5, 2),
    "base": _one_of(2.0, 10.0),
    "beta": _float(0.5, 8.0),
    "ord": _norm_order,
    "norm": _one_of("backward", "ortho", "forward"),
    "d": _float(0.5, 2.0),
    "s": lambda c: None,
    **dict.fromkeys(("alpha", "delta", "negative_slope"), _float(0.1, 1.5)),
    "epsilon": _one_of(1e-5, 1e-3),
    "reduction": _one_of("mean", "sum", "none"),
    "nan": _one_of(0.0, 1.5),
    "posinf": _one_of(9.0, None),
    "neginf": _one_of(-9.0, None),
    "dx": _one_of(1.0, 0.5),
    "indexing": _one_of("xy", "ij"),
    "bitorder": _one_of("big", "little"),
    "order": _one_of("C", "F"),
    "method": _one_of("linear", "lower", "higher", "nearest", "midpoint"),
    "UPLO": _one_of("L", "U"),
    "side": _one_of("left", "right"),
    "minlength": _small(0, 9),
    "bins": _small(1, 9),
    "density": _flag,
    "discont": _float(1.0, 4.0),
    "period": _float(3.0, 7.0),
    "length": _small(1, 12),
    "size": _small(1, 40),
    "preferred_element_type": _dtype,
    "rows": _one_of(None, 2, 3),
    "count": _small(1, 20),
    "prepend": lambda c: _scalar(c),
    "append": lambda c: _scalar(c),
    "to_end": _scalar,
    "to_begin": _scalar,
    "copy": _one_of(True, None),
    "device": lambda c: None,
    "left": _float(-1.0, 1.0),
    "right_": _float(-1.0, 1.0),
}

POSITIVE_FIRST = {"numpy.bincount": "u"}
KINDS_OF = {  # kinds of the first array that are worth trying; the others are refused anyway
    "numpy.packbits": "bu",
    "numpy.unpackbits": "u",
    "numpy.bincount": "u",
    "nn": "f",
    "special": "f",
    "fft": "fc",
    "linalg": "fc",
}


def draw(d: Draft, function: str) -> list[Value]:
    """Adds a step that calls ``function``. Raises Refused where no arguments were found that it takes."""
    if function in DRAWERS:
        return DRAWERS[function](d)
    call = Call(d, function)
    kinds = KINDS_OF.get(function) or KINDS_OF.get(function.partition(".")[0])
    if kinds and d.chance(0.9):
        call.x = None
        first = d.array(kinds)
        args: list[Any] = [first]
        call.x = first
    else:
        args = []
    options: dict[str, Any] = {}
    for i, p in enumerate(parameters(function)):
        if i < len(args) and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            continue
        if p.kind is p.VAR_POSITIONAL:
            args += [call.array() for _ in range(d.integer(1, 3))]
        elif p.kind is p.VAR_KEYWORD:
            continue
        elif p.default is p.empty or d.chance(0.3):
            drawer = BY_NAME.get(p.name)
            if drawer is None:
                if p.default is p.empty:
                    raise Refused(f"nothing is known of the parameter {p.name}")
                continue
            value = drawer(call)
            if p.default is p.empty or (p.kind is p.POSITIONAL_ONLY and i == len(args)):
                args.append(value)
            elif p.kind is not p.POSITIONAL_ONLY:
                options[p.name] = value
    return without_phase(d, function, d.emit(function, *args, **options))
