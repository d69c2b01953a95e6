"""Splits complex numbers into their parts: the pass ``complexes``, after which no op computes with complex values.

A complex value of a graph has, in the graph made of it, one of two forms: *whole*, a node of the complex type whose elements are moved as bits, or a
*pair* of real nodes. Arguments, realised values and what control flow gives are whole; what is computed is a pair. ``real`` and ``imag`` of a
whole value, and ``complex`` of a pair, lead from one form to the other where another one is wanted, so a graph that only moves complex
arrays stays as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.control.body import Body
from hologram.dtypes import DType
from hologram.graph.builder import Code, Value
from hologram.primitives.complexes import Each, Pair, complex_, imag, join, real
from hologram.primitives.control import project, scan
from hologram.primitives.leaves import const, input_
from hologram.primitives.movement import broadcast, concatenate, reshape, slice_, transpose
from hologram.primitives.op import Op, Shape
from hologram.symbolic import prod
from hologram.trace.node import Builder, Graph, Node, const_attrs, const_value

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
        return Value(self, self.build(const, (), const_attrs(number, d)))  # type: ignore[arg-type]

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
        return self.build(const, (), const_attrs(value.real, d)), self.build(const, (), const_attrs(value.imag, d))

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


# --- products of many elements ---------------------------------------------------------------------------------------


def product(z: Pair, axes: tuple[int, ...]) -> Pair:
    """The product over ``axes``, element by element in C order."""
    code, (re, im) = _opened(z)
    if not axes:
        return z
    kept = [i for i in range(re.ndim) if i not in axes]
    n, rest = prod(re.shape[a] for a in axes), tuple(re.shape[i] for i in kept)
    assert isinstance(n, int)  # the row's type rule sees to it
    if n == 0:
        return Pair(*(code.value(_full(code.build, number, re.dtype, rest)) for number in (1, 0)))  # type: ignore[arg-type]
    rows = [code.build(reshape, (code.build(transpose, (x,), ((*axes, *kept),)),), ((n, *rest),)) for x in (re, im)]
    return code.pair(*_multiplied(code, rows, False)[:2])


def running_product(z: Pair, axis: int, reverse: bool) -> Pair:
    """Products of the elements up to each one along ``axis``; of those from each one on if ``reverse``."""
    code, (re, im) = _opened(z)
    n = re.shape[axis]
    assert isinstance(n, int)
    if n < 2:
        return z
    others = [i for i in range(re.ndim) if i != axis]
    order = [axis, *others]
    back = tuple(sorted(range(re.ndim), key=order.__getitem__))
    rows = [code.build(transpose, (x,), (tuple(order),)) for x in (re, im)]
    stacks = _multiplied(code, rows, reverse)[2:]
    return code.pair(*(code.build(transpose, (x,), (back,)) for x in stacks))


def _opened(z: Pair) -> tuple[NodeCode, tuple[Node, Node]]:
    code: Any = z.re.code
    return code, (node_of(z.re), node_of(z.im))


def _full(build: Builder, number: Any, d: DType, shape: Shape) -> Node:
    return build(broadcast, (build(const, (), const_attrs(number, d)),), (shape, ()))


def _multiplied(code: NodeCode, parts: list[Node], reverse: bool) -> tuple[Node, ...]:
    """Real and imaginary part of the product along the first axis, and of all running products: a scan that starts with the first element."""
    build, n = code.build, parts[0].shape[0]
    assert isinstance(n, int)
    at = n - 1 if reverse else 0
    first = [build(reshape, (_rows(build, x, at, at + 1),), (x.shape[1:],)) for x in parts]
    if n == 1:
        return *first, *parts
    others = [_rows(build, x, 0, n - 1) if reverse else _rows(build, x, 1, n) for x in parts]
    body = _step(first[0].shape, first[0].dtype)
    loop = build(scan, (*first, *others), (body, 0, 2, n - 1, reverse))
    results = [build(project, (loop,), (i, x.shape, x.dtype.name)) for i, x in enumerate((*first, *others))]
    stacks = []
    for x, rest in zip(parts, results[2:], strict=True):
        ends = _rows(build, x, at, at + 1), rest
        stacks.append(build(concatenate, ends[::-1] if reverse else ends, (0,)))
    return *results[:2], *stacks


def _rows(build: Builder, x: Node, start: int, stop: int) -> Node:
    return build(slice_, (x,), ((start, *[0] * (x.ndim - 1)), (stop, *x.shape[1:]), (1,) * x.ndim))


def _step(shape: Shape, d: DType) -> Body:
    """Multiplies what is carried by one element; the product is carried on, and stacked."""
    code = NodeCode(Builder())
    arguments = [code.build(input_, (), (i, shape, d.name, None)) for i in range(4)]
    made = code.pair(*arguments[:2]) * code.pair(*arguments[2:])
    outputs = [node_of(part) for part in made]
    return Body(Graph(arguments, [*outputs, *outputs]))
