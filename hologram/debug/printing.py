"""``hg.debug.print`` and ``hg.debug.callback``."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from hologram.control.effects import call_for_effect, without_result
from hologram.errors import ArgumentError
from hologram.support.user_lines import located
from hologram.trace import tree
from hologram.trace.checks import as_function


def callback(function: Callable[..., Any], *args: Any, ordered: bool = True, **options: Any) -> None:
    """Calls ``function(*args, **options)`` with the values that the arguments have when the program runs, as NumPy arrays.

    What it gives is ignored: see :func:`hologram.io_callback`, as which it is called. Derivatives go round it. Effects are always ordered, so
    ``ordered`` changes nothing. Raises ArgumentError for what is no function.

    >>> seen = []
    >>> @hg.jit
    ... def f(x):
    ...     hg.debug.callback(lambda y: seen.append(float(y)), x + 1)
    ...     return x
    >>> _ = f(2.0)
    >>> seen
    [3.0]
    """
    as_function(function, "debug.callback")
    call_for_effect("debug.callback", without_result(function), args, options)


def print(text: str, *args: Any, ordered: bool = True, **options: Any) -> None:
    """Prints ``text.format(*args, **options)`` with the values that the arguments have when the program runs.

    Under ``vmap`` a line is printed for each example. Prints are always ordered, so ``ordered`` changes nothing. Raises ArgumentError where the text
    names other arguments, or is none.

    >>> @hg.jit
    ... def f(x):
    ...     hg.debug.print("x is {x:.2f}", x=x)
    ...     return x * x
    >>> _ = f(3.0)
    x is 3.00
    """
    check_format(text, "debug.print", args, options)
    call_for_effect("debug.print", lambda *a, **o: builtins.print(formatted(text, a, o)), args, options)


class _Any:
    """What stands for a value while nothing is known of it."""

    def __format__(self, _: str) -> str:
        return ""

    def __getattr__(self, name: str) -> _Any:
        return self

    def __getitem__(self, key: Any) -> _Any:
        return self


def check_format(text: Any, what: str, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Raises ArgumentError unless ``text`` is a text whose fields are these arguments."""
    if not isinstance(text, str):
        raise located(ArgumentError(f"{what} takes a text with fields, such as 'x is {{x}}', not a {type(text).__name__}"))
    stand = _Any()
    try:
        text.format(*[stand] * len(args), **dict.fromkeys(options, stand))
    except (IndexError, KeyError, ValueError) as e:
        named = f"no argument {e}" if isinstance(e, KeyError) else str(e)
        raise located(ArgumentError(f"{what}: the text {text!r} does not fit its arguments: {named}")) from None


def formatted(text: str, args: tuple[Any, ...], options: dict[str, Any]) -> str:
    """``text`` with these values; arrays of no axes are formatted as numbers."""
    given, named = tree.map(lambda x: x[()] if isinstance(x, np.ndarray) and not x.ndim else x, (args, options))
    return text.format(*given, **named)
