"""Transform rules of while loops and switches: derivatives, transposes and batching."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hologram.primitives.control as ops
from hologram import dtypes
from hologram.control.predicated import one_after_another, predicated
from hologram.control.replay import closed, depends, emitted, replayed, result, run_again
from hologram.control.residuals import residuals_of
from hologram.control.scans import Tangents, batched_body
from hologram.control.tracing import Recorded
from hologram.errors import DifferentiationError
from hologram.ir.graph import Graph
from hologram.ir.node import Node
from hologram.ir.op import TABLE, transforms
from hologram.ir.symbolic import Int
from hologram.support.user_lines import located
from hologram.trace.recorder import constant
from hologram.transform.differentiate import in_reverse_mode, pull, push
from hologram.transform.levels import Level
from hologram.transform.nodes import apply, zeros_like
from hologram.transform.rules.batching import stack_of
from hologram.transform.stacking import stacked

# --- while -----------------------------------------------------------------------------------------------------------


def _while_jvp(tangents: Tangents, out: Node, *rest: Any) -> tuple[Node | None, ...] | None:
    """The loop with the tangents of its carries beside them."""
    label, (*inputs, test_body, step_body, consts) = ops.of_derivative(ops.label_of(rest)), ops.unlabelled(rest)
    test_graph, step_graph = (run_again("while_loop", b.graph) for b in (test_body, step_body))
    flags = [t is not None for t in tangents]
    while True:
        made = Recorded("while_loop", ())
        with made.trace:
            primal = [made.argument(x) for x in step_graph.inputs]
            outs = replayed(step_graph, primal)
            given = {x: made.trace.input(x.shape, x.dtype) for x, f in zip(primal, flags, strict=True) if f}
            pushed = push(Level(), outs, dict(given))
            grown = [f or (i >= consts and pushed[i - consts] is not None) for i, f in enumerate(flags)]
            if grown == flags:
                kept = [i for i in range(consts, len(flags)) if flags[i] and pushed[i - consts] is given[primal[i]]]  # no step changes them
                carried = [i for i in range(consts, len(flags)) if flags[i] and i not in kept]
                made.nodes = [*outs, *[zeros_like(outs[i - consts]) if pushed[i - consts] is None else pushed[i - consts] for i in carried]]
                break
        flags = grown
    results: list[Node | None] = [None] * len(outs)
    for i in kept:
        results[i - consts] = tangents[i]
    if not carried:
        return tuple(results) if kept else None
    fixed_tangents = [given[primal[i]] for i in (*range(consts), *kept) if primal[i] in given]
    made.arguments = [*primal[:consts], *fixed_tangents, *primal[consts:], *[given[primal[i]] for i in carried]]
    test = Recorded("while_loop", made.arguments)
    count = consts + len(fixed_tangents)
    with test.trace:
        test.nodes = replayed(test_graph, [*test.arguments[:consts], *test.arguments[count : count + len(outs)]])
    fixed = [*inputs[:consts], *[t for t in tangents[:consts] if t is not None], *[tangents[i] for i in kept]]
    starts = [zeros_like(inputs[i]) if tangents[i] is None else tangents[i] for i in carried]
    node = emitted(ops.while_, fixed, [*inputs[consts:], *starts], [test, made], lambda bodies, n: (*bodies, n, *label))  # type: ignore[list-item]
    for k, i in enumerate(carried):
        results[i - consts] = result(node, len(outs) + k, inputs[i])
    return tuple(results)


def _while_transpose(*_: Any) -> Any:
    text = "while_loop has no derivative in reverse mode, since nobody knows how many steps to keep: use scan, fori_loop with integer bounds, or jvp"
    raise located(DifferentiationError(text))


def _while_batch(size: Int, batched: Sequence[bool], *rest: Any) -> Node:
    """The loop runs until no example goes on; those that are done keep their values."""
    label, (*inputs, cond, body, consts) = ops.label_of(rest), ops.unlabelled(rest)
    flags = list(batched)
    while True:
        out = depends(body.graph, flags)
        (many,) = depends(cond.graph, flags)
        grown = [f or (i >= consts and (many or out[i - consts])) for i, f in enumerate(flags)]
        if grown == flags:
            break
        flags = grown
    starts = [stack_of(x, size) if f and not w else x for x, f, w in zip(inputs[consts:], flags[consts:], batched[consts:], strict=True)]
    test = batched_body("while_loop", cond.graph, flags, size)
    step = batched_body("while_loop", _unless_done(cond.graph, body.graph, consts) if many else body.graph, flags, size, flags[consts:])
    if many:
        with test.trace:
            test.nodes = [apply(TABLE["reduce_any"], test.nodes[0], attrs=((0,),))]
    return emitted(ops.while_, inputs[:consts], starts, [test, step], lambda bodies, n: (*bodies, n, *label))


def _unless_done(cond: Graph, body: Graph, consts: int) -> Graph:
    """The body of a loop that keeps its carries where the condition does not hold."""
    made = Recorded("while_loop", body.inputs)
    with made.trace:
        (going,) = replayed(cond, made.arguments)
        made.nodes = predicated(body, made.arguments, going, {k: consts + k for k in range(len(body.outputs))})
    return closed(made)


# --- switch ----------------------------------------------------------------------------------------------------------


def _switch_jvp(tangents: Tangents, out: Node, *rest: Any) -> tuple[Node | None, ...] | None:
    """A choice among the branches' derivatives. In reverse mode the residuals come from a choice of their own, which is fused with the first; else a
    branch is computed with its derivative."""
    index, *operands, branches = rest
    directions = tangents[1:]
    made = [_PushedBranch(run_again("switch", b.graph), directions) for b in branches]
    results: list[Node | None] = [None] * len(made[0].values)
    there = [k for k in range(len(results)) if any(b.tangents[k] is not None for b in made)]
    if not there:
        return None
    residuals = _saved(made, index, operands) if in_reverse_mode() else []
    for b in made:
        b.give_tangents(there, residuals)
    given = [*residuals, *[t for t in directions if t is not None]]
    node = emitted(ops.switch, operands, given, [b.recorded for b in made], lambda bodies, _: (tuple(bodies),), (index,))
    for i, k in enumerate(there):
        results[k] = result(node, i, made[0].values[k])
    return tuple(results)


class _PushedBranch:
    """A branch with the tangents of its results, and the ``saved`` values that these are made of, by their places among all residuals."""

    def __init__(self, graph: Graph, directions: Sequence[Node | None]) -> None:
        self.recorded = Recorded("switch", graph.inputs)
        self.operands = list(self.recorded.arguments)
        self.saved: dict[int, Node] = {}
        with self.recorded.trace:
            self.given = {x: self.recorded.argument(x) for x, t in zip(self.operands, directions, strict=True) if t is not None}
            self.values = replayed(graph, self.operands)
            self.tangents: list[Node | None] = list(push(Level(), self.values, dict(self.given)))

    def give_tangents(self, there: Sequence[int], residuals: Sequence[Node]) -> None:
        """Makes this the body that computes the tangents ``there``."""
        with self.recorded.trace:
            self.recorded.nodes = [zeros_like(self.values[k]) if (t := self.tangents[k]) is None else t for k in there]
            saved = [self.saved[i] if i in self.saved else self.recorded.trace.input(x.shape, x.dtype) for i, x in enumerate(residuals)]
        self.recorded.arguments = [*self.operands, *saved, *self.given.values()]


def _saved(made: Sequence[_PushedBranch], index: Node, operands: Sequence[Node]) -> list[Node]:
    """The residuals of all branches, given by a choice of its own. Branches share those of one type; what one does not need is zero there."""
    slots: list[Node] = []
    for b in made:
        free = list(range(len(slots)))
        for x in residuals_of(b.tangents, set(b.given.values()), b.operands):
            if x in b.operands:
                continue
            i = next((i for i in free if (slots[i].shape, slots[i].dtype) == (x.shape, x.dtype)), len(slots))
            if i == len(slots):
                slots.append(x)
            else:
                free.remove(i)
            b.saved[i] = x
    if not slots:
        return []
    traces = []
    for b in made:
        traces.append(Recorded("switch", ()))
        traces[-1].trace, traces[-1].arguments = b.recorded.trace, b.operands
        with b.recorded.trace:
            traces[-1].nodes = [b.saved[i] if i in b.saved else zeros_like(x) for i, x in enumerate(slots)]
    node = emitted(ops.switch, operands, (), traces, lambda bodies, _: (tuple(bodies),), (index,))
    return [result(node, i, x) for i, x in enumerate(slots)]


def _switch_accumulate(
    there: Sequence[Node | None], cotangents: tuple[Node | None, ...], linear: Sequence[bool], *rest: Any
) -> tuple[Node | None, ...]:
    """A choice among the transposed branches, each of which adds to the cotangents that are ``there``."""
    index, *operands, branches = rest
    flags = linear[1:]
    given = [*[s for s in there if s is not None], *[c for c in cotangents if c is not None]]
    traces = []
    for b in branches:
        made = Recorded("switch", ())
        with made.trace:
            parameters = [made.trace.input(x.shape, x.dtype) for x in b.graph.inputs]
            outs = replayed(b.graph, parameters)
            incoming = [None if c is None else made.trace.input(c.shape, c.dtype) for c in cotangents]
            sought = [x for x, f in zip(parameters, flags, strict=True) if f]
            sums = {x: made.trace.input(s.shape, s.dtype) for x, s in zip(parameters, there[1:], strict=True) if s is not None}
            found = pull(Level(), sought, outs, incoming, sums)
            made.nodes = [zeros_like(x) if c is None else c for x, c in zip(sought, found, strict=True)]
        made.arguments = [*[x for x, f in zip(parameters, flags, strict=True) if not f], *sums.values(), *[c for c in incoming if c is not None]]
        traces.append(made)
    values = [x for x, f in zip(operands, flags, strict=True) if not f]
    node = emitted(ops.switch, values, given, traces, lambda bodies, _: (tuple(bodies),), (index,))
    made_results = iter([result(node, i, x) for i, x in enumerate([x for x, f in zip(operands, flags, strict=True) if f])])
    return (None, *[next(made_results) if f else None for f in flags])


def _switch_batch(size: Int, batched: Sequence[bool], *rest: Any) -> Node:
    index, *operands, branches = rest
    flags = batched[1:]
    if batched[0]:
        return _selected(size, flags, index, operands, branches)
    out = [any(column) for column in zip(*[depends(b.graph, flags) for b in branches], strict=True)]
    traces = []
    for b in branches:
        traces.append(batched_body("switch", b.graph, flags, size, out))
    return emitted(ops.switch, operands, (), traces, lambda bodies, _: (tuple(bodies),), (index,))


def _selected(size: Int, flags: Sequence[bool], index: Node, operands: Sequence[Node], branches: Sequence[Any]) -> Node:
    """Every branch on the whole stack, and for each example the results of its own: as the one branch of a switch, so as to stand for them all."""
    made = Recorded("switch", [index, *operands])
    with made.trace:
        made.nodes = stacked(lambda nodes: one_after_another([b.graph for b in branches], *nodes), made.arguments, [True, *flags], size)
    return emitted(ops.switch, [index, *operands], (), [made], lambda bodies, _: (tuple(bodies),), (constant(0, dtypes.int64),))


transforms(ops.while_, jvp=_while_jvp, transpose=_while_transpose, batch=_while_batch)
transforms(ops.switch, jvp=_switch_jvp, accumulate=_switch_accumulate, batch=_switch_batch)
