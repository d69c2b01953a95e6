"""Jitted functions, programs and graphs in notebooks. Only what is known already is shown: nothing is traced or compiled for it."""

from __future__ import annotations

import reprlib
from collections import Counter
from typing import Any

from hologram.ir.graph import Graph, text
from hologram.notebook.markup import Content, Html, box, details, heading, listing, table
from hologram.support.wording import counted
from hologram.trace.call.jit import Jitted
from hologram.trace.call.stages import Compiled, Explanation, Lowered

MAX_NODES = 5000  # of a graph whose text is made
MAX_OPEN_NODES = 24  # of a graph whose text is shown at once
MAX_SIGNATURES = 50
MAX_ARGUMENTS = 12  # of a signature, that are named


def jitted_html(f: Jitted) -> str:
    """What has been compiled for a jitted function, in the order in which that was done."""
    made = f._specialisations.values()
    facts = [f"{len(made)} signature{'s' * (len(made) != 1)} compiled", f"precision {f._precision}" * (f._precision != "standard")]
    parts: list[Content] = [heading(f"jit {f.__qualname__}", *facts)]
    if made:
        rows = [[_arguments(s.record), _place(s.executable), f"{s.seconds:.3g} s"] for s in made[-MAX_SIGNATURES:]]
        parts.append(table(rows, ["arguments", "runs on", "traced and compiled in"]))
    if len(made) > MAX_SIGNATURES:
        parts.append(f"and {len(made) - MAX_SIGNATURES} earlier ones")
    if f._last_miss is not None and len(made) > 1:
        parts.append(details("why it last compiled", listing(f._last_miss)))
    return box(*parts)


def lowered_html(lowered: Lowered) -> str:
    """A traced call."""
    return box(heading(f"Lowered {lowered.name}", f"precision {lowered.precision}", lowered.device or ""), _graph(lowered.graph))


def compiled_html(compiled: Compiled) -> str:
    """A compiled call: its arguments, what it costs where its plan is known, and its graph."""
    executable = compiled.executable
    parts: list[Content] = [heading(f"Compiled {compiled.name}", _place(executable)), _facts(compiled)]
    traced = getattr(executable, "traced", None)
    return box(*parts, _graph(traced) if isinstance(traced, Graph) else "")


def explanation_html(explanation: Explanation) -> str:
    """All that ``explain`` tells, each part on request."""
    parts = [details(title, listing(str(body)), title == "reduction") for title, body in explanation.sections()]
    return box(heading(f"explain {explanation.lowered.name}"), *parts)


def graph_html(graph: Graph) -> str:
    """A graph: what it takes and gives, how many nodes of each op it has, and its text."""
    return box(heading("Graph", *_sides(graph)), _graph(graph))


def _graph(graph: Graph) -> Content:
    nodes = graph.nodes()
    counts = Counter(n.op.name for n in nodes if n.op.kind not in ("leaf", "project"))
    spelled = ", ".join(f"{name} {n}" if n > 1 else name for name, n in counts.most_common(12))
    more = ", …" if len(counts) > 12 else ""
    summary = f"{sum(counts.values()):,} operations{': ' * bool(spelled)}{spelled}{more}"
    if len(nodes) > MAX_NODES:
        return details(summary, "too many to be shown here: print it")
    return details(summary, listing(text(graph, lines=True)), len(nodes) <= MAX_OPEN_NODES)


def _sides(graph: Graph) -> list[str]:
    return [f"{_types(graph.inputs)} → {_types(graph.outputs)}"]


def _types(nodes: Any) -> str:
    shown = [f"{x.dtype}{list(x.shape)}" for x in nodes[:MAX_ARGUMENTS]]
    return ", ".join([*shown, *(["…"] if len(nodes) > MAX_ARGUMENTS else [])]) or "nothing"


def _arguments(record: Any) -> str:
    named = [f"{path}: {t}" for path, t in zip(record.paths, record.types, strict=True)]
    named += [f"{name} = {reprlib.repr(value)}" for name, value in record.statics.items()]
    return ", ".join([*named[:MAX_ARGUMENTS], *(["…"] if len(named) > MAX_ARGUMENTS else [])]) or "none"


def _place(executable: Any) -> str:
    return str(executable.placement or getattr(executable, "where", ""))


def _facts(compiled: Compiled) -> Content:
    """What is known of a program; a program from the disk cache has no plan until somebody asks for it."""
    executable = compiled.executable
    rows: list[list[Content]] = [["arguments", _arguments(compiled._run.record)]]
    traced = getattr(executable, "traced", None)
    if isinstance(traced, Graph):
        rows.append(["results", _types(traced.outputs)])
    compilation = getattr(executable, "compilation", None)
    if compilation is not None and compilation.is_planned:
        memory, cost, reduction = executable.memory_analysis(), executable.cost_analysis(), executable.reduction()
        host = f", {counted(reduction.host_calls, 'call')} of the host" if reduction.host_calls else ""
        rows += [
            ["kernels", f"{reduction.kernels}{host}, from {counted(reduction.traced, 'operation')}"],
            ["moves", f"{cost.bytes_moved:,} bytes in and out, {cost.intermediate_bytes:,} through intermediates"],
            ["memory", f"{memory.peak:,} bytes of intermediates, lower bound {memory.lower_bound:,}"],
        ]
    return table(rows) if rows else Html("")
