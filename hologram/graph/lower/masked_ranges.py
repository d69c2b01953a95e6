"""Ranges of masked reductions: where a mask says which elements count, a loop runs over those alone.

``where(indices < k, x, 0).sum()`` adds zeros from k on. The comparison gives the end of the loop, rounded up to whole vectors; so a dot product in a
triangular loop takes as many steps as have something to add. The mask stays where it is, for the elements up to the end of the vector.

Bits stay as they are. A range of floats begins at a multiple of LANES in a page, so each element keeps its lane. What an element beyond the range
would add is neutral (zero in a sum) or is what any other of them adds (the other value of a maximum). One of them, if there is one, is kept: sums
start at -0.0, which a zero makes +0.0, and a maximum has to see its other value once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hologram import dtypes
from hologram.graph.kernel.ir import Accumulate, Loop, Stmt, Value
from hologram.ir.instruction import Ins
from hologram.ir.op import TABLE
from hologram.ir.symbolic import Expr, Int, atoms, bounds, counter, split_linear
from hologram.primitives.reductions import INTEGER_LANES, LANES, PAGE

MIN_MASKED_ELEMENTS = 64  # of a loop whose range is worth finding
_FAR = 2**52  # beyond any index, with room to add to it
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq"}
_NEGATED = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
_NEUTRAL = {"add": 0, "mul": 1}


class _End(NamedTuple):
    """What counts is from ``value - rest + offset`` on (``is_first``), or ends before it."""

    is_first: bool
    value: Value
    rest: Int
    offset: int


def narrow_range(
    loop: Loop,
    is_invariant: Callable[[Value], bool],
    is_uniform: Callable[[Value], bool],
    is_uniform_name: Callable[[str], bool],
    fresh_name: Callable[[], str],
) -> list[Ins]:
    """Lets ``loop`` run over the elements that count. Gives the instructions, to run before it, that find the range; none where all may count.

    ``is_invariant``: of a value, whether it is there before the loop; ``is_uniform``: whether it is, moreover, the same in all vector lanes around
    the loop, which have one range; ``is_uniform_name``: the same of a name in an index expression.
    """
    n = loop.extent
    if not isinstance(n, int) or n < MIN_MASKED_ELEMENTS or loop.limit is not None or loop.start != 0:
        return []
    masks = {_mask(s, is_invariant) for s in loop.body if not isinstance(s, Ins)}
    if len(masks) != 1:
        return []
    (mask,) = masks
    ends = [] if mask is None else _Masks(loop.var, is_uniform, is_uniform_name).ends(*mask)
    return _Range(loop, n, ends, fresh_name).instructions() if ends else []


def _mask(s: Stmt, is_invariant: Callable[[Value], bool]) -> tuple[Value, bool] | None:
    """The condition under which a statement of a loop accumulates more than a neutral value, and whether it is negated; None where there is none."""
    if not isinstance(s, Accumulate) or s.acc.op.kind != "reduce" or s.acc.op.monoid is None:
        return None
    (x,), monoid = s.args, s.acc.op.monoid
    while isinstance(x, Ins) and x.opname == "cast":
        x = x.args[0]
    if not isinstance(x, Ins) or x.opname != "select":
        return None
    condition, *values = x.args
    for k, other in enumerate(reversed(values)):
        if "idempotent" in monoid.algebra and is_invariant(other) or (monoid.name in _NEUTRAL and _is_const(other, _NEUTRAL[monoid.name])):
            return condition, bool(k)
    return None


def _is_const(x: Value, value: int) -> bool:
    return isinstance(x, Ins) and x.op == "const" and x.dtype.kind in "iufb" and bool(np.frombuffer(x.attrs[1], x.dtype.np)[0] == value)


class _Masks:
    """Reads conditions on the variable of a loop."""

    def __init__(self, var: str, is_uniform: Callable[[Value], bool], is_uniform_name: Callable[[str], bool]) -> None:
        self.var, self.is_uniform, self.is_uniform_name = var, is_uniform, is_uniform_name

    def ends(self, condition: Value, is_negated: bool = False) -> list[_End]:
        """Where what a condition holds for begins and ends; none where it says nothing of that."""
        if not isinstance(condition, Ins):
            return []
        name = condition.opname
        if name == "not":
            return self.ends(condition.args[0], not is_negated)
        if name == ("or" if is_negated else "and"):
            return [e for x in condition.args for e in self.ends(x, is_negated)]
        if is_negated:
            name = _NEGATED.get(name, "")
        return self._comparison(name, *condition.args) if name in _MIRRORED else []

    def _comparison(self, name: str, x: Value, y: Value) -> list[_End]:
        if not (isinstance(x, Ins) and x.op == "index"):
            x, y, name = y, x, _MIRRORED[name]
        if not (isinstance(x, Ins) and x.op == "index" and x.dtype.kind == y.dtype.kind == "i" and self.is_uniform(y)):
            return []
        at = self._position(x.attrs[0])
        if at is None:
            return []
        first = {"gt": 1, "ge": 0, "eq": 0}
        after = {"lt": 0, "le": 1, "eq": 1}
        return [_End(is_first, y, at, of[name]) for is_first, of in ((True, first), (False, after)) if name in of]

    def _position(self, e: Int) -> Int | None:
        """``rest`` of an index expression ``var + rest``, whose size is known to be small; None for any other expression."""
        linear = split_linear(e, self.var)
        if linear is None or linear[0] != 1:
            return None
        rest = linear[1]
        low, high = bounds(rest)
        if low is None or high is None or max(-low, high) >= _FAR:
            return None
        return rest if not isinstance(rest, Expr) or all(self.is_uniform_name(a.name) for a in atoms(rest)) else None


class _Range:
    """Writes the instructions that find the range of a loop of ``n`` elements."""

    def __init__(self, loop: Loop, n: int, ends: list[_End], fresh_name: Callable[[], str]) -> None:
        self.loop, self.n, self.ends, self.fresh_name = loop, n, ends, fresh_name
        self.lanes = INTEGER_LANES if all(a.value_dtype.kind in "iub" for a in loop.accs) else LANES
        self.body: list[Ins] = []

    def instructions(self) -> list[Ins]:
        firsts, stops = ([self._place(e) for e in self.ends if e.is_first is which] for which in (True, False))
        start = self._const(0)
        if firsts and self.n <= PAGE:  # beyond a page elements would change their pages
            start = self._start(self._folded("max", firsts))
        if not stops:
            return self.body if start.name else []
        stop = self._op("min", self._folded("min", stops), self._const(self.n))
        # one that does not count, and then whole vectors; never less than one, though the range be empty
        vectors = self._op(
            "div_trunc", self._op("max", self._op("add", stop, self._const(self.lanes)), self._const(self.lanes)), self._const(self.lanes)
        )
        stop = self._op("max", self._op("mul", vectors, self._const(self.lanes)), self._op("add", start, self._const(self.lanes)))
        stop = self._named(self._op("min", stop, self._const(self.n)), self.n + 1)
        self.loop.limit = counter(stop.name, self.n + 1)
        return self.body

    def _start(self, first: Ins) -> Ins:
        """The start of the vector of the last element that does not count."""
        before = self._op("min", self._op("sub", first, self._const(1)), self._const(self.n - 1))
        vector = self._op("div_trunc", self._op("max", before, self._const(0)), self._const(self.lanes))
        self._named(vector, (self.n - 1) // self.lanes + 1)
        self.loop.start, self.loop.limit = counter(vector.name, vector.extent) * self.lanes, self.n
        start = self._op("mul", vector, self._const(self.lanes))
        start.name = self.fresh_name()
        start.extent = self.n
        return start

    def _place(self, end: _End) -> Ins:
        at = Ins.index(end.offset - end.rest)
        self.body.append(at)
        x = end.value
        if x.dtype is not dtypes.int64:
            self.body.append(cast := Ins(TABLE["cast"], (x,), ("int64",), dtypes.int64))
            x = cast
        near = self._op("min", self._op("max", x, self._const(-_FAR)), self._const(_FAR))
        return self._op("add", near, at)

    def _folded(self, op: str, places: list[Ins]) -> Ins:
        out = places[0]
        for x in places[1:]:
            out = self._op(op, out, x)
        return out

    def _const(self, value: int) -> Ins:
        ins = Ins.const(value, dtypes.int64)
        self.body.append(ins)
        return ins

    def _op(self, op: str, *args: Value) -> Ins:
        ins = Ins(TABLE[op], args, (), dtypes.int64)
        self.body.append(ins)
        return ins

    def _named(self, ins: Ins, extent: int) -> Ins:
        ins.name, ins.extent = self.fresh_name(), extent
        return ins
