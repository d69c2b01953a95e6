"""Where the first NaN or Inf of a program was made: what ``hg.debug.nans`` asks for.

While ``settings.nans`` is set, the results of each program are looked at. Where one has a NaN or an Inf, the program's graph is run again by the
reference interpreter, and followed back from the result along the values that have one, to the op that made it of values that have none; in a loop
from step to step. What came from arguments and constants was not made here. Jitted calls go through Python meanwhile, and what is recorded lazily
has lines.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import hologram.primitives.control as ops
from hologram.backends.native.tracing import closed, opened
from hologram.errors import NonFiniteError
from hologram.ir.graph import Graph, bodies
from hologram.ir.interpreter import evaluate, evaluate_node
from hologram.ir.leaves import input_
from hologram.ir.node import Node
from hologram.primitives.host.collectives import COLLECTIVES, axis_index
from hologram.primitives.host.effects import inner_nodes, is_call, without_effects
from hologram.settings import listeners, settings
from hologram.trace import recorder

Bad = Callable[[np.ndarray], np.ndarray]


class _Watch:
    """Stands for a trace, so that calls and operators take the way that sees each op."""


class _Watching:
    watch: _Watch | None = None


def follow_settings() -> None:
    """Begins or ends to watch, as ``settings.nans`` says."""
    if settings.nans and _Watching.watch is None:
        watch = _Watching.watch = _Watch()
        opened(watch)
        recorder.traces_in_progress.add(weakref.ref(watch, recorder.traces_in_progress.discard))  # type: ignore[arg-type]
        recorder.pending_lines = weakref.WeakKeyDictionary()
    elif not settings.nans and _Watching.watch is not None:
        recorder.traces_in_progress.discard(weakref.ref(_Watching.watch))
        closed(_Watching.watch)
        _Watching.watch = recorder.pending_lines = None


listeners.append(follow_settings)
follow_settings()


def check_results(what: str, graph: Callable[[], Graph], inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
    """Raises NonFiniteError where storages ``outputs``, which ``graph()`` gives of the storages ``inputs``, have a NaN, or an Inf, made there."""
    found = [_array(s) for s in outputs]
    kinds: list[tuple[str, Bad]] = [("NaN", _isnan)]
    if settings.nans != "nan":
        kinds.append(("Inf", _isinf))
    for name, bad in kinds:
        if any(_has(bad, x) for x in found):
            _raise_origin(what, name, bad, graph(), [_array(s) for s in inputs])


def _array(storage: Any) -> np.ndarray:
    from hologram.backends.native.storage import view
    from hologram.backends.residence import on_host

    return np.asarray(view(on_host(storage)))


def _isnan(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.isnan(x))


def _isinf(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.isinf(x))


def _has(bad: Bad, x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return any(_has(bad, y) for y in x)
    return x.dtype.kind not in "biu?" and bool(bad(x).any())


def _first(bad: Bad, value: Any) -> np.ndarray:
    """The bad one among the values of an op with several, as those on the host have."""
    return next(x for x in value if _has(bad, x)) if isinstance(value, (list, tuple)) else value


def _raise_origin(what: str, name: str, bad: Bad, graph: Graph, inputs: Sequence[np.ndarray]) -> None:
    silent = without_effects(graph)
    if any(map(is_call, inner_nodes(silent))):
        raise NonFiniteError(f"a result of {what} has a {name}; which op made it is not known, because io_callback cannot be called again")
    local = _without_messages(silent)
    with np.errstate(all="ignore"):
        found = _origin(local, inputs, bad)
        if found is None and local is not silent:
            raise NonFiniteError(
                f"a result of {what} has a {name}; no op made it before ranks exchanged values, and what is behind cannot be run again"
            )
        if found is None:
            return
        text = _described(found, name, bad)
        if bad is _isnan and any(_has(_isinf, x) for x in found.operands):
            before = _origin(found.graph, found.given, _isinf, found.node.inputs)
            text += "" if before is None else f"; {_described(before, 'Inf', _isinf)}"
    raise NonFiniteError(f"{what}: {text}")


def _without_messages(graph: Graph) -> Graph:
    """``graph`` to where it needs other ranks: these run no collective once more. What it computes itself are the results then."""
    alone: dict[Node, bool] = {}
    for n in graph.nodes():
        alone[n] = all(alone[x] for x in n.inputs) and not any(map(_is_message, _within(n)))
    if all(alone.values()):
        return graph
    ends = [*graph.outputs, *[x for n in graph.nodes() if not alone[n] for x in n.inputs]]
    return Graph(graph.inputs, list(dict.fromkeys(x for x in ends if alone[x])), graph.lines, graph.name)


def _is_message(node: Node) -> bool:
    """Whether ``node`` is a collective over ranks, which all run together."""
    return node.op in COLLECTIVES and node.op is not axis_index and bool(node.attrs[-2])


def _within(node: Node) -> Iterator[Node]:
    """``node``, and the nodes of its bodies."""
    yield node
    if node.op.kind == "control":
        for body in bodies(node):
            yield from inner_nodes(body.graph)


class Origin(NamedTuple):
    """The op that made the first one, its line, its value and those of its operands, its graph and what that was given, and the steps of the loops
    around it."""

    node: Node
    line: Any
    value: np.ndarray
    operands: list[np.ndarray]
    graph: Graph
    given: Sequence[np.ndarray]
    steps: tuple[int, ...] = ()


def _described(found: Origin, name: str, bad: Bad) -> str:
    index = tuple(int(i) for i in np.argwhere(bad(found.value))[0])
    shown = [str(x[index] if x.shape == found.value.shape else x[()]) for x in found.operands if x.shape in (found.value.shape, ())]
    of = f" of {', '.join(shown)}" if shown else f" of {', '.join(str(list(x.shape)) for x in found.operands)}" if found.operands else ""
    element = f" in element {list(index)} of {list(found.value.shape)}" if index else ""
    steps = "".join(f", in step {i} of a loop" for i in found.steps)
    place = "" if found.line is None else f" (at {found.line[0]}:{found.line[1]})"
    return f"{found.node.op.name}{of} made the first {name}{element}{steps}{place}"


def _origin(graph: Graph, inputs: Sequence[np.ndarray], bad: Bad, results: Sequence[Node] | None = None) -> Origin | None:
    """Where the first bad value among ``results``, by default the outputs, was made; None for those that the inputs and constants had already."""
    values: dict[Node, Any] = {}
    for n in graph.nodes():
        values[n] = evaluate_node(n, [inputs[n.attrs[0]]] if n.op is input_ else [values[x] for x in n.inputs])
    done: dict[Node, Origin | None] = {}
    order = [n for n in graph.nodes() if _has(bad, values[n])]  # inputs first
    for n in order:
        before = [x for x in n.inputs if x in done]
        known = next((done[x] for x in before if done[x] is not None), None)
        if known is not None or not n.inputs or n.op is ops.project:
            done[n] = known
        elif n.op.kind == "control":
            done[n] = _origin_inside(n, [values[x] for x in n.inputs], bad)
        else:
            operands = [values[x] for x in n.inputs if not isinstance(values[x], list)]
            done[n] = None if before else Origin(n, graph.lines.get(n), _first(bad, values[n]), operands, graph, inputs)
    return next((done[x] for x in (graph.outputs if results is None else results) if done.get(x) is not None), None)


def _origin_inside(node: Node, arrays: Sequence[np.ndarray], bad: Bad) -> Origin | None:
    """The same for a loop or branch."""
    for step, (graph, arguments) in enumerate(_runs(node, arrays)):
        found = _origin(graph, arguments, bad) if any(_has(bad, x) for x in evaluate(graph, arguments)) else None
        if found is not None:
            return found if node.op is ops.switch else found._replace(steps=(step, *found.steps))
    return None


def _runs(node: Node, arrays: Sequence[np.ndarray]) -> Iterator[tuple[Graph, list[np.ndarray]]]:
    """Each run of a body, and what it is given."""
    graph = bodies(node)[-1].graph
    if node.op is ops.switch:
        yield bodies(node)[int(arrays[0])].graph, list(arrays[1:])
        return
    if node.op is ops.while_:
        test, _, consts = ops.unlabelled(node.attrs)
        given = list(arrays)
        while evaluate(test.graph, given)[0]:
            yield graph, given
            given = [*arrays[:consts], *evaluate(graph, given)]
        return
    _, consts, carries, length, reverse = ops.unlabelled(node.attrs)
    state = list(arrays[consts : consts + carries])
    for i in reversed(range(length)) if reverse else range(length):
        given = [*arrays[:consts], *state, *[x[i] for x in arrays[consts + carries :]]]
        yield graph, given
        state = evaluate(graph, given)[:carries]
