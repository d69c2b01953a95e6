"""Random graphs, their arguments and values, and bounds on how far rounding may lead their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import note
from hypothesis import strategies as st

from hologram import dtypes
from hologram.dtypes import DType
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate_node
from hologram.ir.leaves import input_
from hologram.ir.node import Builder, Node, const_attrs
from hologram.ir.op import Shape
from hologram.primitives import TABLE, Op
from tests.support.optable import ATTRIBUTES, MOVEMENTS, accepts, mismatch, ordinary_values, rows, seeded, special_values

SHAPES: list[tuple[int, ...]] = [(), (1,), (5,), (0,), (17,), (3, 5), (4, 1, 7), (2, 3, 4), (1, 33), (64, 49), (3, 3100), (3100, 2)]
MAX_ELEMENTS = 20_000
STEPS = st.integers(3, 16)


class Growth:
    """A graph that hypothesis grows: ``pool`` holds every node that a step may use."""

    def __init__(self, draw: Any, types: list[DType], elementwise: list[Op], ranged: list[Op]) -> None:
        self.draw, self.types, self.ranged = draw, types, ranged
        self.takers = {d: [r for r in elementwise if _takes(r, d)] for d in dtypes.ALL}
        self.build = Builder()
        self.inputs = [self._input(i) for i in range(draw(st.integers(1, 3)))]
        self.pool: list[Node] = list(self.inputs)

    def _input(self, i: int) -> Node:
        return self.build(input_, (), (i, self.draw(st.sampled_from(SHAPES)), self.draw(st.sampled_from(self.types)).name, None))

    def step(self) -> None:
        x = self.draw(st.sampled_from(self.pool if self.draw(st.integers(0, 3)) == 0 else self.pool[-3:]))
        kind = self.draw(st.sampled_from(["elementwise", "elementwise", "elementwise", "movement", "ranged"]))
        node = {"elementwise": self.elementwise, "movement": self.move, "ranged": self.fold}[kind](x)
        if 0 <= node.size <= MAX_ELEMENTS:  # type: ignore[operator]
            self.pool.append(node)

    def like(self, dtype: DType, shape: tuple[Any, ...]) -> Node:
        """A node of the given type that is a scalar or has the given shape: one there is, or one made from what there is."""
        fitting = [n for n in self.pool if n.dtype is dtype and n.shape in ((), shape)]
        if fitting and self.draw(st.booleans()):
            return self.draw(st.sampled_from(fitting))
        if self.draw(st.booleans()):
            return self.constant(dtype)
        if shape and dtype.kind in "if" and self.draw(st.integers(0, 3)) == 0:
            return self.build(TABLE["iota"], (), (shape, self.draw(st.integers(0, len(shape) - 1)), dtype.name))
        same_shape = [n for n in self.pool if n.shape == shape and _takes_to(n, dtype, self.types)]
        if not same_shape:
            return self.constant(dtype)
        return self.build(TABLE["cast"], (self.draw(st.sampled_from(same_shape)),), (dtype.name,))

    def constant(self, dtype: DType) -> Node:
        return self.build(TABLE["const"], (), const_attrs(self.draw(st.sampled_from([2, 1, 0, 3])), dtype))

    def elementwise(self, x: Node) -> Node:
        if not self.takers[x.dtype]:
            return x
        row = self.draw(st.sampled_from(self.takers[x.dtype]))
        attrs = tuple(self.draw(st.sampled_from(self._attribute(a, x, row))) for a in row.attrs)
        second = x.dtype if row.arity != 3 or x.dtype is not dtypes.bool_ else self.draw(st.sampled_from(self.types))
        first_other = [] if row.arity == 1 else [self.like(second, x.shape)]
        others = first_other + [self.like(second, x.shape) for _ in range((row.arity or 1) - 2)]
        return self.build(row, (x, *others), attrs)

    def _attribute(self, name: str, x: Node, row: Op) -> list[Any]:
        values = [d.name for d in self.types if _takes_to(x, d, self.types)] if name == "dtype" else ATTRIBUTES[name]
        return [v for v in values if accepts(row, [x], (v,))]

    def move(self, x: Node) -> Node:
        row = self.draw(st.sampled_from(rows("movement")))
        choices = [a for a in MOVEMENTS[row.attrs](fixed(x.shape)) if accepts(row, [x, *self._fill(row, x)], a)]
        if not choices:
            return x
        return self.build(row, (x, *self._fill(row, x)), self.draw(st.sampled_from(choices)))

    def _fill(self, row: Op, x: Node) -> list[Node]:
        """What a movement op takes beside ``x``: the fill value of a pad, another part of a concatenation."""
        if row.arity == 1:
            return []
        if row.arity == 2:
            return [self.build(TABLE["const"], (), const_attrs(1, x.dtype))]
        return [n for n in self.pool if n.shape == x.shape and n.dtype is x.dtype][-2:]

    def fold(self, x: Node) -> Node:
        axes = range(len(x.shape))
        one_axis: list[Any] = [(a,) for a in axes]
        options: dict[str, list[Any]] = {
            "axes": [((a,),) for a in axes] + [(tuple(axes),)],
            "axis": one_axis,
            "reverse": [(a, r) for a in axes for r in (False, True)],
        }
        choices = [(r, a) for r in self.ranged for a in options[r.attrs[-1]] if accepts(r, [x], a)]
        if not choices:
            return x
        row, attrs = self.draw(st.sampled_from(choices))
        return self.build(row, (x,), attrs)

    def finish(self) -> Graph:
        made = self.pool[len(self.inputs) :] or self.pool
        outputs = [made[-1], *self.draw(st.lists(st.sampled_from(made), max_size=2))]
        return Graph(self.inputs, outputs)


def fixed(shape: Shape) -> tuple[int, ...]:
    """A shape without symbols, for the type checker."""
    return tuple(int(n) for n in shape)


class _Scalar:
    shape = ()

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype


def _takes(row: Op, d: DType) -> bool:
    if "guard" in row.tests:
        return False
    later = [d] if d.kind != "b" else [dtypes.float32]
    attrs = tuple(ATTRIBUTES[a][-1] if a == "n" else d.name for a in row.attrs)
    return accepts(row, [_Scalar(t) for t in [d, *later * ((row.arity or 1) - 1)]], attrs) or accepts(row, [_Scalar(d)] * (row.arity or 1), attrs)


def _takes_to(x: Node, d: DType, types: list[DType]) -> bool:
    """Whether a cast keeps to the family: where only floats are rounded, no float becomes an integer."""
    return d in types and (dtypes.int8 in types or d.is_float or not x.dtype.is_float)


def _ignores_nan_sign(row: Op) -> bool:
    """NaNs are one class: an op that tells them apart may answer either way."""
    nans = np.array([np.nan, -np.nan], np.float32)
    ones = [np.ones(2, np.float32)] * ((row.arity or 1) - 1)
    if row.kinds == "b" or not _takes(row, dtypes.float32):
        return True
    attrs = tuple("int32" if a == "dtype" else 1 for a in row.attrs)
    for arrays in ([nans, *ones], [*ones, nans]):
        out = np.asarray(row.reference(*arrays, *attrs))
        if mismatch(out[:1], out[1:], 0).any():
            return False
    return True


EXACT = [r for r in rows("elementwise") if r.exact and r.cost < 64 and _ignores_nan_sign(r) and r.name != "complex"]  # of real numbers
EXACT_TYPES = [dtypes.of(n) for n in "float32 float64 int32 bool int64 uint8 float16 int8 bfloat16 uint32 float8_e4m3fn float8_e5m2".split()]
RANGED = rows("reduce") + rows("scan")


@st.composite
def exact_graphs(draw: Any) -> Graph:
    """Graphs of ops that every backend computes to the bit."""
    growth = Growth(draw, EXACT_TYPES, EXACT, RANGED)
    for _ in range(draw(STEPS)):
        growth.step()
    return growth.finish()


def arguments(graph: Graph, seed: int, special: bool) -> list[np.ndarray]:
    """Random arguments, a few of their elements special values. Prints the graph where a property fails."""
    note(str(graph))
    out = []
    for i, node in enumerate(graph.inputs):
        rng = seeded(seed, i)
        n = int(np.prod(fixed(node.shape), dtype=int))
        x = ordinary_values(node.dtype, n, rng, *(() if special else (-2.0, 2.0)))
        if special and n:
            places = rng.random(n) < 0.1
            x[places] = rng.choice(special_values(node.dtype), int(places.sum()))
        out.append(x.reshape(fixed(node.shape)))
    return out


def values_of(graph: Graph, arrays: list[np.ndarray]) -> dict[Node, np.ndarray]:
    values: dict[Node, np.ndarray] = {}
    for node in graph.nodes():
        values[node] = evaluate_node(node, [arrays[node.attrs[0]]] if node.op is input_ else [values[x] for x in node.inputs])
    return values


# --- bounds on rounding -----------------------------------------------------------------------------------------------


def _product_error(out: Any, a: Any, b: Any, ea: Any, eb: Any) -> Any:
    return np.abs(a) * eb + np.abs(b) * ea + ea * eb


def _either(out: Any, a: Any, b: Any, ea: Any, eb: Any) -> Any:
    return np.maximum(ea, eb)


# error of a result from its operands' values and errors, without the op's own rounding
PROPAGATION: dict[str, Callable[..., Any]] = {
    "add": lambda out, a, b, ea, eb: ea + eb,
    "sub": lambda out, a, b, ea, eb: ea + eb,
    "mul": _product_error,
    "neg": lambda out, a, ea: ea,
    "abs": lambda out, a, ea: ea,
    "square": lambda out, a, ea: _product_error(out, a, a, ea, ea),
    "max": _either,
    "min": _either,
    "cast": lambda out, a, ea, to: ea,
    "reduce_max": lambda out, a, ea, axes: ea.max(axes),
    "reduce_min": lambda out, a, ea, axes: ea.max(axes),
}
SUMS: dict[str, Callable[..., Any]] = {
    "reduce_sum": lambda x, axes: x.sum(axes),
    "cumsum": lambda x, axis, reverse: np.flip(np.flip(x, axis).cumsum(axis), axis) if reverse else x.cumsum(axis),
}
SMOOTH = [TABLE[n] for n in PROPAGATION if TABLE[n].kind == "elementwise"]
SMOOTH_TYPES = [dtypes.float32, dtypes.float64, dtypes.int32, dtypes.bfloat16]
SMOOTH_RANGED = [TABLE[n] for n in (*PROPAGATION, *SUMS) if TABLE[n].kind in ("reduce", "scan")]


def error_bounds(graph: Graph, values: dict[Node, np.ndarray]) -> list[np.ndarray]:
    """For each output, how far rounding may lead: every op rounds, in any order of summation, contracted or not."""
    errors: dict[Node, np.ndarray] = {}
    for node in graph.nodes():
        out = np.abs(values[node].astype(np.float64))
        operands = [values[x].astype(np.float64) for x in node.inputs]
        before = [errors[x] for x in node.inputs]
        if not node.dtype.is_float or node.op.kind == "leaf":
            errors[node] = np.zeros(node.shape)
            continue
        rounding = float(dtypes.ml_dtypes.finfo(node.dtype.np).eps)
        if node.op.kind == "movement":
            errors[node] = np.asarray(node.op.reference(*before, *node.attrs))
        elif node.op.name in SUMS:
            total = SUMS[node.op.name]
            n = max(1, operands[0].size)
            errors[node] = total(before[0], *node.attrs) + rounding * out + n * 2.0**-23 * total(np.abs(operands[0]), *node.attrs)
        else:
            errors[node] = PROPAGATION[node.op.name](out, *operands, *before, *node.attrs) + rounding * out
    return [errors[x] for x in graph.outputs]


@st.composite
def smooth_graphs(draw: Any) -> Graph:
    """Graphs whose results move little when intermediate results do: no comparison, no rounding to integers."""
    growth = Growth(draw, SMOOTH_TYPES, SMOOTH, SMOOTH_RANGED)
    for _ in range(draw(STEPS)):
        growth.step()
    return growth.finish()


seeds = st.integers(0, 1000)
