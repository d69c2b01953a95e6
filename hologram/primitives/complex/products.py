"""Products and running products of complex arrays: loops over their parts, in graphs.

The values are those of a builder of nodes (:class:`hologram.graph.canonical.complex_split.NodeCode`): ``build`` makes a node, ``ins`` is one.
"""

from __future__ import annotations

from typing import Any

from hologram.dtypes import DType
from hologram.ir.graph import Body, Graph
from hologram.ir.leaves import input_
from hologram.ir.node import Builder, Node
from hologram.ir.op import Shape
from hologram.ir.symbolic import prod
from hologram.primitives.complex.functions import Pair
from hologram.primitives.control import project, scan
from hologram.primitives.movement import concatenate, reshape, slice_, transpose


def product(z: Pair, axes: tuple[int, ...]) -> Pair:
    """The product over ``axes``, element by element in C order."""
    code, (re, im) = _opened(z)
    if not axes:
        return z
    kept = [i for i in range(re.ndim) if i not in axes]
    n, rest = prod(re.shape[a] for a in axes), tuple(re.shape[i] for i in kept)
    assert isinstance(n, int)  # the op's type rule sees to it
    if n == 0:
        return Pair(*(code.value(code.build.full(number, re.dtype, rest)) for number in (1, 0)))
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


def _opened(z: Pair) -> tuple[Any, tuple[Node, Node]]:
    code: Any = z.re.code
    return code, (z.re.ins, z.im.ins)


def _multiplied(code: Any, parts: list[Node], reverse: bool) -> tuple[Node, ...]:
    """Real and imaginary part of the product along the first axis, and of all running products: a scan that starts with the first element."""
    build, n = code.build, parts[0].shape[0]
    assert isinstance(n, int)
    at = n - 1 if reverse else 0
    first = [build(reshape, (_rows(build, x, at, at + 1),), (x.shape[1:],)) for x in parts]
    if n == 1:
        return *first, *parts
    others = [_rows(build, x, 0, n - 1) if reverse else _rows(build, x, 1, n) for x in parts]
    body = _step(code, first[0].shape, first[0].dtype)
    loop = build(scan, (*first, *others), (body, 0, 2, n - 1, reverse))
    results = [build(project, (loop,), (i, x.shape, x.dtype.name)) for i, x in enumerate((*first, *others))]
    stacks = []
    for x, rest in zip(parts, results[2:], strict=True):
        ends = _rows(build, x, at, at + 1), rest
        stacks.append(build(concatenate, ends[::-1] if reverse else ends, (0,)))
    return *results[:2], *stacks


def _rows(build: Builder, x: Node, start: int, stop: int) -> Node:
    return build(slice_, (x,), ((start, *[0] * (x.ndim - 1)), (stop, *x.shape[1:]), (1,) * x.ndim))


def _step(code: Any, shape: Shape, d: DType) -> Body:
    """Multiplies what is carried by one element; the product is carried on, and stacked."""
    code = type(code)(Builder())
    arguments = [code.build(input_, (), (i, shape, d.name, None)) for i in range(4)]
    made = code.pair(*arguments[:2]) * code.pair(*arguments[2:])
    outputs = [part.ins for part in made]
    return Body(Graph(arguments, [*outputs, *outputs]))
