"""Tokens of the code that this thread runs: which effect was the last one.

See :mod:`hologram.primitives.host.effects`. Effects run at once outside of traces and vmaps. In a trace, tokens go from effect to effect: from a
constant, or in the body of a loop or branch from an argument, to a result that the trace has beside its own. In a vmap outside of traces they do
the same, and what was called for its effect runs when the vmap ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from hologram.ir.node import Node
from hologram.primitives.host.effects import TOKEN
from hologram.trace import hooks
from hologram.trace.operators import Tensor, wrap
from hologram.trace.recorder import constant, current, stacking, thread_state


def runs_at_once() -> bool:
    """Whether there are values here, so that what is called for its effect is just called."""
    return current() is None and not stacking()


def last_token() -> Node | None:
    """What the last effect here gave; None where there was none."""
    trace = current()
    return thread_state.last_token if trace is None else trace.last_token


def token() -> Node:
    """What the next effect here takes."""
    found = last_token()
    if found is not None:
        return found
    trace = current()
    if trace is None or not trace.is_body:
        return constant(0, TOKEN[1])
    if trace.first_token is None:
        trace.first_token = trace.input(*TOKEN)
    return trace.first_token


def follow(made: Node | None, beside: Iterable[Tensor] = ()) -> None:
    """Notes what an effect, or a loop or branch with effects, gave. Outside of traces and vmaps it is run now, with its other results."""
    trace = current()
    if trace is not None:
        trace.last_token = made
    elif stacking():
        thread_state.last_token = made
    elif made is not None:
        hooks.realise(wrap(made), *beside)


def forget(made: Node | None) -> None:
    """Goes back to what the last effect here gave earlier."""
    trace = current()
    if trace is not None:
        trace.last_token = made
    else:
        thread_state.last_token = made
