"""Arguments of public functions: found by introspection, drawn by the names of parameters.

:data:`BY_NAME` says what a parameter of a name is. A function whose arguments depend on one another in another way than by broadcasting has a
drawer of its own in :data:`DRAWERS`. What can be drawn in neither way is reported as never reached, with the parameter's name.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from hologram import dtypes

from . import values
from .draft import Draft, Refused, Value
from .program import DType, Literal
from .worlds import MODULES, hologram_function

# public functions that are not steps of a traced program, and why
NOT_STEPS = {
    "numpy.__array_namespace_info__": "no arrays",
    "numpy.from_dlpack": "takes foreign memory",
    "numpy.vectorize": "gives a function",
    "numpy.apply_along_axis": "takes a function; tested beside vmap",
    "numpy.apply_over_axes": "takes a function",
    "numpy.fromfunction": "takes a function",
    "numpy.piecewise": "takes functions",
    "numpy.mask_indices": "takes a function",
    "numpy.broadcast_shapes": "no arrays",
    "numpy.can_cast": "no arrays",
    "numpy.isdtype": "no arrays",
    "numpy.isscalar": "no arrays",
    "numpy.issubdtype": "no arrays",
    "numpy.iterable": "no arrays",
    "numpy.promote_types": "no arrays",
    "numpy.result_type": "no arrays",
    "numpy.iscomplexobj": "no arrays",
    "numpy.isrealobj": "no arrays",
    "numpy.ndim": "no arrays",
    "numpy.shape": "no arrays",
    "numpy.size": "no arrays",
    "numpy.finfo": "no arrays",
    "numpy.iinfo": "no arrays",
    "numpy.empty": "undefined values",
    "numpy.empty_like": "undefined values",
    "numpy.argwhere": "shape depends on values",
    "numpy.extract": "shape depends on values",
    "numpy.intersect1d": "shape depends on values",
    "numpy.setdiff1d": "shape depends on values",
    "numpy.setxor1d": "shape depends on values",
    "numpy.union1d": "shape depends on values",
    "numpy.unique": "shape depends on values",
    "numpy.unique_all": "shape depends on values",
    "numpy.unique_counts": "shape depends on values",
    "numpy.unique_inverse": "shape depends on values",
    "numpy.unique_values": "shape depends on values",
    "numpy.trim_zeros": "shape depends on values",
    "numpy.roots": "shape depends on values",
    "numpy.poly": "of roots, by eigenvalues",
}


@functools.cache
def catalogue() -> dict[str, Callable[..., Any]]:
    """Every public function that can be a step, by its path."""
    found = {}
    for module in MODULES:
        of = importlib.import_module(f"hologram.{module}")
        for name in sorted(getattr(of, "__all__", None) or [n for n in dir(of) if not n.startswith("_")]):
            f = getattr(of, name)
            if callable(f) and not isinstance(f, type) and (isinstance(f, FunctionType) or hasattr(f, "__wrapped__") or _has_signature(f)):
                found[f"{module}.{name}"] = f
    return {k: f for k, f in found.items() if k not in NOT_STEPS}


def _has_signature(f: Any) -> bool:
    try:
        inspect.signature(f)
    except (TypeError, ValueError):
        return False
    return True


@functools.cache
def parameters(function: str) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(hologram_function(function)).parameters.values())


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


def _index_array(d: Draft, n: int, shape: tuple[int, ...] | None = None) -> Value | Literal:
    """Integers in range (rarely some beyond it), as an argument, an array that the program holds, or a computed value."""
    shape = d.shape(d.pick((1, 1, 1, 2, 0)), 3000) if shape is None else shape
    dtype = d.pick(("int64", "int32", "int8", "uint8", "int16", "uint32", "uint64")) if n < 100 else "int64"
    if n == 0 or d.chance(0.04):
        shape = (0,)
    kind = f"index:{n}"
    if d.chance(0.3):
        return Literal(dtype, shape, kind, d.seed())
    v = d.fresh(dtype, shape, kind)
    return d.emit("numpy.subtract", v, n)[0] if d.chance(0.1) and dtypes.of(v.dtype).kind == "i" else v


def _indices(c: Call) -> Any:
    return _index_array(c.d, max(1, c.of.array.size))


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
    **dict.fromkeys(("endpoint", "is_causal", "approximate", "equal_nan", "upper", "wrap", "stable", "return_counts"), _flag),
    "where": _where,
    "initial": lambda c: c.d.integer(-3, 3) if c.of.kind in "if" else c.d.integer(0, 3),
    "dtype": _dtype,
    "shape": _shape,
    "dimensions": lambda c: c.d.shape(c.d.integer(1, 3), 1000),
    "fill_value": _scalar,
    **dict.fromkeys(("k", "offset"), _small(-3, 3)),
    **dict.fromkeys(("n", "N", "M", "n_rows", "n_cols", "num", "classes", "m", "ndim"), _small(1, 12)),
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
    "method": _one_of("linear", "lower", "higher", "nearest", "midpoint"),
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


# --- functions whose arguments depend on one another -----------------------------------------------------------------

DRAWERS: dict[str, Callable[[Draft], list[Value]]] = {}


def drawer(*names: str) -> Callable[[Callable[..., list[Value]]], Callable[..., list[Value]]]:
    def add(f: Callable[..., list[Value]]) -> Callable[..., list[Value]]:
        for n in names:
            DRAWERS[n] = functools.partial(f, function=n)
        return f

    return add


def product_extents(d: Draft) -> tuple[int, int, int]:
    """Rows, terms and columns of a product: around widths of tiles, panels and pages; one of them may be long."""
    sizes = [d.extent(160) or 1 for _ in range(3)]
    if d.chance(0.08):
        sizes[d.integer(0, 2)] = d.pick((2047, 2049, 3072, 3073, 700))
        sizes = [min(s, 12) if s < 500 else s for s in sizes]
    while sizes[0] * sizes[1] * sizes[2] > 300_000:
        sizes[d.integer(0, 2)] = d.pick((1, 2, 3, 8, 17))
    return sizes[0], sizes[1], sizes[2]


def shaped(d: Draft, shape: tuple[int, ...], kinds: str = "f", content: str | None = None) -> Value:
    """A value of exactly this shape."""
    found = d.choose(lambda v: v.shape == shape and v.kind in kinds) if content is None and d.chance(0.7) else None
    return found or d.fresh(d.dtype(kinds), shape, content)


def _dims(v: Value, d: Draft) -> tuple[int, ...]:
    return v.shape


@drawer("numpy.matmul", "linalg.matmul", "numpy.matvec", "numpy.vecmat", "numpy.dot", "numpy.vecdot", "linalg.vecdot", "numpy.inner", "numpy.vdot")
def _products(d: Draft, function: str) -> list[Value]:
    name = function.partition(".")[2]
    m, k, n = product_extents(d)
    old = d.choose(lambda v: len(v.shape) >= 1 and 0 < v.shape[-1] <= 256 and v.kind in "fiuc" and v.array.size < 20_000)
    batch: tuple[int, ...] = (d.integer(1, 3),) if d.chance(0.25) else ()
    left, right = {
        "matvec": ((*batch, m, k), (k,)),
        "vecmat": ((k,), (*batch, k, n)),
        "vecdot": ((*batch, k), (k,)),
        "inner": ((m, k), (n, k)),
        "vdot": ((k,), (k,)),
    }.get(name, ((*batch, m, k), (k, n)))
    if old is not None and d.chance(0.5):
        left = old.shape
        k = left[-1]
        right = {"vecmat": (k, n), "inner": (n, k), "vdot": old.shape}.get(name, (k,) if name in ("matvec", "vecdot") or d.chance(0.2) else (k, n))
        if name == "vecmat" and len(left) > 1:
            raise Refused("a matrix")
    if name in ("matmul", "dot") and d.chance(0.15) and len(left) == 1 + len(batch) + 1:
        left = left[:-2] + left[-1:] if d.chance(0.5) else left
    x = old if old is not None and old.shape == left and d.chance(0.9) else shaped(d, left, "fffiuc")
    y = shaped(d, right, x.kind)
    options = {"preferred_element_type": DType("float32")} if name in ("matmul", "dot") and d.chance(0.05) else {}
    if name not in ("vdot",) and len(right) == 2 and d.chance(0.25) and name in ("matmul", "dot"):
        y = d.emit("numpy.matrix_transpose", shaped(d, right[::-1], x.kind))[0]
    return d.emit(function, x, y, **options)


@drawer("numpy.einsum")
def _einsum(d: Draft, function: str) -> list[Value]:
    letters = "abcde"
    size = {c: d.pick((1, 2, 3, 4, 5, 7, 8, 9, 16, 17)) for c in letters}
    count = d.pick((1, 2, 2, 2, 3))
    terms = ["".join(d.rng.permutation(list(letters))[: d.integer(1, 3)]) for _ in range(count)]
    used = sorted(set("".join(terms)))
    out = "".join(d.rng.permutation(used)[: d.integer(0, len(used))])
    first = d.dtype("ffiuc")
    arrays = [shaped(d, tuple(size[c] for c in t), dtypes.of(first).kind) for t in terms]
    return d.emit(function, ",".join(terms) + (f"->{out}" if d.chance(0.8) else ""), *arrays)


@drawer("numpy.tensordot", "linalg.tensordot")
def _tensordot(d: Draft, function: str) -> list[Value]:
    x = d.array("fiuc", least=1)
    n = d.integer(0, min(2, len(x.shape)))
    y = shaped(d, (*x.shape[len(x.shape) - n :], *d.shape(d.integer(0, 2), 12)), x.kind)
    if x.array.size * y.array.size > 400_000 * max(1, int(np.prod(x.shape[len(x.shape) - n :]))) ** 2:
        raise Refused("too large")
    return d.emit(function, x, y, n)


@drawer("nn.dot_general")
def _dot_general(d: Draft, function: str) -> list[Value]:
    b, m, k, n = d.integer(1, 3), d.integer(1, 9), d.integer(1, 17), d.integer(1, 9)
    x, y = shaped(d, (b, m, k), "f"), shaped(d, (b, n, k), "f")
    return d.emit(function, x, y, (((2,), (2,)), ((0,), (0,))))


@drawer("numpy.outer", "linalg.outer", "numpy.kron")
def _outer(d: Draft, function: str) -> list[Value]:
    x, y = d.array("fiuc", ndim=1), d.array("fiuc", ndim=1)
    if x.array.size * y.array.size > 50_000:
        raise Refused("too large")
    return d.emit(function, x, y)


@drawer("numpy.concatenate", "numpy.concat", "numpy.stack", "numpy.hstack", "numpy.vstack", "numpy.dstack", "numpy.column_stack")
def _joined(d: Draft, function: str) -> list[Value]:
    name = function.partition(".")[2]
    x = d.array(least=1)
    parts = [x]
    rank = len(x.shape)
    axis = d.integer(0, rank - 1)
    for _ in range(d.pick((1, 1, 2, 3, 6))):
        shape = x.shape
        if name in ("concatenate", "concat") and d.chance(0.5):
            shape = (*x.shape[:axis], d.extent(40), *x.shape[axis + 1 :])
        parts.append(shaped(d, shape, x.kind))
    d.rng.shuffle(parts)
    options = {"axis": axis - (rank if d.chance(0.3) else 0)} if name in ("concatenate", "concat", "stack") else {}
    return d.emit(function, parts, **options)


@drawer("numpy.block")
def _block(d: Draft, function: str) -> list[Value]:
    m, n, p, q = (d.integer(1, 9) for _ in range(4))
    kind = d.pick("fic")
    return d.emit(function, [[shaped(d, (m, n), kind), shaped(d, (m, q), kind)], [shaped(d, (p, n), kind), shaped(d, (p, q), kind)]])


@drawer("numpy.append", "numpy.insert", "numpy.delete")
def _edited(d: Draft, function: str) -> list[Value]:
    x = d.array(least=1)
    axis = d.integer(0, len(x.shape) - 1)
    n = x.shape[axis]
    if function == "numpy.append":
        return d.emit(function, x, shaped(d, x.shape, x.kind), axis=axis)
    if n == 0:
        raise Refused("empty")
    where = d.pick((d.integer(0, n - 1), [d.integer(0, n - 1), d.integer(0, n - 1)], slice(0, n, 2)))
    if function == "numpy.delete":
        return d.emit(function, x, where, axis=axis)
    return d.emit(function, x, d.integer(0, n), d.pick((1, 2)), axis=axis)


@drawer("numpy.reshape", "numpy.resize")
def _reshape(d: Draft, function: str) -> list[Value]:
    x = d.array()
    n = x.array.size
    if n == 0:
        return d.emit(function, x, (0, d.integer(1, 3)))
    shape: list[int] = []
    rest = n
    for _ in range(d.integer(0, 3)):
        divisors = [k for k in (1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 31, 32, 33, 64, 128, 256, 1024, 3072) if rest % k == 0]
        shape.append(d.pick(divisors))
        rest //= shape[-1]
    shape.append(rest)
    d.rng.shuffle(shape)
    if d.chance(0.2):
        shape[d.integer(0, len(shape) - 1)] = -1
    return d.emit(function, x, tuple(abs(s) if function == "numpy.resize" else s for s in shape))


@drawer("numpy.transpose", "numpy.permute_dims")
def _transpose(d: Draft, function: str) -> list[Value]:
    x = d.array()
    return d.emit(function, x, tuple(int(i) for i in d.rng.permutation(len(x.shape))))


@drawer("numpy.broadcast_to")
def _broadcast_to(d: Draft, function: str) -> list[Value]:
    x = d.array()
    shape = (*((d.integer(1, 4),) if d.chance(0.7) else ()), *(d.extent(20) if n == 1 else n for n in x.shape))
    return d.emit(function, x, shape)


@drawer("numpy.expand_dims", "numpy.squeeze")
def _expand(d: Draft, function: str) -> list[Value]:
    if function == "numpy.squeeze":
        return d.emit(function, d.array())
    x = d.array()
    return d.emit(function, x, d.integer(-len(x.shape) - 1, len(x.shape)))


@drawer("numpy.split", "numpy.array_split", "numpy.hsplit", "numpy.vsplit", "numpy.dsplit")
def _split(d: Draft, function: str) -> list[Value]:
    x = d.array(least={"numpy.vsplit": 2, "numpy.dsplit": 3}.get(function, 1))
    axis = {"numpy.vsplit": 0, "numpy.dsplit": 2, "numpy.hsplit": 0 if len(x.shape) == 1 else 1}.get(function, d.integer(0, len(x.shape) - 1))
    n = x.shape[axis]
    where = sorted(d.integer(0, n) for _ in range(d.integer(1, 3))) if d.chance(0.6) else d.integer(1, 3)
    return d.emit(function, x, where, **({"axis": axis} if function in ("numpy.split", "numpy.array_split") else {}))


@drawer("numpy.roll")
def _roll(d: Draft, function: str) -> list[Value]:
    x = d.array()
    n = len(x.shape)
    if d.chance(0.4) or n == 0:
        return d.emit(function, x, d.pick((1, -1, 3, 17, -100)))
    if d.chance(0.3) and n > 1:
        return d.emit(function, x, (d.integer(-3, 3), d.integer(-9, 9)), (0, 1))
    return d.emit(function, x, d.pick((1, -1, 2, 5)), d.integer(-n, n - 1))


@drawer("numpy.pad")
def _pad(d: Draft, function: str) -> list[Value]:
    x = d.array()
    widths = [(d.pick((0, 1, 2, 8)), d.pick((0, 1, 3, 16))) for _ in x.shape]
    mode = d.pick(("constant", "constant", "edge", "reflect", "symmetric", "wrap"))
    options = {"constant_values": d.pick((0, 1, 2))} if mode == "constant" and d.chance(0.4) else {}
    return d.emit(function, x, widths if x.shape else 0, mode, **options)


@drawer("numpy.diff")
def _diff(d: Draft, function: str) -> list[Value]:
    x = d.array(least=1)
    axis = d.integer(0, len(x.shape) - 1)
    options: dict[str, Any] = {"axis": axis, "n": d.pick((1, 1, 2))}
    for side in ("prepend", "append"):
        if d.chance(0.4):
            options[side] = d.pick((0, 1)) if d.chance(0.5) else shaped(d, (*x.shape[:axis], d.integer(1, 2), *x.shape[axis + 1 :]), x.kind)
    return d.emit(function, x, **options)


@drawer("numpy.take", "numpy.take_along_axis", "numpy.put_along_axis", "numpy.put")
def _gathers(d: Draft, function: str) -> list[Value]:
    x = d.array(least=1)
    axis = d.integer(0, len(x.shape) - 1)
    n = x.shape[axis]
    if function == "numpy.take":
        return d.emit(function, x, _index_array(d, n), axis=axis - (len(x.shape) if d.chance(0.3) else 0))
    if function == "numpy.put":
        i = _index_array(d, x.array.size, (d.integer(0, 20),))
        return d.emit(function, x, i, d.pick((1, 0)))
    shape = (*x.shape[:axis], d.integer(1, 9), *x.shape[axis + 1 :])
    i = d.fresh("int64", shape, f"index:{n}")
    if n == 0:
        raise Refused("empty")
    return d.emit(function, x, i, *([] if function == "numpy.take_along_axis" else [d.pick((1, 0))]), axis=axis)


@drawer("numpy.place", "numpy.compress", "numpy.fill_diagonal")
def _places(d: Draft, function: str) -> list[Value]:
    if function == "numpy.fill_diagonal":
        n = d.integer(1, 20)
        return d.emit(function, shaped(d, (n, n) if d.chance(0.5) else (n, d.integer(1, 9)), "fiuc"), 1)
    if function == "numpy.compress":
        x = d.array(least=1)
        return d.emit(function, [d.chance(0.5) for _ in range(min(x.shape[0], 5))], x, axis=0)
    x = d.array(least=1)
    return d.emit(function, x, shaped(d, x.shape, "b"), d.pick((1, 0)))


@drawer("numpy.where")
def _where_(d: Draft, function: str) -> list[Value]:
    x = d.array()
    y = d.mate(x, x.kind) if d.chance(0.8) else d.pick((0, 1))
    return d.emit(function, shaped(d, x.shape, "b") if d.chance(0.8) else d.mate(x, "b"), x, y)


@drawer("numpy.nonzero", "numpy.flatnonzero")
def _nonzero(d: Draft, function: str) -> list[Value]:
    return d.emit(function, d.array(least=1), size=d.integer(1, 30))


@drawer("numpy.select", "numpy.choose")
def _select(d: Draft, function: str) -> list[Value]:
    x = d.array("fiu", least=1)
    choices = [x, shaped(d, x.shape, x.kind), shaped(d, x.shape, x.kind)]
    if function == "numpy.choose":
        return d.emit(function, d.fresh("int64", x.shape, "index:3"), choices)
    return d.emit(function, [shaped(d, x.shape, "b") for _ in choices], choices)


@drawer("numpy.searchsorted", "numpy.digitize", "numpy.interp", "numpy.isin")
def _searches(d: Draft, function: str) -> list[Value]:
    x = d.array("f")
    table = d.emit("numpy.sort", shaped(d, (d.extent(300) or 3,), "f", "normal"))[0]
    if function == "numpy.searchsorted":
        return d.emit(function, table, x, side=d.pick(("left", "right")))
    if function == "numpy.digitize":
        return d.emit(function, x, table, right=d.chance(0.5))
    if function == "numpy.interp":
        return d.emit(function, x, table, shaped(d, table.shape, "f"))
    y = d.array("fiu", ndim=1)
    x = d.array(y.kind)
    if x.array.size * y.array.size > 300_000:
        raise Refused("too large")
    return d.emit(function, x, y, invert=d.chance(0.3))


@drawer("numpy.partition", "numpy.argpartition")
def _partition(d: Draft, function: str) -> list[Value]:
    x = d.array("fiu", least=1)
    n = x.shape[-1]
    if not n:
        raise Refused("empty")
    return d.emit(function, x, d.integer(0, n - 1))


@drawer("numpy.lexsort")
def _lexsort(d: Draft, function: str) -> list[Value]:
    x = d.array("fiu", least=1)
    return d.emit(function, [x, shaped(d, x.shape, x.kind)])


@drawer("numpy.quantile", "numpy.percentile", "numpy.nanquantile", "numpy.nanpercentile")
def _quantile(d: Draft, function: str) -> list[Value]:
    x = d.array("f", least=1)
    top = 100.0 if "percentile" in function else 1.0
    q = d.pick((0.5 * top, 0.0, top, [0.25 * top, 0.75 * top]))
    return d.emit(function, x, q, axis=d.pick((None, 0, -1)), method=d.pick(("linear", "lower", "higher", "nearest", "midpoint")))


@drawer("numpy.average", "numpy.cov", "numpy.corrcoef")
def _average(d: Draft, function: str) -> list[Value]:
    x = d.array("f", least=1)
    if function == "numpy.average":
        return d.emit(function, x, weights=d.fresh(x.dtype, x.shape, "positive"))
    if len(x.shape) > 2 or x.shape[0] > 40:
        x = shaped(d, (d.integer(1, 9), d.integer(2, 40)), "f")
    return d.emit(function, x)


@drawer("numpy.cross", "linalg.cross")
def _cross(d: Draft, function: str) -> list[Value]:
    lead = d.shape(d.integer(0, 2), 300)
    return d.emit(function, shaped(d, (*lead, 3), "f"), shaped(d, (*lead, 3), "f"))


@drawer("numpy.convolve", "numpy.correlate")
def _convolve(d: Draft, function: str) -> list[Value]:
    x = d.array("fiu", ndim=1)
    y = d.fresh(x.dtype, (d.pick((1, 2, 3, 5, 8, 17)),))
    return d.emit(function, x, y, mode=d.pick(("full", "valid", "same")))


@drawer("numpy.polyval", "numpy.polyadd", "numpy.polysub", "numpy.polymul", "numpy.polydiv", "numpy.polyder", "numpy.polyint", "numpy.vander")
def _polynomials(d: Draft, function: str) -> list[Value]:
    p = shaped(d, (d.integer(1, 6),), "f")
    if function == "numpy.polyval":
        return d.emit(function, p, d.array("f"))
    if function in ("numpy.polyder", "numpy.polyint"):
        return d.emit(function, p, d.integer(1, 2))
    if function == "numpy.vander":
        return d.emit(function, p, d.integer(1, 5))
    return d.emit(function, p, d.fresh(p.dtype, (d.integer(1, 4),), "positive"))


@drawer("numpy.polyfit")
def _polyfit(d: Draft, function: str) -> list[Value]:
    n = d.integer(6, 20)
    return d.emit(function, d.fresh("float64", (n,), "normal"), d.fresh("float64", (n,), "normal"), 2)


@drawer("numpy.histogram", "numpy.histogram_bin_edges", "numpy.histogram2d", "numpy.histogramdd", "numpy.bincount")
def _histogram(d: Draft, function: str) -> list[Value]:
    if function == "numpy.bincount":
        x = d.fresh("int64", (d.extent(4000),), "index:20")
        weights = {"weights": d.fresh(d.dtype("f"), x.shape)} if d.chance(0.4) else {}
        return d.emit(function, x, length=d.integer(20, 40), **weights)
    bins = d.integer(1, 9)
    if function == "numpy.histogram2d":
        x = d.array("f", ndim=1)
        return d.emit(function, x, shaped(d, x.shape, "f"), bins)
    if function == "numpy.histogramdd":
        return d.emit(function, shaped(d, (d.integer(1, 60), 2), "f"), bins)
    return d.emit(function, d.array("f"), bins)


@drawer("numpy.ravel_multi_index", "numpy.unravel_index")
def _flat_indices(d: Draft, function: str) -> list[Value]:
    shape = tuple(d.integer(1, 9) for _ in range(d.integer(1, 3)))
    count = (d.extent(300),)
    if function == "numpy.unravel_index":
        return d.emit(function, d.fresh("int64", count, f"index:{int(np.prod(shape))}"), shape)
    return d.emit(function, [d.fresh("int64", count, f"index:{n}") for n in shape], shape)


@drawer("numpy.moveaxis", "numpy.rollaxis")
def _moveaxis(d: Draft, function: str) -> list[Value]:
    x = d.array(least=1)
    n = len(x.shape)
    return d.emit(function, x, d.integer(-n, n - 1), d.integer(0, n - 1))


@drawer("numpy.diagonal", "numpy.trace", "linalg.diagonal", "linalg.trace", "numpy.tril", "numpy.triu", "numpy.rot90")
def _matrices(d: Draft, function: str) -> list[Value]:
    x = d.array(least=2)
    name = function.partition(".")[2]
    key = {"diagonal": "offset", "trace": "offset", "rot90": "k"}.get(name, "k")
    return d.emit(function, x, **({key: d.integer(-2, 2)} if d.chance(0.5) else {}))


@drawer("numpy.gradient")
def _gradient(d: Draft, function: str) -> list[Value]:
    x = d.array("f", least=1)
    return d.emit(function, x, *([d.pick((0.5, 2.0))] if d.chance(0.4) else []))


@drawer("numpy.ldexp")
def _ldexp(d: Draft, function: str) -> list[Value]:
    x = d.array("f")
    return d.emit(function, x, d.fresh("int32", x.shape, "tame"))


@drawer("numpy.ix_", "numpy.meshgrid")
def _grids(d: Draft, function: str) -> list[Value]:
    return d.emit(function, *[shaped(d, (d.integer(1, 20),), "if") for _ in range(d.integer(1, 3))])


@drawer("numpy.array", "numpy.asarray", "numpy.tensor")
def _array(d: Draft, function: str) -> list[Value]:
    return d.emit(function, Literal(d.dtype(), d.shape(), d.contents, d.seed(), d.pick(values.LAYOUTS[:-1]) if d.chance(0.5) else "plain"))


# --- linear algebra --------------------------------------------------------------------------------------------------


def _square(d: Draft, kinds: str = "fc") -> Value:
    n = d.pick((1, 2, 3, 4, 5, 8, 9, 16, 17, 33))
    shape = (n, n) if d.chance(0.7) else (d.integer(1, 3), n, n)
    return d.fresh(d.pick(("float32", "float64", "complex64", "complex128") if "c" in kinds else ("float32", "float64")), shape, "normal")


def positive_definite(d: Draft) -> Value:
    x = _square(d)
    n = x.shape[-1]
    h = d.emit("numpy.conj", d.emit("numpy.matrix_transpose", x)[0])[0]
    product = d.emit("numpy.matmul", x, h)[0]
    return d.emit("numpy.add", product, d.emit("numpy.eye", n, dtype=DType(x.dtype))[0])[0]


PHASES = {"linalg.eigh": (1,), "linalg.svd": (0, 2), "linalg.qr": (0, 1)}  # results that are unique up to signs, or factors on the unit circle


def without_phase(d: Draft, function: str, results: list[Value]) -> list[Value]:
    """Of vectors that may have any phase, the absolute values: the rest of the program sees nothing else of them."""
    loose = [results[i] for i in PHASES.get(function, ())]
    d.pool = [v for v in d.pool if v.ref not in {x.ref for x in loose}]
    return [d.emit("numpy.absolute", v)[0] if any(v is x for x in loose) else v for v in results]


@drawer("linalg.cholesky", "linalg.inv", "linalg.det", "linalg.slogdet", "linalg.eigh", "linalg.eigvalsh", "linalg.matrix_power")
def _factored(d: Draft, function: str) -> list[Value]:
    x = positive_definite(d)
    return without_phase(d, function, d.emit(function, x, *([d.integer(0, 3)] if function.endswith("power") else [])))


@drawer("linalg.solve", "linalg.triangular_solve")
def _solve(d: Draft, function: str) -> list[Value]:
    a = positive_definite(d)
    b = d.fresh(a.dtype, (*a.shape[:-1], d.pick((1, 2, 5, 17))), "normal")
    if function == "linalg.solve":
        return d.emit(function, a, b)
    lower = d.chance(0.5)
    return d.emit(function, a, b, lower=lower, transpose_a=d.chance(0.3), unit_diagonal=False)


@drawer("linalg.svd", "linalg.svdvals", "linalg.qr", "linalg.pinv", "linalg.matrix_rank", "linalg.lstsq", "linalg.matrix_norm")
def _rectangular(d: Draft, function: str) -> list[Value]:
    m, n = d.pick((1, 2, 3, 5, 8, 17)), d.pick((1, 2, 3, 5, 8, 17))
    x = d.fresh(d.pick(("float32", "float64", "complex64", "complex128")), (m, n), "normal")
    if function == "linalg.lstsq":
        return d.emit(function, x, d.fresh(x.dtype, (m,), "normal"))
    return without_phase(d, function, d.emit(function, x, **({"full_matrices": False} if function == "linalg.svd" else {})))


@drawer("fft.fftfreq", "fft.rfftfreq")
def _frequencies(d: Draft, function: str) -> list[Value]:
    return d.emit(function, d.integer(1, 40), d.pick((1.0, 0.5)))


@drawer("numpy.diag_indices_from", "numpy.tril_indices_from", "numpy.triu_indices_from")
def _indices_from(d: Draft, function: str) -> list[Value]:
    n = d.integer(1, 17)
    return d.emit(function, shaped(d, (n, n), "f"))


@drawer("linalg.multi_dot")
def _multi_dot(d: Draft, function: str) -> list[Value]:
    sizes = [d.integer(1, 20) for _ in range(d.integer(3, 5))]
    return d.emit(function, [shaped(d, pair, "f") for pair in zip(sizes, sizes[1:], strict=False)])


# --- networks --------------------------------------------------------------------------------------------------------


def _images(d: Draft, rank: int, last: bool, channels: int) -> tuple[tuple[int, ...], str]:
    space = tuple(d.pick((1, 2, 3, 5, 7, 8, 9, 16, 17) if rank < 3 else (1, 2, 3, 4)) for _ in range(rank))
    n = d.integer(1, 3)
    return ((n, *space, channels) if last else (n, channels, *space)), ("N" + "DHW"[3 - rank :] + "C" if last else "NC" + "DHW"[3 - rank :])


@drawer(*[f"nn.conv{t}{r}d" for t in ("", "_transpose") for r in (1, 2, 3)])
def _convolution(d: Draft, function: str) -> list[Value]:
    rank, transposed = int(function[-2]), "transpose" in function
    groups = d.pick((1, 1, 1, 2, 3))
    c, o = groups * d.pick((1, 2, 3, 8)), groups * d.pick((1, 2, 4, 8, 17))
    shape, _ = _images(d, rank, False, c)
    sizes = tuple(d.pick((1, 2, 3, 4)) for _ in range(rank))
    x = d.fresh(d.dtype("f"), shape)
    w = d.fresh(x.dtype, (c, o // groups, *sizes) if transposed else (o, c // groups, *sizes))

    def each(options: tuple[int, ...]) -> Any:
        return d.pick(options) if d.chance(0.6) else tuple(d.pick(options) for _ in range(rank))

    options: dict[str, Any] = {"groups": groups}
    if d.chance(0.5):
        options["stride"] = each((1, 2, 3))
    if d.chance(0.5):
        options["padding"] = each((0, 1, 2))
    if d.chance(0.4):
        options["dilation"] = each((1, 2, 3))
    bias = [d.fresh(x.dtype, (o,))] if d.chance(0.3) else []
    return d.emit(function, x, w, *bias, **options)


@drawer(*[f"nn.{k}_pool{r}d" for k in ("avg", "max", "adaptive_avg") for r in (1, 2, 3)])
def _pool(d: Draft, function: str) -> list[Value]:
    rank = int(function[-2])
    shape, _ = _images(d, rank, False, d.integer(1, 5))
    x = d.fresh(d.dtype("f"), shape)
    if "adaptive" in function:
        return d.emit(function, x, d.integer(1, 4))
    options: dict[str, Any] = {}
    if d.chance(0.5):
        options["stride"] = d.integer(1, 3)
    if d.chance(0.3):
        options["padding"] = d.integer(0, 1)
    if d.chance(0.3):
        options["ceil_mode"] = True
    if "max" in function and d.chance(0.3):
        options["dilation"] = d.integer(1, 2)
    return d.emit(function, x, d.integer(1, 3), **options)


@drawer("nn.dot_product_attention")
def _attention(d: Draft, function: str) -> list[Value]:
    lead = d.pick(((), (2,), (1, 3)))
    rows, keys, e, v = d.pick((1, 3, 8, 16, 17, 40)), d.pick((1, 3, 8, 16, 33)), d.pick((1, 4, 8, 16, 17)), d.pick((1, 4, 8, 9, 16))
    q, k, u = (d.fresh(t, s, "normal") for t, s in zip([d.dtype("f")] * 3, [(*lead, rows, e), (*lead, keys, e), (*lead, keys, v)], strict=True))
    options: dict[str, Any] = {}
    if d.chance(0.3):
        options["is_causal"] = True
    if d.chance(0.3):
        options["mask"] = d.fresh(d.pick(("bool", "float32")), (rows, keys), "tame")
    if d.chance(0.2):
        options["rows"] = d.pick((0, 2, 4, 16))
    return d.emit(function, q, k, u, **options)


@drawer("nn.cross_entropy", "nn.one_hot")
def _labels(d: Draft, function: str) -> list[Value]:
    n, c = d.integer(1, 40), d.pick((1, 2, 5, 10, 33))
    labels = d.fresh("int64", (n,), f"index:{c}")
    if function == "nn.one_hot":
        return d.emit(function, labels, c)
    return d.emit(function, shaped(d, (n, c), "f"), labels)


@drawer("nn.layer_norm", "nn.rms_norm")
def _norm(d: Draft, function: str) -> list[Value]:
    x = d.array("f", least=1)
    weight = shaped(d, x.shape[-1:], "f") if d.chance(0.6) else None
    options = {"weight": weight} if weight else {}
    if function == "nn.layer_norm" and weight and d.chance(0.5):
        options["bias"] = shaped(d, x.shape[-1:], "f")
    return d.emit(function, x, **options)


@drawer("special.polygamma")
def _polygamma(d: Draft, function: str) -> list[Value]:
    return d.emit(function, d.integer(0, 3), d.fresh(d.dtype("f"), d.shape(), "positive"))


# --- random numbers --------------------------------------------------------------------------------------------------


def _random(d: Draft, function: str) -> list[Value]:
    if function == "random.key":
        return d.emit(function, d.integer(0, 2**40))
    args: list[Any] = [d.emit("random.key", d.integer(0, 1000))[0] if d.chance(0.5) else d.fresh("uint32", (2,), "wide", "plain")]
    name = function.partition(".")[2]
    shape = d.shape(d.integer(0, 2), 5000)
    options: dict[str, Any] = {"shape": shape}
    floats = {"dtype": DType(d.pick(("float32", "float64", "float16", "bfloat16")))} if d.chance(0.4) else {}
    match name:
        case "split":
            return d.emit(function, *args, d.integer(1, 9))
        case "fold_in":
            return d.emit(function, *args, d.integer(0, 99))
        case "permutation" | "shuffle":
            return d.emit(function, *args, d.array(least=1))
        case "choice":
            return d.emit(function, *args, d.integer(1, 30), shape=shape)
        case "categorical":
            return d.emit(function, *args, d.array("f", least=1))
        case "bits":
            return d.emit(function, *args, shape, DType(d.pick(("uint32", "uint8", "uint16", "uint64"))))
        case "randint":
            return d.emit(function, *args, shape=shape, minval=d.integer(-9, 0), maxval=d.integer(1, 99))
        case "ball":
            return d.emit(function, *args, d.integer(1, 4), shape=shape[:1])
        case "dirichlet":
            return d.emit(function, *args, d.fresh("float32", (d.integer(1, 5),), "positive"), shape=shape[:1])
        case "multivariate_normal":
            n = d.integer(1, 5)
            cov = d.emit("numpy.eye", n)[0]
            return d.emit(function, *args, shaped(d, (n,), "f"), cov)
        case "bernoulli":
            return d.emit(function, *args, round(float(d.rng.uniform(0.1, 0.9)), 2), shape)
        case "geometric":
            return d.emit(function, *args, round(float(d.rng.uniform(0.1, 0.9)), 2), shape)
        case "binomial":
            return d.emit(function, *args, d.integer(0, 30), round(float(d.rng.uniform(0.1, 0.9)), 2), shape[:1])
    for p in parameters(function)[1:]:
        if p.default is p.empty and p.name not in ("shape", "dtype"):
            args.append({"lower": -1.0, "upper": 1.5}.get(p.name, round(float(d.rng.uniform(0.5, 4.0)), 2)))
    return d.emit(function, *args, **options, **floats)


def install_random() -> None:
    for name in catalogue():
        if name.startswith("random."):
            DRAWERS[name] = functools.partial(_random, function=name)


install_random()
