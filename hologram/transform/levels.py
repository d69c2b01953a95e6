"""Transform levels: what marks are, and how the nodes between marks and results are found.

A level gives the function marked inputs, runs it on ordinary Tensors, and then walks the nodes between the marks and the results. A Tensor that
is realised meanwhile, so that Python control flow can look at its value, becomes a leaf; what it was computed from is in the level's history.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any

from hologram.dtypes import DType
from hologram.errors import DifferentiationError
from hologram.ir.leaves import leaf
from hologram.ir.node import Node
from hologram.ir.op import MULTI_RESULT, NoDerivative, Op, Shape
from hologram.primitives.host.effects import effect, silent_attrs
from hologram.primitives.markers import custom, example, mapped, mark, pullback, stop
from hologram.support.user_lines import located
from hologram.trace import recorder
from hologram.trace.recorder import Pending, current, pending
from hologram.transform.nodes import has_tangents

_OF_USERS = (custom, mapped, pullback)  # whose rules run a user's code
_tokens = itertools.count()


class Level:
    """A context manager around one run of a function under a transform."""

    __slots__ = ("before", "history", "stacking", "__weakref__")

    def __init__(self, stacking: bool = False) -> None:
        self.history: dict[Node, tuple[Op, tuple[Node, ...], tuple[Any, ...]]] = {}
        self.stacking = stacking

    def __enter__(self) -> Level:
        self.before = recorder.thread_state.levels, recorder.thread_state.stacks
        recorder.enter_level(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        recorder.thread_state.levels, recorder.thread_state.stacks = self.before  # first: an interrupt may come at every call
        recorder.leave_level(self)

    def definition(self, node: Node) -> tuple[Op, tuple[Node, ...], tuple[Any, ...]]:
        """What ``node`` was recorded as."""
        return self.history.get(node) or (node.op, node.inputs, node.attrs)

    def between(self, sources: Iterable[Node], results: Iterable[Node], differentiable: bool = True, linear: bool = False) -> list[Node]:
        """The nodes that depend on ``sources`` and that ``results`` need, inputs first, without the sources.

        ``differentiable``: only where a derivative can pass; ``linear``: where the nodes are tangents, and cotangents pass.
        """
        reached = set(sources)
        inputs_of = self._transposable if linear else self._passing if differentiable else self._inputs
        found = []
        for node, inputs in _inputs_first(results, reached, inputs_of):
            for x in inputs:
                if x in reached:
                    reached.add(node)
                    found.append(node)
                    break
        return found

    def keep(self, sources: Iterable[Node], results: Iterable[Node]) -> None:
        """Notes what is between, for a level that is read after it was left: a value that is realised then no longer tells what it was made of."""
        for node in self.between(sources, results, differentiable=False):
            if isinstance(node, Pending):
                self.history.setdefault(node, (node.op, node.inputs, node.attrs))

    def _inputs(self, node: Node) -> tuple[Node, ...]:
        op, inputs, _ = self.definition(node)
        return inputs[1:] if op is mapped and self.stacking else inputs

    def _passing(self, node: Node) -> tuple[Node, ...]:
        """The inputs through which a derivative can pass."""
        op, inputs, attrs = self.definition(node)
        if op is custom and attrs[0].closure_error is not None:
            return inputs  # it is the rule that refuses what would pass through the value
        if op is custom or op is mapped:
            return inputs[1:]
        if op is stop or type(op.jvp) is NoDerivative or not (has_tangents(node.dtype) or op.kind in MULTI_RESULT):
            return ()
        return inputs

    def _transposable(self, node: Node) -> tuple[Node, ...]:
        """The inputs through which a cotangent can pass: a rule that calls its function on tangents is linear in what the value was made of."""
        op, inputs, _ = self.definition(node)
        return inputs[:1] if op is custom or op is mapped else self._passing(node)


def _inputs_first(roots: Iterable[Node], ends: set[Node], inputs_of: Callable[[Node], tuple[Node, ...]]) -> list[tuple[Node, tuple[Node, ...]]]:
    """Every node that ``roots`` need with its inputs, in topological order; ``ends`` are left out, and not looked behind."""
    order: list[tuple[Node, tuple[Node, ...]]] = []
    done = set(ends)
    for root in roots:
        if root in done:
            continue
        stack = [(root, inputs_of(root), 0)]
        while stack:
            node, inputs, i = stack.pop()
            while i < len(inputs) and inputs[i] in done:
                i += 1
            if i < len(inputs):
                stack.append((node, inputs, i + 1))
                stack.append((inputs[i], inputs_of(inputs[i]), 0))
            elif node not in done:
                done.add(node)
                order.append((node, inputs))
    return order


@contextlib.contextmanager
def keeping_lines() -> Iterator[Callable[[Node], None]]:
    """For a block that records what comes of one node after the other: a function to call with each, so that its line is theirs.

    Rules that run a user's code have lines of their own.
    """
    trace = current()
    if trace is None:
        yield lambda node: None
        return
    before = trace.line

    def at(node: Node) -> None:
        trace.line = None if node.op in _OF_USERS else trace.lines.get(node)

    try:
        yield at
    finally:
        trace.line = before


# --- marks -----------------------------------------------------------------------------------------------------------


def _fresh(op: Op, inputs: tuple[Node, ...], attrs: tuple[Any, ...], shape: Shape, dtype: DType) -> Node:
    """A node of its own: recorded past the memo of types, which tokens would fill."""
    trace = current()
    return trace.record(op, inputs, attrs) if trace is not None else pending(op, inputs, attrs, shape, dtype)


def marked(x: Node) -> Node:
    """``x`` as an input of a level."""
    return _fresh(mark, (x,), (next(_tokens),), x.shape, x.dtype)


def example_of(shape: Shape, dtype: DType) -> Node:
    """One example of a stack."""
    return _fresh(example, (), (next(_tokens), shape, dtype.name), shape, dtype)


def replay(level: Level, results: Sequence[Node], values: dict[Node, Node]) -> list[Node]:
    """``results`` with ``values`` in the place of the nodes that are its keys. Realised values are recorded anew: the nodes they have may be another
    trace's."""
    made = dict(values)

    def again(x: Node) -> Node:
        if x not in made and x.op is leaf:
            made[x] = recorder.leaf_node(x.attrs[0])
        return made.get(x, x)

    with keeping_lines() as at:
        for node in level.between(values, results, differentiable=False):
            op, inputs, attrs = level.definition(node)
            at(node)
            made[node] = recorder.record(op, tuple([again(x) for x in inputs]), _silent(op, inputs, attrs, node))
    return [again(x) for x in results]


def _silent(op: Op, inputs: tuple[Node, ...], attrs: tuple[Any, ...], node: Node) -> tuple[Any, ...]:
    """The attributes of a node that is recorded again: loops and branches without effects. Raises DifferentiationError for an effect itself."""
    if op is effect:
        raise located(DifferentiationError("what io_callback gives was read in a function that is computed again: call it around the function"))
    return silent_attrs(Node(op, inputs, attrs, node.shape, node.dtype)) if op.kind == "control" else attrs
