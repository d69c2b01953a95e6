"""What rows take for granted of the values they compute with, made sure of in programs from files.

The front end clamps indices and keeps divisors from 0, so that backends need not look again. A file may say anything: where the ranges of its
integers do not prove what a row takes for granted, the value is moved into range. Programs that Hologram wrote come out as they were.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.ir.node import Builder, Node, const_attrs, const_value
from hologram.ir.op import TABLE, Op
from hologram.ir.storage import as_array
from hologram.ir.symbolic import Expr, Int, bounds
from hologram.primitives.control import switch

Range = tuple[int, int]


def _of_type(dtype: DType) -> Range:
    if dtype.kind == "b":
        return 0, 1
    info = np.iinfo(dtype.np)
    return int(info.min), int(info.max)


def _hull(*ranges: Range) -> Range:
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _between(low: Int, high: Int) -> Range:
    """The numbers that integers between symbolic ends may be, none of them negative."""
    return max(bounds(low)[0] or 0, 0), max(_most(high), 0)


def _most(x: Int) -> int:
    high = bounds(x)[1]
    return _of_type(dtypes.int64)[1] if high is None else high


def _part_of_iota(node: Node) -> tuple[Int, Int] | None:
    """The first and last number of a slice of numbers counted along one axis."""
    if node.op.name != "slice" or node.inputs[0].op.name != "iota" or len(node.shape) != 1 or node.attrs[2][0] < 1:
        return None
    (start,), (stop,), _ = node.attrs
    return start, stop - 1


def _product(a: Range, b: Range) -> Range:
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


_KINDS = "biu"
_PLACES = ("argmax", "argmin", "argsort")  # indices along the axis that is their attribute
# by rows: the range of the result from those of the operands
_ARITHMETIC: dict[str, Callable[..., Range]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "mul": _product,
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "select": lambda c, a, b: _hull(a, b),
    "cast": lambda a: a,
    "gather": lambda x, *starts: x,
}


class Guards:
    """Knows ranges of a graph's integers, and builds inputs that keep what a row takes for granted.

    ``tops`` are symbolic integers that a value does not exceed: indices along an axis of symbolic extent are compared with them.
    """

    def __init__(self, build: Builder) -> None:
        self.build = build
        self.ranges: dict[Node, Range] = {}
        self.tops: dict[Node, Expr] = {}

    def range(self, node: Node) -> Range:
        return self.ranges.get(node) or _of_type(node.dtype)

    def note(self, node: Node) -> None:
        """Finds the range of a node whose inputs are known."""
        if node.dtype.kind not in _KINDS:
            return
        found = self._found(node)
        least, most = _of_type(node.dtype)
        if found is not None and least <= found[0] and found[1] <= most:  # else it may have wrapped
            self.ranges[node] = found
            top = self._top(node)
            if isinstance(top, Expr):
                self.tops[node] = top

    def _found(self, node: Node) -> Range | None:
        name = node.op.name
        if name == "const":
            return (int(const_value(node)),) * 2
        if name == "leaf":
            array = as_array(node.attrs[0])
            return (int(array.min()), int(array.max())) if array.size else None
        if name == "iota":
            return _between(0, node.shape[node.attrs[1]] - 1)
        if name in _PLACES:
            return _between(0, node.inputs[0].shape[node.attrs[0]] - 1)
        if name == "project":  # pivots
            return _between(0, node.shape[-1] - 1) if node.inputs[0].op.name == "lu" else None
        if any(x.dtype.kind not in _KINDS for x in node.inputs):
            return None
        if (part := _part_of_iota(node)) is not None:
            return _between(*part)
        given = [self.range(x) for x in node.inputs]
        if name in _ARITHMETIC:
            return _ARITHMETIC[name](*given)
        return _hull(*given) if node.op.kind == "movement" else None

    def _top(self, node: Node) -> Int | None:
        """A symbolic integer that ``node``, which does not wrap, does not exceed."""
        name, inputs = node.op.name, node.inputs
        if name == "iota":
            return node.shape[node.attrs[1]] - 1
        if (part := _part_of_iota(node)) is not None:
            return part[1]
        tops = [self.tops.get(x) for x in inputs]
        if name == "min":
            return tops[0] if tops[1] is None else tops[1]
        if not tops or tops[0] is None:
            return None
        if name == "max":
            low, _ = bounds(tops[0])
            return tops[0] if low is not None and self.range(inputs[1])[1] <= low else None
        if name == "sub":
            return tops[0] - self.range(inputs[1])[0]
        return tops[0] if name in ("reshape", "broadcast", "transpose") else None

    # --- making sure -------------------------------------------------------------------------------------------------

    def guarded(self, op: Op, inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> tuple[Node, ...]:
        """``inputs``, those of them replaced that might not keep what ``op`` takes for granted."""
        if op.kind == "gather":
            for k, (a, size) in enumerate(zip(*attrs[:2], strict=False)):
                if 1 + k < len(inputs) and a < len(inputs[0].shape):
                    inputs = self._replaced(inputs, 1 + k, inputs[0].shape[a] - size + 1)
            return inputs
        if op is switch:
            return self._replaced(inputs, 0, len(attrs[0]))
        if op.name == "lu_solve":
            return self._replaced(inputs, 2, inputs[1].shape[-1])
        guard = op.tests.get("guard") if inputs and inputs[0].dtype.is_integer else None
        if guard == "count":
            return self._replaced(inputs, 1, inputs[0].dtype.bits)
        return (inputs[0], self._divisor(*inputs)) if guard == "divisor" else inputs

    def _replaced(self, inputs: tuple[Node, ...], at: int, places: Int) -> tuple[Node, ...]:
        """``inputs[at]`` moved into ``0 .. places - 1``."""
        x = inputs[at]
        low, high = self.range(x)
        if isinstance(places, int):
            if places <= 0 or (low >= 0 and high < places):
                return inputs
            _, most = _of_type(x.dtype)
            last = self._const(min(places - 1, most), x.dtype)
        else:
            x = x if x.dtype is dtypes.int64 else self._made("cast", (x,), (dtypes.int64.name,))
            if low >= 0 and self.tops.get(x) == places - 1:
                return inputs
            counted = self._made("iota", (), ((places,), 0, dtypes.int64.name))
            ending = self._made("slice", (counted,), ((places - 1,), (places,), (1,)))
            last = self._made("reshape", (ending,), ((),))
        x = self._made("max", (self._made("min", (x, last)), self._const(0, x.dtype)))
        return (*inputs[:at], x, *inputs[at + 1 :])

    def _divisor(self, x: Node, y: Node) -> Node:
        """``y`` with 1 for 0, and for the -1 that the least integer is divided by."""
        low, high = self.range(y)
        one = self._const(1, y.dtype)
        if low <= 0 <= high:
            y = self._made("select", (self._made("eq", (y, self._const(0, y.dtype))), one, y))
        least = _of_type(x.dtype)[0]
        if low <= -1 <= high and self.range(x)[0] == least:
            traps = [self._made("eq", (v, self._const(value, x.dtype))) for v, value in ((x, least), (y, -1))]
            y = self._made("select", (self._made("and", (traps[0], traps[1])), one, y))
        return y

    def _const(self, value: int, dtype: DType) -> Node:
        return self._made("const", (), const_attrs(value, dtype))

    def _made(self, name: str, inputs: tuple[Node, ...], attrs: tuple[Any, ...] = ()) -> Node:
        node = self.build(TABLE[name], inputs, attrs)
        self.note(node)
        return node
