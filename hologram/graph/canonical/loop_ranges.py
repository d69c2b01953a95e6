"""Ranges of loop counters: comparisons, maxima and minima in loops that the counters' ranges decide are removed.

A *counter* is a carry to which each step adds the same number. In a scan its range follows from its start and the number of steps; in a while loop
from its start and the condition, which compares it with something; no 64-bit counter comes to the end of its type. So ``A[i]`` in a loop over
``range(n)`` needs no test for negative indices and no clamp. Ranges go through nested loops and branches with their operands: see
:mod:`hologram.graph.canonical.integer_ranges`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from hologram.graph.canonical.integer_ranges import Range, Ranges, joined, range_of, type_range
from hologram.ir.graph import Body, Graph, bodies
from hologram.ir.node import Builder, Node, const_value
from hologram.ir.symbolic import MAX_EXTENT, Int, bounds
from hologram.primitives.control import project, scan, switch

YEAR_OF_STEPS = 2**56  # steps of half a nanosecond


def refine_ranges(graph: Graph, fired: Counter[str]) -> Graph:
    """``graph`` without what ranges decide in its loops and branches; the graph itself where nothing changed."""
    if not any(n.op.kind == "control" for n in graph.nodes()):
        return graph
    return _Refiner(fired).graph(graph, [type_range(x.dtype) for x in graph.inputs])[0]


class GraphRanges(NamedTuple):
    """The ranges of a graph's values, and for each control node those of the inputs of its bodies."""

    values: Mapping[Node, Range | None]
    bodies: Mapping[Node, list[Ranges]]


NO_RANGES = GraphRanges({}, {})


def ranges_in(graph: Graph, given: Ranges | None) -> GraphRanges:
    """What is known of a graph with inputs of the ranges ``given``; nothing where that is None and there are no loops and branches."""
    if given is None:
        if not any(n.op.kind == "control" for n in graph.nodes()):
            return NO_RANGES
        given = [type_range(x.dtype) for x in graph.inputs]
    walk = _Refiner(Counter())
    known = walk.walk(graph, given)[0]
    return GraphRanges(known, {n: walk.given[n] for n in known if n in walk.given})


