"""Nodes of computation graphs, and the builder that interns them.

A :class:`Node` is immutable: an op definition, input nodes, static attributes, and the shape and type that follow from them.
Within a graph nodes are interned, so structural equality is identity and common subexpressions vanish by construction.

Invariants: elementwise ops take inputs of one dtype rule and of equal shape, except that an input of shape ``()``
broadcasts implicitly; every other broadcast is a ``broadcast`` node. Every cast is a ``cast`` node.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType, rounded_once
from hologram.ir.op import TABLE, Op, Shape
from hologram.ir.symbolic import Int, prod

LARGE_BYTES = 2**40


class Node:
    """``op(inputs; attrs)``: treat as immutable. Equality and hash are identity."""

    __slots__ = ("op", "inputs", "attrs", "shape", "dtype", "__weakref__")
    op: Op
    inputs: tuple[Node, ...]
    attrs: tuple[Any, ...]
    shape: Shape
    dtype: DType

    def __init__(self, op: Op, inputs: tuple[Node, ...], attrs: tuple[Any, ...], shape: Shape, dtype: DType) -> None:
        self.op, self.inputs, self.attrs, self.shape, self.dtype = op, inputs, attrs, shape, dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> Int:
        return prod(self.shape)

    def __repr__(self) -> str:
        return f"<{self.op.name} {self.dtype}{list(self.shape)}>"


class Builder:
    """Makes interned nodes: the same op on the same inputs is the same object."""

    __slots__ = ("table",)

    def __init__(self) -> None:
        self.table: dict[Any, Node] = {}

    def __call__(self, op: Op, inputs: tuple[Node, ...] = (), attrs: tuple[Any, ...] = ()) -> Node:
        key = (op, inputs, attrs)
        node = self.table.get(key)
        if node is None:
            shape, dtype = op.infer(inputs, attrs)
            node = self.table[key] = Node(op, inputs, attrs, shape, dtype)
        return node

    def like(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        """``node`` on other inputs; the node itself where nothing changed and there is no other of its kind here."""
        if inputs == node.inputs:
            return self.table.setdefault((node.op, inputs, node.attrs), node)
        return self(node.op, inputs, node.attrs)

    def with_inputs(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        """As :meth:`like`, for inputs of the same shapes and types as those of ``node``: its own are not inferred again."""
        key = (node.op, inputs, node.attrs)
        found = self.table.get(key)
        if found is None:
            same = inputs == node.inputs and type(node) is Node
            found = self.table[key] = node if same else Node(node.op, inputs, node.attrs, node.shape, node.dtype)
        return found

    def make(self, name: str, *inputs: Node, attrs: tuple[Any, ...] = ()) -> Node:
        """The op called ``name`` on ``inputs``."""
        return self(TABLE[name], inputs, attrs)

    def const(self, value: Any, dtype: DType) -> Node:
        """A scalar constant."""
        return self(TABLE["const"], (), const_attrs(value, dtype))

    def full(self, value: Any, dtype: DType, shape: Shape) -> Node:
        """``value`` everywhere in ``shape``."""
        return self.fit(self.const(value, dtype), shape)

    def fit(self, node: Node, shape: Shape) -> Node:
        """A scalar broadcast to ``shape``; any other node as it is."""
        return self(TABLE["broadcast"], (node,), (shape, ())) if shape and not node.shape else node

    def cast(self, x: Node, dtype: DType) -> Node:
        """``x`` converted to ``dtype``; ``x`` itself where it has that type."""
        return x if x.dtype is dtype else self(TABLE["cast"], (x,), (dtype.name,))

    def bitcast(self, x: Node, dtype: DType) -> Node:
        """The bits of ``x`` as ``dtype``; ``x`` itself where it has that type."""
        return x if x.dtype is dtype else self(TABLE["bitcast"], (x,), (dtype.name,))

    def reshape(self, x: Node, shape: Shape) -> Node:
        """``x`` in another shape; ``x`` itself where it has that shape."""
        return x if x.shape == shape else self(TABLE["reshape"], (x,), (shape,))

    def transpose(self, x: Node, perm: tuple[int, ...]) -> Node:
        """``x`` with its axes permuted; ``x`` itself for the identity."""
        return x if perm == tuple(range(x.ndim)) else self(TABLE["transpose"], (x,), (perm,))

    def slice_axis(self, x: Node, axis: int, start: Int, stop: Int, step: int = 1) -> Node:
        """The elements ``start, start + step, …`` before ``stop`` along one axis, all along the others."""
        starts: list[Int] = [0] * x.ndim
        stops, steps = list(x.shape), [1] * x.ndim
        starts[axis], stops[axis], steps[axis] = start, stop, step
        return self(TABLE["slice"], (x,), (tuple(starts), tuple(stops), tuple(steps)))

    def elements(self, x: Node, indices: Node) -> Node:
        """The elements of a vector at ``indices``, which are in range."""
        return self.reshape(self(TABLE["gather"], (x, indices), ((0,), (1,), 0)), indices.shape)

    def flip(self, x: Node, axis: int) -> Node:
        """``x`` in reverse order along one axis."""
        return self.slice_axis(x, axis, x.shape[axis] - 1, -1, -1)


def nbytes(node: Node) -> int:
    """Bytes of an array of static shape."""
    return math.prod(node.shape) * node.dtype.itemsize


def symbolic_bytes(node: Node) -> Int:
    """Bytes of an array of any shape."""
    return prod(node.shape) * node.dtype.itemsize


def estimated_bytes(node: Node) -> int:
    """Bytes of an array, where sizes decide what is done with it: those of symbolic shape count as large."""
    found = symbolic_bytes(node)
    return found if isinstance(found, int) else LARGE_BYTES


# --- constants -------------------------------------------------------------------------------------------------------


def const_attrs(value: Any, dtype: DType) -> tuple[str, bytes]:
    """Attributes of a ``const`` node: type name and bits, so that 0.0 and -0.0 differ and NaNs equal themselves."""
    with np.errstate(all="ignore"):
        array = np.asarray(value)
        if dtype.is_narrow_float and array.dtype.kind in "iuf" and array.dtype.itemsize == 8:
            return dtype.name, rounded_once(array, dtype).tobytes()
        return dtype.name, array.astype(dtype.np).tobytes()


def const_value(node: Node) -> Any:
    """The NumPy scalar of a ``const`` node."""
    return np.frombuffer(node.attrs[1], dtypes.of(node.attrs[0]).np)[0]
