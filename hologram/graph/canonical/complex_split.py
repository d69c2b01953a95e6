"""Complex splitting: real and imaginary parts in place of complex values. After this pass no op computes with complex numbers.

A complex value of a graph has, in the graph made of it, one of two forms: *whole*, a node of the complex type whose elements are moved as bits, or a
*pair* of real nodes. Arguments, realised values and what control flow gives are whole; what is computed is a pair. ``real`` and ``imag`` of a
whole value, and ``complex`` of a pair, lead from one form to the other where another one is wanted, so a graph that only moves complex
arrays stays as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.ir.expression_builder import Code, Value
from hologram.ir.graph import Graph
from hologram.ir.leaves import const
from hologram.ir.node import Builder, Node, const_value
from hologram.ir.op import Op, Shape
from hologram.primitives.complex.parts import Each, Pair, complex_, imag, join, real
from hologram.primitives.movement import broadcast

_EDGES = (real, imag, complex_)


def split_complex(graph: Graph) -> Graph:
    """``graph`` with real ops in place of complex ones; the graph itself where there are none."""
    nodes = graph.nodes()
    if not any(_computes(n) for n in nodes):
        return graph
    run = _Splitting()
    for n in nodes:
        run.take(n)
    lines: dict[Node, Any] = {}
    for n, line in graph.lines.items():
        for made in run.images(n):
            lines.setdefault(made, line)
    return Graph([run.whole[x] for x in graph.inputs], [run.wholly(x) for x in graph.outputs], lines)


def _touches(node: Node) -> bool:
    return node.dtype.is_complex or any(x.dtype.is_complex for x in node.inputs)


def _computes(node: Node) -> bool:
    """Whether a node is one that kernels have no code for."""
    split = node.op.split
    return split is not None and node.op not in _EDGES and not (isinstance(split, Each) and split.moves) and _touches(node)


class NodeCode(Code):
    """Builds graph nodes for what is written on values."""

    def __init__(self, build: Builder) -> None:
        self.build = build

    def const(self, number: Any, d: DType) -> Value:
        return Value(self, self.build.const(number, d))  # type: ignore[arg-type]

    def apply(self, row: Op, args: tuple[Value, ...], attrs: tuple[Any, ...]) -> Value:
        return Value(self, self.build(row, tuple(node_of(a) for a in args), attrs))  # type: ignore[arg-type]

    def pair(self, re: Node, im: Node) -> Pair:
        return Pair(Value(self, re), Value(self, im))  # type: ignore[arg-type]


def node_of(value: Value) -> Node:
    """The node that a value of a :class:`NodeCode` is."""
    return value.ins  # type: ignore[return-value]


class _Splitting:
    """One walk over a graph: the images of its nodes, each whole, a pair, or both once both have been wanted."""

    def __init__(self) -> None:
        self.build = Builder()
        self.code = NodeCode(self.build)
        self.whole: dict[Node, Node] = {}
        self.pairs: dict[Node, tuple[Node, Node]] = {}

    def images(self, node: Node) -> list[Node]:
        return [*self.pairs.get(node, ()), *([self.whole[node]] if node in self.whole else [])]

    def take(self, node: Node) -> None:
        if node.op is const and node.dtype.is_complex:
            self.pairs[node] = self._constants(node)
        elif not _touches(node) or not self._splits(node):
            self.whole[node] = self.build(node.op, tuple([self.wholly(x) for x in node.inputs]), node.attrs)
        else:
            self._split(node)

    def _splits(self, node: Node) -> bool:
        """Whether a node with complex values is made of its parts."""
        split = node.op.split
        if isinstance(split, Each) and split.moves:
            return any(x in self.pairs for x in node.inputs)
        return split is not None

    def _split(self, node: Node) -> None:
        values = [self.code.pair(*self.parts(x)) if x.dtype.is_complex else Value(self.code, self.whole[x]) for x in node.inputs]  # type: ignore[arg-type]
        made = node.op.split(*values, *node.attrs)  # type: ignore[misc]
        if isinstance(made, Pair):
            re, im = (self._shaped(node_of(part), node.shape) for part in made)
            self.pairs[node] = re, im
        else:
            self.whole[node] = self._shaped(node_of(made), node.shape)

    def _shaped(self, x: Node, shape: Shape) -> Node:
        """A part that does not depend on the arguments is a scalar."""
        return x if x.shape == shape else self.build(broadcast, (x,), (shape, ()))

    def _constants(self, node: Node) -> tuple[Node, Node]:
        value, d = const_value(node), dtypes.real_of(node.dtype)
        return self.build.const(value.real, d), self.build.const(value.imag, d)

    def parts(self, node: Node) -> tuple[Node, Node]:
        found = self.pairs.get(node)
        if found is None:
            x = self.whole[node]
            found = self.pairs[node] = self.build(real, (x,)), self.build(imag, (x,))
        return found

    def wholly(self, node: Node) -> Node:
        found = self.whole.get(node)
        if found is None:
            found = self.whole[node] = self._joined(*self.pairs[node])
        return found

    def _joined(self, re: Node, im: Node) -> Node:
        if re.op is const and im.op is const:
            value = join(np.asarray(const_value(re)), np.asarray(const_value(im)))
            return self.build(const, (), (dtypes.of(value.dtype).name, value.tobytes()))
        return self.build(complex_, (re, im))
