"""``hg.debug.check``: conditions on values inside programs."""

from __future__ import annotations

from typing import Any

from hologram import dtypes
from hologram.control.effects import call_for_effect
from hologram.control.tracing import as_node
from hologram.debug.printing import check_format, formatted
from hologram.errors import CheckError
from hologram.primitives.reductions import reduce_all
from hologram.primitives.scalar import elementwise as ew
from hologram.support.user_lines import where
from hologram.trace.recorder import cast_node, record


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

    def fail(*given: Any, **named: Any) -> None:
        raise CheckError(formatted(message, given, named) + place)

    call_for_effect("debug.check", fail, args, options, record(ew.not_, (node,)))
