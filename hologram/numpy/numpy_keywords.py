"""Arguments as code for NumPy passes them: by NumPy's names, and those that say nothing of values: memory order, sorting algorithms, ``out=None``.

:func:`accepting` lets a function take the latter, by name and at their places among NumPy's positional arguments. A value that NumPy gives a meaning
which Tensors have not, as ``out=array``, is an ArgumentError. :func:`by_numpys_names` lets it take NumPy's names of arguments that have another name
here, or none, as ``linspace(start=0, stop=1)``, ``clip(x, a_min=0)``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from hologram.errors import ArgumentError
from hologram.support.user_lines import located
from hologram.trace.interchange.inplace_operators import around

_ANY_ORDER = ("C", "F", "A", "K", None)  # Tensors have no memory order that could be seen
_KINDS = ("quicksort", "heapsort", "mergesort", "stable", None)
_NEUTRAL: dict[str, tuple[Any, ...]] = {  # the values that are taken, the default first
    "out": (None,),
    "order": (None, *_ANY_ORDER),
    "kind": (None, *_KINDS, "introselect"),
    "subok": (True, False),
    "overwrite_input": (False, True),
    "like": (None,),
}
_ADVICE = {"out": "Tensors are not written into: use the result"}
# NumPy's order of positional arguments, from the first that can be given by name; arguments behind the semicolon go by name alone
_LISTS = {
    "axis out keepdims": "all any argmax argmin nanargmax nanargmin nanmax nanmin ptp",
    "axis out keepdims initial where": "amax amin max min",
    "axis dtype out keepdims": "mean nanmean nanprod nansum",
    "axis dtype out keepdims initial where": "prod sum",
    "axis dtype out ddof keepdims": "nanstd nanvar std var",
    "axis dtype out": "cumprod cumsum nancumprod nancumsum",
    "axis out overwrite_input keepdims": "median nanmedian",
    "q axis out overwrite_input method keepdims": "nanpercentile nanquantile percentile quantile",
    "axis out": "compress concat concatenate stack",
    "indices axis out mode": "take",
    "which choices out mode": "choose",
    "offset axis1 axis2 dtype out": "trace",
    "decimals out": "around round",
    "min max out": "clip",
    "out": "dot outer",
    "axis kind order": "argpartition argsort partition sort",
    "shape dtype order; like": "empty ones zeros",
    "shape fill_value dtype order; like": "full",
    "dtype order; like": "asarray",
    "data dtype; order subok like": "array",
    "dtype order subok shape": "empty_like ones_like zeros_like",
    "fill_value dtype order subok shape": "full_like",
    "order subok": "copy",
    "dtype; order subok": "astype",
}
# positional arguments of functions of which some versions of NumPy do not tell them
_UNTOLD = {
    name: tuple(order.split())
    for name, order in {"array": "object", "arange": "start stop step", "dot": "a b", "bincount": "x weights minlength", "lexsort": "keys"}.items()
}
POSITIONS = {name: tuple(order.partition(";")[0].split()) for order, names in _LISTS.items() for name in names.split()}
KEYWORDS = {name: tuple(x for x in order.replace(";", " ").split() if x in _NEUTRAL) for order, names in _LISTS.items() for name in names.split()}


def without_neutral(what: str, options: dict[str, Any]) -> dict[str, Any]:
    """``options`` of the function ``what`` without those that say nothing of values. Raises ArgumentError for a value that does."""
    for keyword in KEYWORDS[what]:
        if keyword not in options:
            continue
        value = options[keyword]
        known = (None,) if keyword == "order" and "kind" in KEYWORDS[what] else _NEUTRAL[keyword]  # order of fields of records
        if not any(value is k or (isinstance(value, str) and value == k) for k in known):
            raise located(ArgumentError(f"{what} with {keyword}={value!r} is not supported: {_advice(what, keyword, value)}"))
        options = {name: given for name, given in options.items() if name != keyword}
    return options


def _advice(what: str, keyword: str, value: Any) -> str:
    order = POSITIONS[what]
    if keyword == "out" and isinstance(value, bool) and "keepdims" in order:
        return f"as in NumPy the arguments are {', '.join(order)}: write keepdims={value}"
    return _ADVICE.get(keyword, "leave it out")


def accepting(name: str, f: Callable[..., Any]) -> Callable[..., Any]:
    """``f``, which takes what NumPy's function ``name`` takes, at its places; its signature says so."""
    signature = inspect.signature(f)
    parameters = list(signature.parameters.values())
    data = [p for p in parameters if p.kind is p.POSITIONAL_ONLY]
    order, own = POSITIONS[name], {p.name: p for p in parameters}
    places = [len(data) + order.index(x) for x in KEYWORDS[name] if x in order]
    first = min(places, default=len(parameters))  # from here on NumPy's arguments are not those of f
    last = len(data) + len(order)

    @functools.wraps(f)
    def function(*args: Any, **options: Any) -> Any:
        if first < len(args) <= last:
            behind = dict(zip(order[first - len(data) :], args[first:], strict=False))
            if twice := behind.keys() & options.keys():
                raise TypeError(f"{name}() got multiple values for argument {min(twice)!r}")
            args, options = args[:first], behind | options
        return f(*args, **(without_neutral(name, options) if options else options))

    if places:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        at_places = [own[x].replace(kind=kind) if x in own else inspect.Parameter(x, kind, default=_NEUTRAL[x][0]) for x in order]
        rest = [p.replace(kind=p.KEYWORD_ONLY) for p in parameters if p not in data and p.name not in order]
        function.__signature__ = signature.replace(parameters=[*data, *at_places, *rest])  # type: ignore[attr-defined]
    return function


