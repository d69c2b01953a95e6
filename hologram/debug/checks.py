"""``hg.debug.check``: conditions on values inside programs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from hologram import dtypes
from hologram.control.effects import call_for_effect
from hologram.control.tracing import as_node
from hologram.debug.printing import check_format, formatted
from hologram.errors import CheckError
from hologram.ir.node import Node
from hologram.primitives.reductions import reduce_all
from hologram.primitives.scalar import elementwise as ew
from hologram.support.user_lines import where
from hologram.trace.recorder import cast_node, record


class _Collecting(threading.local):
    """Where failures go while this thread traces, instead of being raised: a function of ``(text, *values)``, and values of the program for it."""

    store: Callable[..., None] | None = None
    values: tuple[Any, ...] = ()


collecting = _Collecting()


def check(condition: Any, message: str, *args: Any, **options: Any) -> None:
    """Raises CheckError when the program runs and ``condition``, or an element of it, does not hold.

    The error has ``message.format(*args, **options)``, with the values, and the line of the check.

    Nothing is called where the condition holds: that costs no more than to compute it. Under ``vmap`` the message is that of the first example
    for which it does not hold; derivatives go round it. Raises ArgumentError for a message that names other arguments.

    >>> @hg.jit
    ... def root(x):
    ...     hg.debug.check(x >= 0, "{x} has no root", x=x)
    ...     return hnp.sqrt(x)
    >>> root(-4.0)
    Traceback (most recent call last):
    ...
    hologram.errors.CheckError: -4.0 has no root (at ..., in root)
    """
    check_format(message, "debug.check", args, options)
    node, _ = as_node(condition, "debug.check: the condition")
    node = cast_node(node, dtypes.bool_)
    if node.shape:
        node = record(reduce_all, (node,), (tuple(range(len(node.shape))),))
    place = where()

    report(lambda *given, **named: formatted(message, given, named) + place, args, options, record(ew.not_, (node,)))


def report(text: Callable[..., str], args: tuple[Any, ...], options: dict[str, Any], fails: Node) -> None:
    """Where ``fails`` holds when the program runs: an error with ``text(*args, **options)``, raised or collected."""
    store, values = collecting.store, collecting.values

    def fail(values: tuple[Any, ...], *given: Any, **named: Any) -> None:
        if store is None:
            raise CheckError(text(*given, **named))
        store(text(*given, **named), *values)

    call_for_effect("debug.check", fail, (values, *args), options, fails)
