"""The list of passes of canonical reduction, and what runs any list of passes.

A :class:`Pass` has a name, by which ``HOLOGRAM_DISABLE_PASSES`` leaves it out unless what comes after it takes it for granted. At
``HOLOGRAM_DEBUG=6`` each prints its result if it changed something, with the rules that fired; with ``HOLOGRAM_VERIFY`` that is verified.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hologram.errors import PassLimitError, RewriteError
from hologram.graph.canonical.complex_split import split_complex
from hologram.graph.canonical.control_flow import canonical_body, simplify_control
from hologram.graph.rewrite.engine import rewrite_bottom_up, rewrite_top_down
from hologram.graph.rewrite.rules import SIMPLIFY, SINK
from hologram.graph.verify_graph import verified, verify_graph
from hologram.ir.graph import Graph
from hologram.ir.node import Builder, Node
from hologram.settings import settings

DEBUG_LEVEL = 6
MAX_ROUNDS = 64  # of a Repeat; every round needs a movement that the one before set free


@dataclass(slots=True)
class Context:
    """What passes share: the precision, and, by pass, how often each rule fired."""

    precision: str
    fired: dict[str, Counter[str]] = field(default_factory=dict)

    def rules(self) -> Counter[str]:
        """How often each rule fired, in all passes together."""
        return sum(self.fired.values(), Counter())


@dataclass(frozen=True, slots=True)
class Pass:
    """``run(value, context, fired)`` gives the new value, or the old object itself where nothing changed."""

    name: str
    run: Callable[[Any, Context, Counter[str]], Any]
    required: bool = False  # runs whether or not it is disabled


@dataclass(frozen=True, slots=True)
class Repeat:
    """Passes that run again as long as the first of them changes something."""

    passes: tuple[Pass, ...]


def run_passes(value: Any, passes: Sequence[Pass | Repeat], context: Context) -> Any:
    """``value`` after all passes that are not disabled. Raises :class:`CompileError` where a pass leaves a malformed graph."""
    for p in passes:
        if isinstance(p, Repeat):
            value = _repeat(value, p, context)
        else:
            value = _run(value, p, context)
    return value


def _repeat(value: Any, p: Repeat, context: Context) -> Any:
    """``value`` when nothing changes any more, or after :data:`MAX_ROUNDS`, each of which gives what is right. Where passes are verified, those that
    undo one another are refused."""
    seen = set[str]()
    for _ in range(MAX_ROUNDS):
        moved = _run(value, p.passes[0], context)
        if moved is value:
            break
        value = run_passes(moved, p.passes[1:], context)
        if settings.verify:
            text = str(value)
            if text in seen:
                raise PassLimitError(f"the passes {' and '.join(q.name for q in p.passes)} undo one another, and never end:\n{text}")
            seen.add(text)
    return value


def _run(value: Any, p: Pass, context: Context) -> Any:
    if p.name in settings.disabled_passes and not p.required:
        return value
    fired: Counter[str] = Counter()
    try:
        out = p.run(value, context, fired)
    except RewriteError as e:
        raise RewriteError(f"in the pass {p.name}, {e}") from e
    context.fired.setdefault(p.name, Counter()).update(fired)
    debugging = settings.debug >= DEBUG_LEVEL
    if out is not value and debugging:
        counts = ", ".join(f"{name} {n}" for name, n in fired.most_common())
        print(f"--- {p.name}{': ' if counts else ''}{counts}\n{out}", file=sys.stderr)
    if out is not value and isinstance(out, Graph):
        verified(out, f"the pass {p.name}")
    return out


# --- the passes ------------------------------------------------------------------------------------------------------


def _arguments(graph: Graph, context: Context, fired: Counter[str]) -> Graph:
    """Forgets which trace an argument belongs to, and the marks of transforms: equal programs become equal graphs."""
    nodes = graph.nodes()
    if all(i.attrs[3] is None for i in graph.inputs) and all(n.op.kind != "mark" for n in nodes):
        return graph
    b = Builder()
    image: dict[Node, Node] = {}
    for node in nodes:
        if node.op.kind == "mark":
            image[node] = image[node.inputs[0]]
            continue
        attrs = (*node.attrs[:3], None) if node.op.name == "input" else node.attrs
        image[node] = b(node.op, tuple([image[i] for i in node.inputs]), attrs)
    lines = {image[node]: line for node, line in graph.lines.items() if node in image and node.op.kind != "mark"}
    return Graph([image[i] for i in graph.inputs], [image[o] for o in graph.outputs], lines)


def _bodies(graph: Graph, context: Context, fired: Counter[str]) -> Graph:
    """Control flow, and what is inside of it."""
    key = context.precision, settings.disabled_passes
    inside = Context(context.precision)
    out = simplify_control(
        graph, lambda body: canonical_body(body, lambda g: run_passes(g, CANONICAL, inside), key), fired, context.precision != "exact"
    )
    fired.update(inside.rules())
    return out


ARGUMENTS = Pass("arguments", _arguments)
COMPLEXES = Pass("complexes", lambda graph, context, fired: split_complex(graph), required=True)
BODIES = Pass("bodies", _bodies)
SIMPLIFICATION = Pass("simplify", lambda graph, context, fired: rewrite_bottom_up(graph, SIMPLIFY, context.precision, fired))
SINKING = Pass("sink", lambda graph, context, fired: rewrite_top_down(graph, SINK, context.precision, fired))

CANONICAL: tuple[Pass | Repeat, ...] = (ARGUMENTS, COMPLEXES, SIMPLIFICATION, Repeat((BODIES, SIMPLIFICATION)), Repeat((SINKING, SIMPLIFICATION)))


def canonicalise(graph: Graph, precision: str, context: Context | None = None) -> Graph:
    """``graph`` in canonical form at ``precision``; the same as that of its canonical form. ``context`` is filled with the rules that fired.

    Inputs stay as they are in number and order, used or not. Raises :class:`hologram.errors.RewriteError` for a defective rule.
    """
    if settings.verify:
        verify_graph(graph, "after tracing", interned=False)
    return run_passes(graph, CANONICAL, context or Context(precision))
