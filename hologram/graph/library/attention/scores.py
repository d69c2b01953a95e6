"""The base of attention kernels: indices of scores, and instructions for the elements of a graph around products."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hologram.graph.fusion.groups import Group
from hologram.graph.kernel.build import apply, const, finish_kernel, index, named
from hologram.graph.kernel.ir import Acc, Accumulate, Buffer, Kernel, Loop, Stmt, Value
from hologram.graph.lower.lowered import Lowered
from hologram.graph.lower.scalarize import ScalarProgram
from hologram.ir.index_maps import Index
from hologram.ir.instruction import Ins
from hologram.ir.node import Node
from hologram.ir.op import TABLE
from hologram.ir.symbolic import Int, atoms, counter, floordiv, mod, prod


class ScoreKernel:
    """A kernel that cuts the *own* axis of scores in blocks, one per parallel iteration, and walks the other one. Names: ``h0, h1, …`` the position
    along the other axes, ``row`` the parallel iteration's first index along its own axis."""

    def __init__(self, group: Group, materialized: set[Node], scores: Node, own: int, walked: int) -> None:
        self.group, self.scores, self.own_axis, self.walked_axis = group, scores, own, walked
        self.buffers = ScalarProgram(group, materialized)
        self.dtype = scores.dtype
        self.own_extent, self.walked_extent = scores.shape[own], scores.shape[walked]
        self.head = {i: 0 if n == 1 else counter(f"h{i}", n) for i, n in self.others}

    # --- where things are ----------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:
        """The extent of the own axis, where it is known."""
        return static(self.own_extent)

    @property
    def length(self) -> int:
        """The extent of the walked axis, where it is known."""
        return static(self.walked_extent)

    @property
    def others(self) -> list[tuple[int, Int]]:
        """The axes of scores but the own and the walked one, and their extents."""
        return [(i, n) for i, n in enumerate(self.scores.shape) if i not in (self.own_axis, self.walked_axis)]

    def score_index(self, own: Int, walked: Int) -> Index:
        """An element of the scores."""
        return tuple(own if i == self.own_axis else walked if i == self.walked_axis else self.head[i] for i in range(self.scores.ndim))

    def scratch(self, name: str, size: int) -> Buffer:
        return Buffer(name, self.dtype, "scratch", size)

    # --- instructions --------------------------------------------------------------------------------------------------

    def element(
        self, node: Node, index: Index, inner: list[Stmt], names: set[str], outer: list[Stmt], known: Mapping[Node, Value] | None = None
    ) -> Value:
        """An element; what depends on ``names`` goes to ``inner``, the rest to ``outer``. ``known``: values of other nodes at that element,
        which go with ``inner``."""
        values = ScalarProgram(self.group, self.buffers.materialized, whole=self.buffers)
        values.defined.update(known or {})
        out = values.element(node, index, ())
        depends: set[Value] = set(values.defined.values())
        names = set(names)
        for v in values.order:
            assert isinstance(v, Ins)
            if any(a in depends for a in v.args) or any(
                a.name in names for e in v.attrs if not isinstance(e, (str, bytes, Buffer)) for a in atoms(e)
            ):
                depends.add(v)
                names.add(v.name)
                inner.append(v)
            else:
                outer.append(v)
        return out

    def add_product(self, loop: Loop, x: Value, y: Value) -> None:
        """One more sum of products in a loop."""
        acc = Acc(TABLE["reduce_sum"], self.dtype, self.dtype)
        loop.accs.append(acc)
        loop.body.append(Accumulate(acc, (apply(loop.body, "fused_mul", x, y),)))

    def lowest(self, body: list[Stmt]) -> Ins:
        """The least finite number, from which maxima start: the exponential of -inf is 0 even where there is nothing else, and so is the sum."""
        return const(body, float(np.finfo(self.dtype.np).min), self.dtype)

    # --- the kernel ----------------------------------------------------------------------------------------------------

    def start(self, blocks: Int, repeats: bool = False) -> tuple[Kernel, list[Stmt], Int]:
        """A kernel with a parallel iteration for each block of each head, the parallel iteration's statements, and the number of its block;
        ``repeats``: see :class:`Loop`."""
        kernel = Kernel()
        kernel.iterations = prod(n for _, n in self.others) * blocks
        parallel = Loop("parallel", "p", 0, kernel.iterations)
        parallel.repeats = repeats
        kernel.body.append(parallel)
        p = counter("p", kernel.iterations)
        at = floordiv(p, blocks)
        for i, n in reversed(self.others):
            if n != 1:
                named(index(parallel.body, mod(at, n)), f"h{i}")
            at = floordiv(at, n)
        return kernel, parallel.body, mod(p, blocks)

    def finish(self, kernel: Kernel, scratch: list[Buffer], cost: float) -> Lowered:
        kernel.params, kernel.scratch = list(self.buffers.buffers.values()), scratch
        finish_kernel(kernel)
        kernel.cost = cost
        return Lowered(kernel, list(self.buffers.buffers), self.group)


def static(n: Int) -> int:
    assert isinstance(n, int), n
    return n