def by_numpys_names(f: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    """``f``, which takes its positional arguments also by the names that NumPy's function ``theirs`` has for them. NumPy is asked for the names when
    one is met that ``f`` has not."""
    parameters = list(inspect.signature(f).parameters.values())
    own = frozenset(p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))

    @functools.wraps(f)
    def function(*args: Any, **options: Any) -> Any:
        if options and not own.issuperset(options):
            args, options = _in_own_words(parameters, _names_of(theirs), args, options)
        return f(*args, **options)

    return function


@functools.cache
def _names_of(theirs: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the positional arguments of NumPy's function; none where it does not tell."""
    try:
        return tuple(p.name for p in inspect.signature(theirs).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD)
    except (TypeError, ValueError):
        return _UNTOLD.get(theirs.__name__, ())


def _in_own_words(
    parameters: list[inspect.Parameter], names: tuple[str, ...], args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """``args`` and ``options`` with the arguments that have one of NumPy's ``names`` at their places, or under the name of the parameter there."""
    options = dict(options)
    for i, (mine, name) in enumerate(zip(parameters, names, strict=False)):
        if name not in options or (mine.name == name and mine.kind is not mine.POSITIONAL_ONLY):
            continue
        if mine.kind is mine.POSITIONAL_ONLY and i == len(args):
            args = (*args, options.pop(name))
        elif mine.kind is mine.POSITIONAL_OR_KEYWORD and i >= len(args) and mine.name not in options:
            options[mine.name] = options.pop(name)
    return args, options


def with_numpy_names(names: dict[str, Any], library: ModuleType) -> dict[str, Any]:
    """The public functions, made :func:`by_numpys_names` where ``library`` of NumPy has a function of the name; those of one function share it."""
    made: dict[int, Any] = {}
    for name, f in names.items():
        theirs = getattr(library, name, None)
        if inspect.isfunction(f) and callable(theirs) and f is not theirs and not isinstance(theirs, (type, np.ufunc)) and id(f) not in made:
            made[id(f)] = found = around(functools.partial(by_numpys_names, theirs=theirs), f)
            if found is not f:
                found.__module__, found.__qualname__ = f"hologram.{library.__name__.split('.')[-1]}", name  # where pickle finds it
    return {name: made.get(id(f), f) for name, f in names.items()}


def with_numpy_keywords(names: dict[str, Any]) -> dict[str, Any]:
    """The public functions, where :data:`KEYWORDS` says so made :func:`accepting`; names of one function share it."""
    made: dict[int, Any] = {}
    for name in KEYWORDS:
        f = names.get(name)
        if f is not None and id(f) not in made:
            made[id(f)] = accepting(name, f)
    return {name: made.get(id(f), f) for name, f in names.items()}
