"""Reductions and scans. Their references keep the canonical reduction order of ``docs/internals/ir.md`` bit for bit.

An op's ``monoid`` is the elementwise op that combines two elements; it runs on the compute type (float32 for narrow floats), and the
result is rounded to the element type once, at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError, ShapeError
from hologram.ir.op import TABLE, Op, Shape, register
from hologram.ir.symbolic import prod
from hologram.primitives.scalar import elementwise as ew

LANES = 32  # partial results of a page, one for each vector lane
INTEGER_LANES = 8  # as many are enough where the loop over integers, whose order is free, may be short
PAGE = 3072  # elements reduced or scanned as one piece
GROUP = 16  # elements scanned by Hillis and Steele's steps
LAST = "last"  # in the place of a scan's ``reverse``: its last running value alone; only the compiler writes it

INDEX_MAX = 2**63 - 1  # what an accumulator of positions starts from

Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]


# --- types -----------------------------------------------------------------------------------------------------------


def _element_type(op: str, kinds: str, x: Any) -> DType:
    if x.dtype.kind not in kinds:
        raise DTypeError(f"{op} does not take {x.dtype}")
    return x.dtype


def _require_axis(op: str, shape: Shape, axis: int) -> None:
    if not 0 <= axis < len(shape):
        raise ShapeError(f"{op}: axis {axis} of shape {list(shape)}")


def _require_elements(op: str, shape: Shape, axes: tuple[int, ...]) -> None:
    if prod(shape[a] for a in axes) == 0:
        raise ShapeError(f"{op}: axes {list(axes)} of shape {list(shape)} hold no element, and {op} has no value for none")


def _infer_reduce(name: str, kinds: str, empty: Any) -> Any:
    def infer(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
        (x,), (axes,) = inputs, attrs
        dtype = _element_type(name, kinds, x)
        for a in axes:
            _require_axis(name, x.shape, a)
        if any(a >= b for a, b in zip(axes, axes[1:], strict=False)):
            raise ShapeError(f"{name}: axes {list(axes)} do not ascend")
        if empty is None:
            _require_elements(name, x.shape, axes)
        return tuple(n for i, n in enumerate(x.shape) if i not in axes), dtype

    return infer


def _infer_arg(name: str) -> Any:
    def infer(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
        (x,), (axis,) = inputs, attrs
        _element_type(name, "biuf", x)
        _require_axis(name, x.shape, axis)
        _require_elements(name, x.shape, (axis,))
        return (*x.shape[:axis], *x.shape[axis + 1 :]), dtypes.int64

    return infer


def _infer_scan(name: str, kinds: str) -> Any:
    def infer(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
        (x,), (axis, reverse) = inputs, attrs
        dtype = _element_type(name, kinds, x)
        _require_axis(name, x.shape, axis)
        return (*x.shape[:axis], *x.shape[axis + 1 :]) if reverse == LAST else x.shape, dtype

    return infer


# --- neutral elements ------------------------------------------------------------------------------------------------


def zero(d: DType) -> Any:
    return -0.0 if d.is_float else 0  # -0.0 + x is x for both zeros


def one(d: DType) -> Any:
    return 1


def lowest(d: DType) -> Any:
    """What no element but NaN is below."""
    if d.is_float and not d.format.has_infinity:
        return -d.format.largest
    return -np.inf if d.is_float else False if d.kind == "b" else int(np.iinfo(d.np).min)


def highest(d: DType) -> Any:
    """What no element but NaN is above."""
    if d.is_float and not d.format.has_infinity:
        return d.format.largest
    return np.inf if d.is_float else True if d.kind == "b" else int(np.iinfo(d.np).max)


def identity_bits(op: Op, d: DType) -> bytes:
    """The element of type ``d`` that an accumulator of ``op`` starts from: -0.0 for float sums, the far end of the type for extremes
    and their positions."""
    op = {"argmax": reduce_max, "argmin": reduce_min}.get(op.name, op)
    return bytes(np.asarray(op.identity(d)).astype(d.np).tobytes())


# --- the canonical reduction order -----------------------------------------------------------------------------------------------


def _split(x: np.ndarray, size: int, identity: Any) -> np.ndarray:
    """``(…, n)`` to ``(…, ceil(n / size), size)``, the last piece filled up with the identity."""
    *outer, n = x.shape
    pieces = -(-n // size)
    if pieces * size != n:
        whole = np.full((*outer, pieces * size), identity, x.dtype)
        whole[..., :n] = x
        x = whole
    return x.reshape(*outer, pieces, size)


def _page_in_lanes(combine: Combine, x: np.ndarray, identity: Any) -> np.ndarray:
    """Horizontal reduction of one page: lane l takes x[l], x[l + LANES], …; then lanes combine by halves."""
    rows = _split(x, LANES, identity)
    lanes = rows[..., 0, :]
    for i in range(1, rows.shape[-2]):
        lanes = combine(lanes, rows[..., i, :])
    half = LANES // 2
    while half:
        lanes = combine(lanes[..., :half], lanes[..., half : 2 * half])
        half //= 2
    return lanes[..., 0]


def _page_in_turn(combine: Combine, x: np.ndarray, identity: Any) -> np.ndarray:
    """Column form of one page: left to right."""
    result = x[..., 0]
    for i in range(1, x.shape[-1]):
        result = combine(result, x[..., i])
    return result


def _in_pages(page: Any, combine: Combine, x: np.ndarray, identity: Any) -> np.ndarray:
    """Reduces the last axis: page by page, then the pages' results the same way."""
    while x.shape[-1] > PAGE:
        x = page(combine, _split(x, PAGE, identity), identity)
    return page(combine, x, identity)


