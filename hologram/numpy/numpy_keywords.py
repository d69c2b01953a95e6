"""Keywords of NumPy's functions that say nothing of values, which code for NumPy passes: memory order, sorting algorithms, ``out=None``.

:func:`accepting` lets a function take them. A value that NumPy gives a meaning which Tensors have not, as ``out=array``, is an ArgumentError.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from hologram.errors import ArgumentError
from hologram.support.user_lines import located

_ANY_ORDER = ("C", "F", "A", "K", None)  # Tensors have no memory order that could be seen
_VALUES: dict[str, tuple[Any, ...]] = {
    "out": (None,),
    "order": _ANY_ORDER,
    "kind": ("quicksort", "heapsort", "mergesort", "stable", None),
    "subok": (True, False),
    "overwrite_input": (True, False),
    "like": (None,),
}
_ADVICE = {"out": "Tensors are not written into: use the result"}
_LISTS: dict[tuple[str, ...], str] = {
    ("out",): """
        all amax amin any argmax argmin clip compress cumprod cumsum dot max mean min nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmin
        nanprod nanstd nansum nanvar outer prod ptp round std sum take trace var
    """,
    ("out", "overwrite_input"): "median nanmedian nanpercentile nanquantile percentile quantile",
    ("order", "like"): "asarray empty full ones zeros",
    ("order", "subok", "like"): "array",
    ("order", "subok"): "copy empty_like full_like ones_like zeros_like astype",
    ("kind", "order"): "argsort partition sort argpartition",
}
KEYWORDS = {name: keywords for keywords, names in _LISTS.items() for name in names.split()}


def without_neutral(what: str, options: dict[str, Any]) -> dict[str, Any]:
    """``options`` of the function ``what`` without those that say nothing of values. Raises ArgumentError for a value that does."""
    for keyword in KEYWORDS.get(what, ()):
        if keyword not in options:
            continue
        value = options[keyword]
        known = (None,) if keyword == "order" and "kind" in KEYWORDS[what] else _VALUES[keyword]  # order of fields of records
        if not any(value is k or (isinstance(value, str) and value == k) for k in known):
            raise located(ArgumentError(f"{what} with {keyword}={value!r} is not supported: {_ADVICE.get(keyword, 'leave it out')}"))
        options = {name: given for name, given in options.items() if name != keyword}
    return options


def accepting(name: str, f: Callable[..., Any]) -> Callable[..., Any]:
    """``f``, which also takes NumPy's keywords for the function ``name``; its signature stays that of ``f``."""

    @functools.wraps(f)
    def function(*args: Any, **options: Any) -> Any:
        return f(*args, **(without_neutral(name, options) if options else options))

    return function


def with_numpy_keywords(names: dict[str, Any]) -> dict[str, Any]:
    """The public functions, where :data:`KEYWORDS` says so made :func:`accepting`; names of one function share it."""
    made: dict[int, Any] = {}
    for name in KEYWORDS:
        f = names.get(name)
        if f is not None and id(f) not in made:
            made[id(f)] = accepting(name, f)
    return {name: made.get(id(f), f) for name, f in names.items()}
