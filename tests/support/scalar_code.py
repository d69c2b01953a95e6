"""Decompositions run on NumPy arrays: each instruction by its row's reference, ``mad`` with one rounding or with two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from hologram import dtypes
from hologram.ir.expression_builder import Rare, decompose
from hologram.primitives import Op

Watch: TypeAlias = Callable[[Any, list[Any], np.ndarray], None]


def run(row: Op, arrays: list[np.ndarray], fused: bool, attrs: tuple[Any, ...] = (), watch: Watch | None = None) -> np.ndarray:
    """The decomposition of ``row`` on float32 or float64 arrays of one shape. ``watch`` is shown each instruction, its operands and its result."""
    parameters, body, result = decompose(row, tuple(dtypes.of(a.dtype) for a in arrays), attrs)
    values: dict[Any, np.ndarray] = dict(zip(parameters, arrays, strict=True))
    with np.errstate(all="ignore"):
        _run_body(body, values, fused, watch)
    return np.broadcast_to(values[result], arrays[0].shape)


def _run_body(body: list[Any], values: dict[Any, np.ndarray], fused: bool, watch: Watch | None) -> None:
    for ins in body:
        if isinstance(ins, Rare):
            condition, fast = (_value(a, values) for a in ins.args)
            inner = dict(values)
            _run_body(ins.body, inner, fused, watch)
            values[ins] = np.where(condition, _value(ins.slow, inner), fast)
        elif ins.op != "const":
            operands = [_value(a, values) for a in ins.args]
            values[ins] = _fma(*operands) if fused and ins.op.name == "mad" else ins.op.reference(*operands, *ins.attrs)
            if watch is not None:
                watch(ins, operands, values[ins])


def _value(v: Any, values: Mapping[Any, np.ndarray]) -> np.ndarray:
    return np.frombuffer(v.attrs[1], v.dtype.np)[0] if v not in values and v.op == "const" else values[v]


def _fma(x: Any, y: Any, z: Any) -> np.ndarray:
    """x*y + z rounded once, but for cases halfway in the wider sum."""
    if np.result_type(x, y, z) == np.float32:
        return np.asarray(np.float64(x) * np.float64(y) + np.float64(z)).astype(np.float32)
    product = np.asarray(x * y)
    halves = [(h := _leading(v), v - h) for v in (np.asarray(x), np.asarray(y))]
    (xh, xl), (yh, yl) = halves
    rest = ((xh * yh - product) + xh * yl + xl * yh) + xl * yl
    total = product + z
    back = total - product
    error = (product - (total - back)) + (z - back)
    exact = total + (error + rest)
    return np.where(np.isfinite(exact), exact, total)


def _leading(x: np.ndarray) -> np.ndarray:
    """x without the lower 27 bits of its significand."""
    return (x.view(np.uint64) & np.uint64(0xFFFFFFFFF8000000)).view(np.float64)
