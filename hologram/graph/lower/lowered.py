"""A lowered kernel: the kernel, the nodes behind its parameters, and which outputs may be written in place of inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hologram.graph.fusion.groups import Group
from hologram.graph.kernel.ir import Buffer, Kernel, Loop, Store
from hologram.ir.instruction import Ins
from hologram.ir.node import Node
from hologram.ir.symbolic import Expr, Int, atoms, bounds


class Lowered:
    """A kernel, the nodes behind its parameters, and which outputs may stand where an input stood (``in_place``).

    ``is_copy``: the kernel does nothing but copy parameter 0 to parameter 1, so where both share memory it is left out.
    """

    __slots__ = ("kernel", "bindings", "in_place", "group", "is_copy")

    def __init__(self, kernel: Kernel, bindings: list[Node], group: Group) -> None:
        self.kernel, self.bindings, self.group = kernel, bindings, group
        self.in_place: list[tuple[int, int]] = []
        self.is_copy = False

    def reads(self) -> list[Node]:
        """The arrays that the kernel reads."""
        return [n for n, b in zip(self.bindings, self.kernel.params, strict=True) if b.role != "out"]

    def writes(self) -> list[Node]:
        """The arrays that the kernel writes."""
        return [n for n, b in zip(self.bindings, self.kernel.params, strict=True) if b.role != "in"]

    def shared(self) -> list[tuple[Node, Node]]:
        """``(result, operand)`` where sharing a buffer saves a copy."""
        return [(self.bindings[1], self.bindings[0])] if self.is_copy else []

    def overwrites(self, result: Node, operand: Node) -> bool:
        """Whether ``result`` may be written where ``operand`` is read."""
        return any(self.bindings[out] is result and self.bindings[old] is operand for out, old in self.in_place)


def in_place_pairs(kernel: Kernel) -> list[tuple[int, int]]:
    """``(out, in)`` parameters where the input's elements are read only where the result's are written, and before that."""
    reads: dict[Buffer, dict[Int, int]] = {}
    writes: dict[Buffer, dict[Int, int]] = {}
    for moment, s in enumerate(kernel.walk()):
        if isinstance(s, Ins) and s.op == "load":
            reads.setdefault(s.attrs[0], {})[s.attrs[1]] = moment
        elif isinstance(s, Store):
            writes.setdefault(s.buffer, {}).setdefault(s.index, moment)
    number = {p: i for i, p in enumerate(kernel.params)}
    return [
        (number[out], number[old])
        for out, written in writes.items()
        for old, read in reads.items()
        if out in number and old in number and old.dtype.bits == out.dtype.bits and old.size == out.size
        if read.keys() == written.keys() and all(read[index] < written[index] for index in read)
    ]


def in_place_in_all(parts: Sequence[tuple[Kernel, Sequence[tuple[int, int]]]]) -> list[tuple[int, int]]:
    """The ``(out, in)`` parameters of kernels for disjoint parts of the same results, each with its own pairs, that hold for all of them: where each
    part that reads the input reads no element but those that it writes itself."""

    def holds(pair: tuple[int, int]) -> bool:
        return all(pair in own or not _reads(kernel, kernel.params[pair[1]]) for kernel, own in parts)

    return sorted(filter(holds, {pair for _, own in parts for pair in own}))


def _reads(kernel: Kernel, b: Buffer) -> bool:
    return any(isinstance(s, Ins) and s.op == "load" and s.attrs[0] is b for s in kernel.walk())


def copies_whole(kernel: Kernel) -> bool:
    """Whether a kernel does nothing but copy all of parameter 0 to parameter 1."""
    loads, stores = ([s for s in kernel.walk() if isinstance(s, kind) and _is_access(s)] for kind in (Ins, Store))
    if len(kernel.params) != 2 or len(loads) != 1 or len(stores) != 1 or any(isinstance(s, Ins) and s is not loads[0] for s in kernel.walk()):
        return False
    (load,), (store,), (source, target) = loads, stores, kernel.params
    assert isinstance(load, Ins) and isinstance(store, Store)
    same = load.attrs == (source, store.index) and store.buffer is target and store.value is load and store.mask is None and not load.args
    return same and source.dtype is target.dtype and source.size == target.size


def _is_access(s: object) -> bool:
    return isinstance(s, Store) or (isinstance(s, Ins) and s.op == "load")


def window_pairs(kernel: Kernel) -> list[tuple[int, int]]:
    """``(inout, in)`` parameters of a kernel that writes one window, each element once, where the input may be the memory that it writes.

    Each element that is read lies where the iteration that reads it writes, or in a row that no iteration writes but at its own place: the
    distance from the written element is the same for all iterations, and its multiples leave the window.
    """
    loops = [s for s in kernel.walk() if isinstance(s, Loop) and s.extent != 1]
    stores = [s for s in kernel.walk() if isinstance(s, Store)]
    if len(stores) != 1 or any(loop.kind == "serial" for loop in loops):
        return []
    variables = {loop.var for loop in loops}
    (store,) = stores
    number = {p: i for i, p in enumerate(kernel.params)}
    loads: dict[Buffer, list[Int]] = {}
    for s in kernel.walk():
        if isinstance(s, Ins) and s.op == "load":
            loads.setdefault(s.attrs[0], []).append(s.attrs[1])
    return [
        (number[store.buffer], number[old])
        for old, indices in loads.items()
        if old is not store.buffer and old in number and store.buffer in number and old.dtype.bits == store.buffer.dtype.bits
        if all(_misses(index, store.index, variables) for index in indices)
    ]


def _misses(read: Int, written: Int, variables: set[str]) -> bool:
    """Whether what one iteration reads no other one writes."""
    if not variables:
        return True
    apart = read - written
    if apart == 0:
        return True
    if any(a.name in variables for a in atoms(apart)):
        return False
    coefficients = apart.terms.values() if isinstance(apart, Expr) else [apart]
    low, high = bounds(_varying(written, variables))
    return low is not None and high is not None and high - low < math.gcd(*coefficients)


def _varying(e: Int, variables: set[str]) -> Int:
    """The terms of ``e`` that change with the iteration."""
    if not isinstance(e, Expr):
        return 0
    out: Int = 0
    for monomial, c in e.terms.items():
        term = Expr({monomial: c})
        if any(a.name in variables for a in atoms(term)):
            out = out + term
    return out