class _Refiner:
    """``given``: of the control nodes seen the ranges of the inputs of their bodies."""

    def __init__(self, fired: Counter[str]) -> None:
        self.fired = fired
        self.given: dict[Node, list[Ranges]] = {}

    def graph(self, graph: Graph, given: Ranges) -> tuple[Graph, list[Range | None]]:
        """The graph, refined for inputs of the ranges ``given``, and the ranges of its outputs."""
        known, instead, attrs = self.walk(graph, given)
        self.fired.update({"decided": len(instead)} if instead else {})
        refined = _rebuilt(graph, instead, attrs) if instead or attrs else graph
        return refined, [known[x] for x in graph.outputs]

    def walk(self, graph: Graph, given: Ranges) -> tuple[dict[Node, Range | None], dict[Node, Node | int], dict[Node, tuple[Any, ...]]]:
        """The ranges of a graph's values; what stands for those that they decide; and new attributes of control nodes."""
        known: dict[Node, Range | None] = dict(zip(graph.inputs, given, strict=True))
        results: dict[Node, list[Range | None]] = {}
        instead: dict[Node, Node | int] = {}
        attrs: dict[Node, tuple[Any, ...]] = {}
        for n in graph.nodes():
            if n in known:
                continue
            inputs = [known[x] for x in n.inputs]
            if n.op.kind == "control":
                found, results[n] = self.control(n, inputs)
                if found != n.attrs:
                    attrs[n] = found
                known[n] = None
            elif n.op is project:
                known[n] = results[n.inputs[0]][n.attrs[0]] if n.inputs[0] in results else type_range(n.dtype)
            else:
                known[n] = range_of(n, inputs)
                simpler = _simpler(n, inputs, known[n])
                if simpler is not None:
                    instead[n] = simpler
        return known, instead, attrs

    def control(self, node: Node, inputs: Ranges) -> tuple[tuple[Any, ...], list[Range | None]]:
        """A control node's attributes with refined bodies, and the ranges of its results."""
        if node.op is switch:
            self.given[node] = [inputs[1:] for _ in bodies(node)]
            made = [self.body(b, inputs[1:]) for b in bodies(node)]
            return (tuple(b for b, _ in made),), [joined(ranges) for ranges in zip(*(r for _, r in made), strict=True)]
        return self.scan(node, inputs) if node.op is scan else self.while_loop(node, inputs)

    def body(self, body: Body, given: Ranges) -> tuple[Body, list[Range | None]]:
        graph, ranges = self.graph(body.graph, given)
        return (body if graph is body.graph else Body(graph)), ranges

    def scan(self, node: Node, inputs: Ranges) -> tuple[tuple[Any, ...], list[Range | None]]:
        body, consts, carries, length, *_ = node.attrs
        given, last = list(inputs), {}
        for k in range(carries):
            x = body.graph.inputs[consts + k]
            given[consts + k], step = type_range(x.dtype), counter_step(body.graph, consts, k)
            if step is not None and (counted := _counted(inputs[consts + k], step, length, given[consts + k])) is not None:
                given[consts + k], last[k] = counted
        self.given[node] = [given]
        refined, ranges = self.body(body, given)
        starts = inputs[consts : consts + carries]
        if length == 0:
            return (refined, *node.attrs[1:]), [*starts, *ranges[carries:]]
        ends = [last.get(k, r) for k, r in enumerate(ranges)]
        if (bounds(length)[0] or 0) < 1:  # perhaps no step is made
            ends[:carries] = [joined(both) for both in zip(ends, starts, strict=False)]
        return (refined, *node.attrs[1:]), ends

    def while_loop(self, node: Node, inputs: Ranges) -> tuple[tuple[Any, ...], list[Range | None]]:
        cond, body, consts, *rest = node.attrs
        carried = [type_range(x.dtype) for x in body.graph.inputs[consts:]]
        asked, inside = [*inputs[:consts], *carried], [*inputs[:consts], *carried]
        limits = _limits(cond.graph, asked)
        for k, full in enumerate(carried):
            step, start = counter_step(body.graph, consts, k), inputs[consts + k]
            if step is None or start is None or full is None:
                continue
            limit = limits.get(cond.graph.inputs[consts + k], full)
            end = limit[1] if step > 0 else limit[0]
            if not full[0] <= end + step <= full[1]:
                if not _never_ends(start, step, full):
                    continue
                end -= step
            inside[consts + k] = (start[0], max(start[0], end)) if step > 0 else (min(start[1], end), start[1])
            asked[consts + k] = joined([start, inside[consts + k], (end + step, end + step)])
        self.given[node] = [asked, inside]
        new_cond, _ = self.body(cond, asked)
        new_body, _ = self.body(body, inside)
        return (new_cond, new_body, consts, *rest), asked[consts:]


def counter_step(body: Graph, consts: int, k: int) -> int | None:
    """What each step of a loop adds to carry ``k`` of its body, an integer; None where that is not a number, or 0."""
    x, after = body.inputs[consts + k], body.outputs[k]
    if after.op.name != "add" or x not in after.inputs or x.dtype.kind not in "iu":
        return None
    other = after.inputs[1] if after.inputs[0] is x else after.inputs[0]
    return (int(const_value(other)) or None) if other.op.name == "const" else None


def _never_ends(start: Range, step: int, full: Range) -> bool:
    """Whether a counter takes a year to come to the end of its type."""
    return (full[1] - start[1]) // step > YEAR_OF_STEPS if step > 0 else (start[0] - full[0]) // -step > YEAR_OF_STEPS


