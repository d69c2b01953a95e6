"""Arguments of functions of arrays: products, movement, indices, searches, statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes

from .. import values
from ..draft import Draft, Refused, Value
from ..program import DType, Literal
from .common import drawer, index_array, product_extents, shaped


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
    if d.chance(0.2):
        by = d.fresh(d.pick(("int64", "int32", "uint8")), (), "index:40")
        return d.emit(function, x, by, *((d.integer(-n, n - 1),) if n else ()))
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
        return d.emit(function, x, index_array(d, n), axis=axis - (len(x.shape) if d.chance(0.3) else 0))
    if function == "numpy.put":
        i = index_array(d, x.array.size, (d.integer(0, 20),))
        return d.emit(function, x, i, d.pick((1, 0)))
    shape = (*x.shape[:axis], d.integer(1, 9), *x.shape[axis + 1 :])
    i = d.fresh("int64", shape, f"index:{n}")
    if n == 0:
        raise Refused("empty")
    return d.emit(function, x, i, *([] if function == "numpy.take_along_axis" else [d.pick((1, 0))]), axis=axis)


def _start(d: Draft, n: int) -> Any:
    """Where a window begins, known or computed, rarely where none fits."""
    start = d.integer(-n - 1, n + 1) if d.chance(0.3) else d.fresh(d.pick(("int64", "int32", "uint8")), (), f"index:{max(n, 1)}")
    return d.emit("numpy.negative", start)[0] if isinstance(start, Value) and start.dtype != "uint8" and d.chance(0.2) else start


@drawer("numpy.dynamic_slice", "numpy.dynamic_update_slice", "numpy.dynamic_slice_in_dim", "numpy.dynamic_update_slice_in_dim")
def _windows(d: Draft, function: str) -> list[Value]:
    x = d.array(least=1)
    axis = d.integer(0, len(x.shape) - 1)
    along = function.endswith("_in_dim")
    sizes = tuple(n if along and a != axis else d.integer(0 if d.chance(0.1) else min(1, n), n) for a, n in enumerate(x.shape))
    start: Any = _start(d, x.shape[axis]) if along else tuple(_start(d, n) for n in x.shape)
    if "update" in function:
        return d.emit(function, x, shaped(d, sizes, x.kind), start, *((axis,) if along else ()))
    return d.emit(function, x, start, *((sizes[axis], axis) if along else (sizes,)))


@drawer("numpy.dynamic_index_in_dim", "numpy.dynamic_update_index_in_dim")
def _indexed_windows(d: Draft, function: str) -> list[Value]:
    x = d.array(least=1)
    axis = d.integer(0, len(x.shape) - 1)
    if x.shape[axis] == 0:
        raise Refused("empty")
    index = _start(d, x.shape[axis])
    if function == "numpy.dynamic_index_in_dim":
        return d.emit(function, x, index, axis, d.chance(0.5))
    return d.emit(function, x, shaped(d, (*x.shape[:axis], *((1,) if d.chance(0.3) else ()), *x.shape[axis + 1 :]), x.kind), index, axis)


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
        axis = d.integer(0, len(x.shape) - 1)
        if d.chance(0.5):
            return d.emit(function, x, axis=axis, weights=d.fresh(x.dtype, (x.shape[axis],), "positive"))
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
    x = d.array("fciu", ndim=1)
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


@drawer("numpy.diag_indices_from", "numpy.tril_indices_from", "numpy.triu_indices_from")
def _indices_from(d: Draft, function: str) -> list[Value]:
    n = d.integer(1, 17)
    return d.emit(function, shaped(d, (n, n), "f"))
