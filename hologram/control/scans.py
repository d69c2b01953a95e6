"""Transform rules of scans: derivatives, transposes and batching.

The derivative of a scan is two scans: the scan itself, which now also stacks what the derivative needs of each step, and a linear scan that reads
these stacks. The transpose of the linear scan runs backwards. Scan fusion (:mod:`hologram.graph.canonical.scan_fusion`) joins the two scans again,
so forward mode costs one loop and no stacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hologram.primitives.control as ops
from hologram.control.replay import depends, emitted, replayed, result, run_again
from hologram.control.residuals import residuals_of
from hologram.control.tracing import Recorded
from hologram.errors import DifferentiationError
from hologram.ir.node import Node
from hologram.ir.op import transforms
from hologram.ir.symbolic import Int
from hologram.ir.traversal import topological
from hologram.support.user_lines import located
from hologram.trace.recorder import record
from hologram.transform.differentiate import pull, push
from hologram.transform.levels import Level
from hologram.transform.nodes import accumulated, has_tangents, moved, zeros_like
from hologram.transform.rules.batching import stack_of
from hologram.transform.stacking import stacked

Tangents = Sequence[Node | None]


class _Parts:
    """A scan's inputs and attributes by name."""

    __slots__ = ("body", "consts", "carries", "length", "reverse", "inputs", "label")

    def __init__(self, rest: Sequence[Any]) -> None:
        *inputs, body, self.consts, self.carries, self.length, self.reverse = ops.unlabelled(rest)
        self.label = ops.label_of(rest)
        self.inputs: list[Node] = inputs
        self.body = body.graph

    def is_carry(self, i: int) -> bool:
        """Whether argument ``i`` of the body is a carry."""
        return self.consts <= i < self.consts + self.carries

    def split(self, values: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Constants, carries and sequences among values that stand for the inputs."""
        a, b = self.consts, self.consts + self.carries
        return list(values[:a]), list(values[a:b]), list(values[b:])

    def attrs(self, carries: int, reverse: bool | None = None, label: tuple[str, ...] | None = None) -> Any:
        rest = self.length, self.reverse if reverse is None else reverse, *(self.label if label is None else label)
        return lambda bodies, consts: (bodies[0], consts, carries, *rest)


class _Stack:
    """Shape and type of ``length`` arrays like ``element``."""

    __slots__ = ("shape", "dtype")

    def __init__(self, length: int, element: Node) -> None:
        self.shape, self.dtype = (length, *element.shape), element.dtype


# --- forward ---------------------------------------------------------------------------------------------------------


class _Linearised:
    """A scan's body with tangents for the arguments whose flag is set, and for every carry that comes to have one."""

    def __init__(self, parts: _Parts, flags: list[bool]) -> None:
        self.parts = parts
        while True:
            self._push(flags)
            grown = [f or (parts.is_carry(i) and self.pushed[i - parts.consts] is not None) for i, f in enumerate(flags)]
            if grown == flags:
                break
            flags = grown
        with self.recorded.trace:
            for k, out in enumerate(self.primal[: parts.carries]):
                if flags[parts.consts + k] and self.pushed[k] is None:
                    self.pushed[k] = zeros_like(out)
        self.flags = flags

    def _push(self, flags: list[bool]) -> None:
        parts = self.parts
        self.recorded = Recorded("scan", parts.body.inputs)
        self.arguments = list(self.recorded.arguments)
        with self.recorded.trace:
            self.primal = replayed(parts.body, self.arguments)
            self.tangents = {x: self.recorded.argument(x) for x, flag in zip(self.arguments, flags, strict=True) if flag}
            self.pushed: list[Node | None] = list(push(Level(), self.primal, dict(self.tangents)))


def _scan_jvp(tangents: Tangents, out: Node, *rest: Any) -> tuple[Node | None, ...] | None:
    parts = _Parts(rest)
    parts.body = run_again("scan", parts.body)
    made = _Linearised(parts, [t is not None for t in tangents])
    if all(t is None for t in made.pushed):
        return None
    residuals = _Residuals(parts, made)
    fixed_tangents, _, x_tangents = parts.split([made.tangents.get(x) for x in made.arguments])
    carried = [x for x in made.arguments if x in made.tangents and parts.is_carry(made.arguments.index(x))]
    there = [k for k, t in enumerate(made.pushed) if t is not None]
    recorded = made.recorded
    recorded.arguments = [
        *residuals.fixed_arguments, *[t for t in fixed_tangents if t is not None],
        *[made.tangents[x] for x in carried],
        *residuals.x_arguments, *[t for t in x_tangents if t is not None],
    ]  # fmt: skip
    recorded.nodes = [made.pushed[k] for k in there]  # type: ignore[misc]
    given = dict(zip(made.arguments, tangents, strict=True))
    outer = dict(zip(made.arguments, parts.inputs, strict=True))
    fixed, carries, xs = parts.split(made.arguments)
    starts = [zeros_like(outer[x]) if given[x] is None else given[x] for x in carried]
    tangent_scan = emitted(
        ops.scan,
        [*residuals.fixed, *[given[x] for x in fixed if given[x] is not None]],  # type: ignore[list-item]
        [*starts, *residuals.xs, *[given[x] for x in xs if given[x] is not None]],  # type: ignore[list-item]
        [recorded],
        parts.attrs(len(carried), label=ops.of_derivative(parts.label)),
    )
    results: list[Node | None] = [None] * len(made.pushed)
    for i, k in enumerate(there):
        like = made.primal[k] if k < parts.carries else _Stack(parts.length, made.primal[k])
        results[k] = result(tangent_scan, i, like)
    return tuple(results)


class _Residuals:
    """Residuals by how the linear scan comes to them: constants of the loop, sequences that were there, and stacks that the scan is run for."""

    def __init__(self, parts: _Parts, made: _Linearised) -> None:
        fixed_arguments, _, sequences = parts.split(made.arguments)
        residuals = residuals_of(made.pushed, set(made.tangents.values()), [*fixed_arguments, *sequences])
        loose = set(made.arguments[parts.consts :])
        reached = set(loose)
        for n in topological(residuals):
            if any(x in reached for x in n.inputs):
                reached.add(n)
        fixed = [n for n in residuals if n not in reached]
        inputs = dict(zip(made.arguments, parts.inputs, strict=True))
        self.fixed_arguments = fixed
        self.fixed = _outside(fixed, inputs)
        direct = [n for n in residuals if n in sequences]
        stacks = [n for n in residuals if n in reached and n not in direct]
        self.x_arguments = [*direct, *stacks]
        self.xs = [inputs[n] for n in direct]
        if stacks:
            again = Recorded("scan", ())
            again.trace, again.arguments, again.nodes = made.recorded.trace, list(made.arguments), [*made.primal, *stacks]
            fixed_inputs, starts, xs = parts.split(parts.inputs)
            scan = emitted(ops.scan, fixed_inputs, [*starts, *xs], [again], parts.attrs(parts.carries))
            count = len(made.primal)
            self.xs += [result(scan, count + i, _Stack(parts.length, n)) for i, n in enumerate(stacks)]


def _outside(nodes: Sequence[Node], inputs: dict[Node, Node]) -> list[Node]:
    """Values that do not change from step to step, computed once around the loop."""
    made = dict(inputs)
    for n in topological(nodes, stop=made.__contains__):
        if n not in made:
            made[n] = record(n.op, tuple([made[x] for x in n.inputs]), n.attrs)
    return [made[n] for n in nodes]


# --- reverse ---------------------------------------------------------------------------------------------------------


class _Transposed:
    """A scan's body transposed: from the cotangents of what it gives, those of its arguments whose flag is set, by argument in ``found``.

    Those of constants are carried: ``sum_of`` has the arguments that they come in as, and ``summed`` names the constants to which a step adds.
    """

    def __init__(self, parts: _Parts, flags: Sequence[bool], given: Sequence[Node | None]) -> None:
        self.recorded = Recorded("scan", ())
        with self.recorded.trace:
            self.parameters = [self.recorded.trace.input(x.shape, x.dtype) for x in parts.body.inputs]
            outs = replayed(parts.body, self.parameters)
            self.carried = [self._input(x) for x in outs[: parts.carries]]
            self.stepwise = [None if c is None else self._input(x) for c, x in zip(given, outs[parts.carries :], strict=True)]
            sought = [x for x, f in zip(self.parameters, flags, strict=True) if f]
            fixed, self.carries, xs = parts.split(self.parameters)
            self.sum_of = {x: self._input(x) for x in fixed if x in sought}
            self.found = dict(zip(sought, pull(Level(), sought, outs, [*self.carried, *self.stepwise], self.sum_of), strict=True))
            self.summed = [x for x, s in self.sum_of.items() if self.found[x] is not s]
            self.stacked = [x for x in xs if self.found.get(x) is not None]
            self.recorded.nodes = [
                *[zeros_like(x) if self.found[x] is None else self.found[x] for x in self.carries],
                *[self.found[x] for x in (*self.summed, *self.stacked)],
            ]

    def _input(self, like: Node) -> Node:
        return self.recorded.trace.input(like.shape, like.dtype)


def _scan_accumulate(
    there: Sequence[Node | None], cotangents: tuple[Node | None, ...], linear: Sequence[bool], *rest: Any
) -> tuple[Node | None, ...]:
    """The transposed scan carries the cotangents of its constants, which start at those that are ``there``: a step adds to them what it touches."""
    parts = _Parts(rest)
    flags = [f or parts.is_carry(i) for i, f in enumerate(linear)]
    if not all(has_tangents(x.dtype) for x, f in zip(parts.body.inputs, flags, strict=True) if f):
        raise located(DifferentiationError("scan: reverse mode through a loop whose carry is not linear"))
    given = cotangents[parts.carries :]
    back = _Transposed(parts, flags, given)
    if not back.recorded.nodes:
        return tuple(there)  # what is linear reaches no result
    outer, known = dict(zip(back.parameters, parts.inputs, strict=True)), dict(zip(back.parameters, there, strict=True))
    fixed, _, xs = parts.split(back.parameters)
    fixed_there, xs_there = ([x for x in some if x not in back.found] for some in (fixed, xs))
    back.recorded.arguments = [
        *fixed_there,
        *back.carried,
        *[back.sum_of[x] for x in back.summed],
        *xs_there,
        *[s for s in back.stepwise if s is not None],
    ]
    starts = [zeros_like(x) if c is None else c for c, x in zip(cotangents, back.carried, strict=False)]
    starts += [zeros_like(x) if (s := known[x]) is None else s for x in back.summed]
    node = emitted(
        ops.scan,
        [outer[x] for x in fixed_there],
        [*starts, *[outer[x] for x in xs_there], *[c for c in given if c is not None]],
        [back.recorded],
        parts.attrs(len(starts), not parts.reverse),
    )
    made = {x: result(node, i, outer[x]) for i, x in enumerate([*back.carries, *back.summed, *back.stacked])}
    sums = {x: made[x] if x in back.summed else _with(known[x], made.get(x)) for x in back.parameters}
    return tuple([sums[x] if f else None for x, f in zip(back.parameters, linear, strict=True)])


def _with(x: Node | None, y: Node | None) -> Node | None:
    """The sum of two cotangents, None for zero."""
    return y if x is None else x if y is None else accumulated(x, y)


# --- stacks of examples ----------------------------------------------------------------------------------------------


def _scan_batch(size: Int, batched: Sequence[bool], *rest: Any) -> Node:
    parts = _Parts(rest)
    flags = list(batched)
    while True:
        out = depends(parts.body, flags)
        grown = [f or (parts.is_carry(i) and out[i - parts.consts]) for i, f in enumerate(flags)]
        if grown == flags:
            break
        flags = grown
    fixed, starts, xs = parts.split(parts.inputs)
    _, carry_flags, x_flags = parts.split(flags)
    _, was, _ = parts.split(batched)
    starts = [stack_of(x, size) if f and not w else x for x, f, w in zip(starts, carry_flags, was, strict=True)]
    xs = [moved(x, 1, 0) if f else x for x, f in zip(xs, x_flags, strict=True)]
    made = batched_body("scan", parts.body, flags, size, [*carry_flags, *[False] * (len(out) - parts.carries)])
    return emitted(ops.scan, fixed, [*starts, *xs], [made], parts.attrs(parts.carries))


def batched_body(what: str, graph: Any, flags: Sequence[bool], size: Int, anyway: Sequence[bool] | None = None) -> Recorded:
    """A body on stacks: arguments whose flag is set, the results that depend on them, and those that are stacks ``anyway`` have the stack's axis in
    front."""
    made = Recorded(what, ())
    with made.trace:
        for x, flag in zip(graph.inputs, flags, strict=True):
            made.arguments.append(made.trace.input((size, *x.shape) if flag else x.shape, x.dtype))
        out = depends(graph, flags)
        alone = iter(replayed(graph, made.arguments, [o for o, f in zip(graph.outputs, out, strict=True) if not f]))
        together = [o for o, f in zip(graph.outputs, out, strict=True) if f]
        stacks = iter(stacked(lambda given: replayed(graph, given, together), made.arguments, flags, size))
        made.nodes = [next(stacks) if f else stack_of(next(alone), size) if a else next(alone) for f, a in zip(out, anyway or out, strict=True)]
    return made


# --- results ---------------------------------------------------------------------------------------------------------


def _count(node: Node) -> int:
    return len(ops.result_types(node))


def _project_jvp(tangents: Sequence[tuple[Node | None, ...] | None], out: Node, node: Node, index: int, *_: Any) -> Node | None:
    return tangents[0][index] if tangents[0] is not None else None


def _project_transpose(cotangent: Node, linear: Sequence[bool], node: Node, index: int, *_: Any) -> tuple[tuple[Node | None, ...]]:
    return (tuple([cotangent if i == index else None for i in range(_count(node))]),)


def _project_batch(size: Int, batched: Sequence[bool], node: Node, index: int, shape: Any, dtype: str) -> Node:
    """The result of a node on stacks: with the stack's axis brought in front, or, where it does not depend on the example, repeated."""
    if node.op.kind == "host":  # every result has the stack's axis in front
        return record(ops.project, (node,), (index, (size, *shape), dtype))
    of = ops.bodies(node)[-1].graph.outputs[index]
    steps = node.attrs[3] if node.op is ops.scan and index >= node.attrs[2] else None
    like = of if steps is None else _Stack(steps, of)
    found = result(node, index, like)
    if like.shape == shape:
        return stack_of(found, size)
    return found if steps is None else moved(found, 1, 0)


transforms(ops.scan, jvp=_scan_jvp, accumulate=_scan_accumulate, batch=_scan_batch, batch_body=batched_body)
transforms(ops.project, jvp=_project_jvp, transpose=_project_transpose, batch=_project_batch)
