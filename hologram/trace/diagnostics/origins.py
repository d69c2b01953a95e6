"""Where a traced value comes from: the arguments that it depends on, and the op that made it; for errors."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

from hologram.errors import HologramError, TracedValueError
from hologram.ir.leaves import const, input_
from hologram.ir.node import Node, const_value
from hologram.ir.traversal import topological
from hologram.primitives.markers import example
from hologram.support.user_lines import located
from hologram.support.wording import listed
from hologram.trace import operators, tree
from hologram.trace.recorder import Trace, current

MAX_NAMED = 3  # of the arguments that a value depends on


def argument_paths(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> list[str]:
    """How each leaf of a call's arguments is called: ``x``, ``params['w'][0]``."""
    try:
        names = [name for name, p in inspect.signature(function).parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    except (TypeError, ValueError):
        names = []
    of = lambda i: names[i] if i < len(names) else f"args[{i}]"  # noqa: E731
    found = [path for i, x in enumerate(args) for path, _ in tree.paths(x, of(i))]
    return found + [path for name, x in options.items() for path, _ in tree.paths(x, name)]


def origin(node: Node) -> str:
    """``it is the argument n``, or what it was computed by and from; empty where that is not known."""
    trace = current()
    sources = _sources(node, trace)
    if node.op is input_ and len(sources) == 1:
        return f"it is {sources[0]}"
    made = node if node.op.name not in ("project", "cast", "mark") or not node.inputs else node.inputs[0]
    line = trace.lines.get(made) if trace is not None else None
    by = f"{made.op.name} made it" if made.inputs else ""
    by += f" at {os.path.basename(line[0])}:{line[1]}" if by and line is not None else ""
    more = f" and {len(sources) - MAX_NAMED} more" if len(sources) > MAX_NAMED else ""
    of = f"of {listed(sources[:MAX_NAMED])}{more}" if sources else ""
    return " ".join(filter(None, (by, of)))


def _sources(node: Node, trace: Trace | None) -> list[str]:
    """The arguments that a value depends on."""
    found: list[str] = []
    for n in topological([node]):
        if n.op is example:
            found.append("an example of a vmap")
        elif n.op is input_:
            found.append(_argument(n, trace))
    return list(dict.fromkeys(found))


def _argument(node: Node, trace: Trace | None) -> str:
    while trace is not None and node not in trace.inputs:
        trace = trace.parent
    if trace is None or trace.paths is None:
        return "an argument" if trace is None else f"an argument of the body of {trace.name}"
    paths, index = trace.paths(), trace.inputs.index(node)
    return f"the argument {paths[index]}" if index < len(paths) else "an argument"


def traced_size(x: Any, what: str, role: str) -> HologramError:
    """The error for a traced value in the place of ``role``, which a program is compiled for."""
    advice = "mark the argument static (jit's static_argnames), take it from a shape, or compute with the largest size and mask what is too much"
    name = f"the value of a traced {x.dtype}{list(x.shape)} Tensor"
    return located(TracedValueError(f"{what}: {role} cannot be {name} ({origin(x._node)}): it is known when the program is compiled; {advice}"))


def traced_slice(part: slice, axis: int) -> HologramError:
    """The error for a slice of which a bound is a traced value, with what says the same where its extent is known."""
    bounds = [x for x in (part.start, part.stop, part.step) if is_traced(x)]
    name = f"the value of a traced {bounds[0].dtype}{list(bounds[0].shape)} Tensor ({origin(bounds[0]._node)})"
    text = f"a slice's bound cannot be {name}: extents are known when the program is compiled"
    start, size = _window(part)
    if size is None:
        advice = "use hnp.dynamic_slice_in_dim where the extent is known, or a mask: hnp.where(hnp.arange(extent) < n, x, 0)"
        return located(TracedValueError(f"{text}; {advice}"))
    read, written = (f"hnp.{name}(x, {what}, axis={axis})" for name, what in (
        ("dynamic_slice_in_dim", f"{start}, {size}"), ("dynamic_update_slice_in_dim", f"values, {start}"),
    ))  # fmt: skip
    return located(TracedValueError(f"{text}; of {size} elements write {read}, or {written} to change them"))


def is_traced(x: Any) -> bool:
    """Whether ``x`` is a Tensor of this thread's trace, without a value."""
    trace = current()
    return trace is not None and type(x) is operators.tensor_class and x._storage is None and x._node is not None and trace.owns(x._node)


def _window(part: slice) -> tuple[str, int | None]:
    """How the start of a slice is called, and its extent, where its end is its start and a number."""
    if not is_traced(part.start) or not is_traced(part.stop) or part.step not in (None, 1):
        return "", None
    first, last = part.start._node, part.stop._node
    while last.op.name == "cast":
        last = last.inputs[0]
    if last.op.name != "add" or first not in last.inputs:
        return "", None
    (other,) = [x for x in last.inputs if x is not first] or [first]
    of = _sources(first, current()) if first.op is input_ else []
    return (of[0].removeprefix("the argument ") if of else "start"), int(const_value(other)) if other.op is const else None
