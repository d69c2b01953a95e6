"""A lowered kernel: the kernel, the nodes behind its parameters, and which outputs may be written in place of inputs."""

from __future__ import annotations

from hologram.graph.fusion.groups import Group
from hologram.graph.kernel.ir import Buffer, Kernel, Store
from hologram.ir.instruction import Ins
from hologram.ir.node import Node
from hologram.ir.symbolic import Int


class Lowered:
    """A kernel, the nodes behind its parameters, and which outputs may stand where an input stood."""

    __slots__ = ("kernel", "bindings", "in_place", "group")

    def __init__(self, kernel: Kernel, bindings: list[Node], group: Group) -> None:
        self.kernel, self.bindings, self.group = kernel, bindings, group
        self.in_place: list[tuple[int, int]] = []


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
