"""Writing graphs by hand, and the kernels that become of them, each verified."""

from __future__ import annotations

from typing import Any

from hologram import dtypes
from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.kernel.ir import Kernel
from hologram.graph.kernel.verify import verify_kernel
from hologram.graph.pipeline import compile_to_plan
from hologram.graph.schedule.tiles import CpuTileConfig
from hologram.ir.graph import Graph
from hologram.ir.instruction import Ins
from hologram.ir.node import Builder, Node, const_attrs
from hologram.ir.op import Shape
from hologram.primitives import TABLE
from tests.support import along_axis


class Draft:
    """A graph under construction: ``d("reshape", x, (2, 3))`` is an op on the nodes among its arguments, the rest being its attributes."""

    def __init__(self) -> None:
        self.build = Builder()
        self.inputs: list[Node] = []

    def input(self, *shape: Any, dtype: str = "float32") -> Node:
        self.inputs.append(self.build(TABLE["input"], (), (len(self.inputs), shape, dtype, None)))
        return self.inputs[-1]

    def const(self, value: Any, dtype: str = "float32") -> Node:
        return self.build(TABLE["const"], (), const_attrs(value, dtypes.of(dtype)))

    def __call__(self, op: str, *parts: Any) -> Node:
        nodes = tuple(p for p in parts if isinstance(p, Node))
        return self.build(TABLE[op], nodes, tuple(p for p in parts if not isinstance(p, Node)))

    def spread(self, x: Node, shape: Shape, *dims: int) -> Node:
        """``x`` along the axes ``dims`` of ``shape``."""
        return self("broadcast", x, shape, dims)

    def take(self, x: Node, indices: Node, axis: int) -> Node:
        """``x`` at ``indices`` along an axis."""
        return along_axis.take(self.build, x, indices, axis)

    def scatter(self, op: str, x: Node, indices: Node, updates: Node, axis: int, batch: int = 0) -> Node:
        """``x`` with ``updates`` at ``indices`` along an axis."""
        return along_axis.scatter(self.build, op, x, indices, updates, axis, batch)

    def over_rows(self, op: str, x: Node) -> Node:
        """A reduction over the last axis, back at the shape of ``x``."""
        last = x.ndim - 1
        return self.spread(self(op, x, (last,)), x.shape, *range(last))

    def part(self, x: Node, axis: int, start: Any, stop: Any, step: int = 1) -> Node:
        """A slice along one axis."""
        starts, stops, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
        starts[axis], stops[axis], steps[axis] = start, stop, step
        return self("slice", x, tuple(starts), tuple(stops), tuple(steps))

    def graph(self, *outputs: Node) -> Graph:
        return Graph(self.inputs, outputs)

    def schedule(self, *outputs: Node, precision: str = "exact") -> ExecutionPlan:
        return scheduled(self.graph(*outputs), precision)


TILE = CpuTileConfig(6, 256)  # of a machine with 32 registers of 64 bytes, whatever runs the tests


def scheduled(graph: Graph, precision: str = "exact") -> ExecutionPlan:
    schedule = compile_to_plan(graph, precision, TILE)
    for k in schedule.kernels:
        verify_kernel(k.kernel)
    return schedule


def kernels(schedule: ExecutionPlan) -> list[Kernel]:
    return [k.kernel for k in schedule.kernels]


def count(kernel: Kernel, op: str) -> int:
    """How many instructions of a kernel are ``op``."""
    return sum(isinstance(s, Ins) and s.opname == op for s in kernel.walk())


def softmax(d: Draft, x: Node) -> Node:
    e = d("exp", d("sub", x, d.over_rows("reduce_max", x)))
    return d("div", e, d.over_rows("reduce_sum", e))


def layer_norm(d: Draft, x: Node, gain: Node, bias: Node) -> Node:
    last = x.ndim - 1
    n = d.const(x.shape[last])
    mean = d("div", d("reduce_sum", x, (last,)), n)
    centred = d("sub", x, d.spread(mean, x.shape, *range(last)))
    variance = d("div", d("reduce_sum", d("square", centred), (last,)), n)
    deviation = d("sqrt", d("add", variance, d.const(1e-5)))
    normal = d("div", centred, d.spread(deviation, x.shape, *range(last)))
    return d("add", d("mul", normal, d.spread(gain, x.shape, last)), d.spread(bias, x.shape, last))


def log_sum_exp(d: Draft, x: Node) -> Node:
    last = x.ndim - 1
    top = d("reduce_max", x, (last,))
    e = d("exp", d("sub", x, d.spread(top, x.shape, *range(last))))
    return d("add", d("log", d("reduce_sum", e, (last,))), top)


def product(d: Draft, x: Node, y: Node) -> Node:
    """The matrix product (…, n, k) by (…, k, m), as a sum over columns."""
    *batch, n, k = x.shape
    space = (*batch, n, k, y.shape[-1])
    b = len(batch)
    left = d.spread(x, space, *range(b + 2))
    right = d.spread(y, space, *range(b), b + 1, b + 2)
    return d("reduce_sum", d("mul", left, right), (b + 1,))


def adam(d: Draft, n: int) -> tuple[Node, Node, Node]:
    p, g, m, v = (d.input(n) for _ in range(4))
    m = d("add", d("mul", m, d.const(0.9)), d("mul", g, d.const(0.1)))
    v = d("add", d("mul", v, d.const(0.999)), d("mul", d("square", g), d.const(0.001)))
    step = d("div", d("mul", m, d.const(0.01)), d("add", d("sqrt", v), d.const(1e-8)))
    return d("sub", p, step), m, v
