"""Progress bars of loops: ``hg.progress``, and the labels that loops are given."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, TypeAlias

from hologram.errors import ArgumentError
from hologram.support.progress.bars import counting
from hologram.support.user_lines import located
from hologram.trace.call.jit import Jitted
from hologram.trace.checks import integer
from hologram.trace.recorder import current

Label: TypeAlias = "str | bool | None"


class _Asked(threading.local):
    """The label that :func:`progress` gives the loops of a function."""

    label: Label = None


_asked = _Asked()


def progress(work: Any, label: str | None = None, total: int | None = None) -> Any:
    """Shows how far a loop is: a bar with the steps that are done, the rate, and the time that is left.

    - ``work`` is iterable: gives an iterator over it. ``total`` says how many elements there are, where ``len`` does not.
    - ``work`` is a function that has loops (:func:`scan`, :func:`while_loop`, :func:`fori_loop`): gives the function in which the outermost of them
      have bars, as if each were called with ``progress=label``. It goes inside of ``jit``, not around it.

    Bars are drawn in terminals and notebooks, after half a second; see ``settings.progress`` and docs/notebooks.md. Raises ArgumentError for anything
    else, and for a function that is jitted already.

    >>> sum(hg.progress([1, 2, 3], "adding"))
    6
    >>> total = hg.jit(hg.progress(lambda xs: hg.scan(lambda c, x: (c + x, None), 0.0, xs)[0], "adding"))
    >>> total(np.ones(3, np.float32))
    Tensor(3., dtype=float32)
    """
    if isinstance(work, Jitted):
        raise located(ArgumentError(f"progress: {work.__name__} is jitted: write jit(progress(f)), so that its program has the bars"))
    if total is not None:
        total = integer(total, "progress", "total")
    if label is not None and not isinstance(label, str):
        raise located(ArgumentError(f"progress: a label is a text, not a {type(label).__name__}"))
    if isinstance(work, Iterable):
        found = len(work) if total is None and isinstance(work, Sized) else total
        return iter(work) if current() is not None else _counted(work, _clean(label) if label else "steps", found)
    if not callable(work):
        raise located(ArgumentError(f"progress takes something to go over, or a function with loops, not a {type(work).__name__}"))
    return _with_bars(work, label or True)


def _with_bars(function: Callable[..., Any], label: Label) -> Callable[..., Any]:
    @functools.wraps(function)
    def labelled(*args: Any, **options: Any) -> Any:
        before = _asked.label
        try:
            _asked.label = label
            return function(*args, **options)
        finally:
            _asked.label = before

    return labelled


def loop_label(given: Label, body: Callable[..., Any], what: str) -> tuple[str, ...]:
    """What the attributes of a loop end with: the label of its bar, or nothing. Raises ArgumentError for what is no label."""
    wanted = _asked.label if given is None else given
    if wanted is None or wanted is False:
        return ()
    if wanted is True:
        name = getattr(body, "__name__", what)
        return (_clean(what if name == "<lambda>" else name),)
    if not isinstance(wanted, str):
        raise located(ArgumentError(f"{what}: progress is a label, True or False, not a {type(wanted).__name__}"))
    return (_clean(wanted) or what,)


def inner_loops_unlabelled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The body of a loop, whose own loops :func:`progress` gives no bars."""
    if _asked.label is None or not callable(function):
        return function
    return _with_bars(function, None)


def counted(steps: Iterable[Any], label: tuple[str, ...]) -> Iterator[Any]:
    """``steps`` of a loop in Python, with a bar if it has a label."""
    return _counted(steps, label[0], len(steps) if isinstance(steps, range) else None) if label else iter(steps)


def _counted(steps: Iterable[Any], label: str, total: int | None) -> Iterator[Any]:
    with counting((label,), total) as bar:
        for x in steps:
            yield x
            bar.done += 1


def _clean(label: str) -> str:
    """A label on one line, without what moves a terminal's cursor."""
    return "".join(c for c in " ".join(label.split()) if c.isprintable())