def _counted(start: Range | None, step: int, length: Int, full: Range | None) -> tuple[Range, Range] | None:
    """The range of a scan's counter in its steps, and after them."""
    if not isinstance(length, int):
        most = _counted(start, step, MAX_EXTENT, full)
        return None if most is None else (most[0], joined(most) or most[0])
    if start is None or full is None:
        return None
    end, last = step * length, step * max(0, length - 1)
    if not full[0] <= start[0] + min(0, end) <= start[1] + max(0, end) <= full[1]:
        return None
    return (start[0] + min(0, last), start[1] + max(0, last)), (start[0] + end, start[1] + end)


def _limits(cond: Graph, given: Ranges) -> dict[Node, Range]:
    """The ranges in which a condition that holds keeps its arguments."""
    known: dict[Node, Range | None] = dict(zip(cond.inputs, given, strict=True))
    for n in cond.nodes():
        if n not in known:
            known[n] = None if n.op.kind in ("control", "project") else range_of(n, [known[x] for x in n.inputs])
    found: dict[Node, Range] = {}
    waiting = list(cond.outputs)
    while waiting:
        n = waiting.pop()
        if n.op.name == "and":
            waiting += n.inputs
        elif n.op.name in ("lt", "le"):
            (x, y), strict = n.inputs, int(n.op.name == "lt")
            a, b = known[x], known[y]
            if a is not None and b is not None:
                found[x] = _meet(found.get(x, a), (a[0], b[1] - strict))
                found[y] = _meet(found.get(y, b), (a[0] + strict, b[1]))
    return found


def _meet(x: Range, y: Range) -> Range:
    return max(x[0], y[0]), min(x[1], y[1])


def _simpler(n: Node, inputs: Ranges, known: Range | None) -> Node | int | None:
    """What an elementwise node is for operands of these ranges: a number, or one of its operands."""
    if n.op.kind != "elementwise" or known is None:
        return None
    if known[0] == known[1]:
        return known[0]
    found: Node | None = None
    if n.op.name in ("max", "min"):
        (x, y), (a, b) = n.inputs, inputs
        if a is not None and b is not None:
            x_above, y_above = a[0] >= b[1], b[0] >= a[1]
            found = (x if x_above else y if y_above else None) if n.op.name == "max" else (y if x_above else x if y_above else None)
    elif n.op.name == "select" and inputs[0] in ((0, 0), (1, 1)):
        found = n.inputs[1] if inputs[0] == (1, 1) else n.inputs[2]
    elif n.op.name == "abs" and inputs[0] is not None and inputs[0][0] >= 0:
        found = n.inputs[0]
    elif n.op.name == "rem" and inputs[0] is not None and inputs[1] is not None and 0 <= inputs[0][0] and inputs[0][1] < inputs[1][0]:
        found = n.inputs[0]
    elif n.op.name == "and" and n.dtype.kind != "b":  # low bits, of which a mask takes all that the other operand has
        found = next((x for x, a, b in zip(n.inputs, inputs, inputs[::-1], strict=True) if _holds_all(b, a)), None)
    return found if found is not None and found.dtype is n.dtype and found.shape in (n.shape, ()) else None


def _holds_all(mask: Range | None, bits: Range | None) -> bool:
    """Whether ``mask`` is one number, of low bits alone, among which those of the other operand are."""
    if mask is None or bits is None or mask[0] != mask[1] or mask[0] < 0 or mask[0] & (mask[0] + 1):
        return False
    return 0 <= bits[0] and bits[1] <= mask[0]


def _rebuilt(graph: Graph, instead: dict[Node, Node | int], attrs: dict[Node, tuple[Any, ...]]) -> Graph:
    build = Builder()
    image: dict[Node, Node] = {}
    for n in graph.nodes():
        other = instead.get(n)
        if isinstance(other, Node):
            image[n] = build.fit(image[other], n.shape)
        elif other is not None:
            image[n] = build.full(other, n.dtype, n.shape)
        else:
            image[n] = build(n.op, tuple([image[x] for x in n.inputs]), attrs.get(n, n.attrs))
    return graph.mapped(image)