def adjacent_runs(axes: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Ascending axes cut into runs of neighbours: (0, 2, 3) gives [(0,), (2, 3)]."""
    runs: list[tuple[int, ...]] = []
    for a in axes:
        if runs and runs[-1][-1] == a - 1:
            runs[-1] = (*runs[-1], a)
        else:
            runs.append((a,))
    return runs


def _reduce_run(monoid: Op, identity: Any, x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    kept = [i for i in range(x.ndim) if i not in axes]
    n = int(np.prod([x.shape[a] for a in axes], dtype=np.int64))
    elements = x.transpose([*kept, *axes]).reshape(*[x.shape[i] for i in kept], n)
    page = _page_in_lanes if x.ndim - 1 in axes else _page_in_turn
    return np.asarray(_in_pages(page, _combine(monoid, x.dtype), elements, identity(dtypes.of(x.dtype))))


@cache
def _combine(monoid: Op, dtype: np.dtype[Any]) -> Combine:
    """What combines elements of a type: the NumPy function itself, where the reference of the op only wraps it."""
    plain = getattr(monoid.reference, "plain", None)
    if isinstance(plain, np.ufunc) and plain.resolve_dtypes((dtype, dtype, None))[-1] == dtype:
        return plain
    return monoid.reference


def _reduce(monoid: Op, identity: Any, empty: Any) -> Any:
    def reference(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        d = dtypes.of(x.dtype)
        if np.prod([x.shape[a] for a in axes], dtype=np.int64) == 0:
            if empty is None:
                raise ShapeError(f"a reduction by {monoid} over no elements has no value")
            return np.full([n for i, n in enumerate(x.shape) if i not in axes], empty(d), x.dtype)
        out = x.astype(dtypes.compute_type(d).np)
        with np.errstate(all="ignore"):
            for run in reversed(adjacent_runs(axes)):
                out = _reduce_run(monoid, identity, out, run)
            return out.astype(x.dtype)

    return reference


def _arg(f: Any) -> Any:
    """NumPy's choice: the first NaN, else the first of the extremes; the two zeros are equal."""

    def reference(x: np.ndarray, axis: int) -> np.ndarray:
        return np.asarray(f(x.astype(dtypes.compute_type(dtypes.of(x.dtype)).np), axis=axis)).astype(np.int64)

    return reference


def _scan_pages(combine: Combine, x: np.ndarray, identity: Any) -> np.ndarray:
    """Running values of the last axis: steps of 1, 2, 4, 8 in groups, a carry over the groups of a page, a carry over pages."""
    n = x.shape[-1]
    page = min(PAGE, -(-n // GROUP) * GROUP)
    z = _split(_split(x, page, identity), GROUP, identity)  # (…, page, group, element)
    step = 1
    while step < GROUP:
        z = np.concatenate([z[..., :step], combine(z[..., :-step], z[..., step:])], axis=-1)
        step *= 2
    for g in range(1, z.shape[-2]):
        z[..., g, :] = combine(z[..., g - 1, -1:], z[..., g, :])
    pages = z.reshape(*z.shape[:-2], page)
    carry = None
    for p in range(pages.shape[-2]):
        last = pages[..., p, -1:].copy()
        if carry is not None:
            pages[..., p, :] = combine(carry, pages[..., p, :])
        carry = last if carry is None else combine(carry, last)
    return pages.reshape(*x.shape[:-1], pages.shape[-2] * page)[..., :n]


def _scan_in_turn(combine: Combine, x: np.ndarray, identity: Any) -> np.ndarray:
    y = x.copy()
    for i in range(1, x.shape[-1]):
        y[..., i] = combine(y[..., i - 1], x[..., i])
    return y


def _scan(monoid: Op, identity: Any) -> Any:
    def reference(x: np.ndarray, axis: int, reverse: bool | str) -> np.ndarray:
        d = dtypes.of(x.dtype)
        if reverse == LAST:
            return reference(x, axis, False).take(-1, axis)
        if x.size == 0:
            return x.copy()
        elements = np.moveaxis(x, axis, -1).astype(dtypes.compute_type(d).np)
        scan = _scan_pages if axis == x.ndim - 1 else _scan_in_turn
        with np.errstate(all="ignore"):
            if reverse:
                y = scan(monoid.reference, elements[..., ::-1], identity(d))[..., ::-1]
            else:
                y = scan(monoid.reference, elements, identity(d))
            return np.ascontiguousarray(np.moveaxis(y, -1, axis)).astype(x.dtype)

    return reference


# --- op definitions -------------------------------------------------------------------------------------------------


def _reduce_row(name: str, kinds: str, monoid: Op, identity: Any, empty: Any) -> Op:
    return register(
        Op(
            name,
            "reduce",
            1,
            _infer_reduce(name, kinds, empty),
            _reduce(monoid, identity, empty),
            attrs=("axes",),
            monoid=monoid,
            identity=identity,
            empty=empty,
            kinds=kinds,
        )
    )


def _arg_row(name: str, f: Any) -> Op:
    return register(Op(name, "reduce", 1, _infer_arg(name), _arg(f), attrs=("axis",), kinds="biuf", cost=2))


def _scan_row(name: str, kinds: str, monoid: Op, identity: Any) -> Op:
    return register(
        Op(
            name,
            "scan",
            1,
            _infer_scan(name, kinds),
            _scan(monoid, identity),
            attrs=("axis", "reverse"),
            monoid=monoid,
            identity=identity,
            kinds=kinds,
            cost=2,
        )
    )


reduce_sum = _reduce_row("reduce_sum", "iuf", ew.add, zero, lambda d: 0)
reduce_prod = _reduce_row("reduce_prod", "iuf", ew.mul, one, one)
reduce_max = _reduce_row("reduce_max", "biuf", ew.max_, lowest, None)
reduce_min = _reduce_row("reduce_min", "biuf", ew.min_, highest, None)
reduce_any = _reduce_row("reduce_any", "b", ew.or_, lambda d: False, lambda d: False)
reduce_all = _reduce_row("reduce_all", "b", ew.and_, lambda d: True, lambda d: True)
argmax = _arg_row("argmax", np.argmax)
argmin = _arg_row("argmin", np.argmin)
cumsum = _scan_row("cumsum", "iuf", ew.add, zero)
cumprod = _scan_row("cumprod", "iuf", ew.mul, one)
cummax = _scan_row("cummax", "biuf", ew.max_, lowest)
cummin = _scan_row("cummin", "biuf", ew.min_, highest)


# the reduction that combines elements by an elementwise op
REDUCED_BY = {r.monoid: r for r in TABLE.values() if r.kind == "reduce" and r.monoid is not None}


def reduction_by(monoid: Op | None) -> Op:
    """The reduction that combines elements by ``monoid``."""
    return REDUCED_BY[monoid]  # type: ignore[index]


def is_order_free(monoid: Op, d: dtypes.DType) -> bool:
    """Whether elements of this type may be combined in any order that keeps neighbours, with the same bits."""
    return d.is_integer or d.kind == "b" or "idempotent" in monoid.algebra
