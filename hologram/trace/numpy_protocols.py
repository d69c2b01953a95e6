"""NumPy's own functions on Tensors: the protocols ``__array_ufunc__`` and ``__array_function__``.

What :mod:`hologram.numpy` has under the same name is called, and gives Tensors: ``np.sin(tensor)``, ``array + tensor``, ``np.mean(tensor, axis=0)``.
What it lacks, functions or arguments, NumPy computes on the values and gives arrays; while tracing there are no values, which is a
TracedValueError. So are the methods of ufuncs, ``np.add.reduce(tensor)``. Options of ufuncs but
``dtype`` are refused, and so is whatever writes into a Tensor.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from hologram.errors import ArgumentError
from hologram.support.user_lines import located
from hologram.trace.tensor import Tensor, namespace
from hologram.trace.ufunc_options import with_dtype

_WRITERS = ("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask")  # into their first argument
_ATTRIBUTES: dict[str, Callable[..., Any]] = {  # what is known without values
    "iscomplexobj": lambda x: np.issubdtype(x.dtype, np.complexfloating),
    "isrealobj": lambda x: not np.issubdtype(x.dtype, np.complexfloating),
    "shape": lambda a: a.shape,
    "size": lambda a, axis=None: a.size if axis is None else a.shape[axis],
}
# Of NumPy's functions in C that hologram.numpy has too: they tell no signature before NumPy 2.4.
_SIGNATURES: dict[str, Callable[..., None]] = {
    "bincount": lambda x, /, weights=None, minlength=0: None,
    "can_cast": lambda from_, to, casting="safe": None,
    "concatenate": lambda arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind": None,
    "dot": lambda a, b, out=None: None,
    "empty_like": lambda prototype, /, dtype=None, order="K", subok=True, shape=None, *, device=None: None,
    "inner": lambda a, b, /: None,
    "lexsort": lambda keys, axis=-1: None,
    "packbits": lambda a, /, axis=None, bitorder="big": None,
    "ravel_multi_index": lambda multi_index, dims, mode="raise", order="C": None,
    "result_type": lambda *arrays_and_dtypes: None,
    "unpackbits": lambda a, /, axis=None, count=None, bitorder="big": None,
    "unravel_index": lambda indices, shape, order="C": None,
    "vdot": lambda a, b, /: None,
    "where": lambda condition, x=None, y=None, /: None,
}
_RENAMED = {"a_min": "min", "a_max": "max", "newshape": "shape"}  # parameters with two names in NumPy


def ufunc(of: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """``Tensor.__array_ufunc__``. Raises ArgumentError for what writes, and for options that hologram.numpy's ufunc does not take."""
    if any(hasattr(type(x), "__array_ufunc__") and not isinstance(x, (Tensor, np.ndarray, np.generic)) for x in inputs):
        return NotImplemented
    name = of.__name__
    own = getattr(namespace(), name, None)
    if method != "__call__":
        return _method(of, own, method, inputs, options)
    inputs, options = with_dtype(of, inputs, options)
    if options:
        given = ", ".join(f"{option}=" for option in options)
        advice = "write x = x + y for x += y where x is an array" if "out" in options else f"use hologram.numpy.{name}, where and astype"
        raise located(ArgumentError(f"numpy.{name} with {given} does not take Tensors: {advice}, or NumPy on np.asarray(tensor)"))
    if own is None:
        return of(*_values(inputs, f"numpy.{name}, which hologram.numpy lacks,"))
    return own(*[np.asarray(x) if isinstance(x, (list, tuple)) else x for x in inputs])


def _method(of: np.ufunc, own: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A method of a ufunc: that of hologram.numpy's, or NumPy's on the values where it has none."""
    what = f"numpy.{of.__name__}.{method}"
    if method == "at" and type(inputs[0]) is Tensor:
        instead = f"x = hologram.numpy.{of.__name__}.at(x, i, …)"
        raise located(ArgumentError(f"{what} writes into its argument, and Tensors do not change: write {instead}"))
    if refused := [option for option in options if method == "outer" or option == "out"]:
        raise located(ArgumentError(f"{what} with {refused[0]}= does not take Tensors: use hologram.numpy, or NumPy on np.asarray(tensor)"))
    found = None if method == "at" else getattr(own, method, None)
    if found is None:
        reading = f"{what}, whose first argument is an array," if method == "at" else f"{what}, which hologram.numpy lacks,"
        return getattr(of, method)(*_values(inputs, reading), **_values(options, reading))
    return found(*inputs, **options)


def function(of: Callable[..., Any], types: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """``Tensor.__array_function__``."""
    if not all(issubclass(t, (Tensor, np.ndarray)) for t in types):
        return NotImplemented
    name = of.__name__
    if name in _ATTRIBUTES:
        return _ATTRIBUTES[name](*args, **options)
    own = _counterpart(of)
    if name in _WRITERS and (type(args[0] if args else next(iter(options.values()))) is Tensor):
        instead = "x = x.at[i].set(v)" if own is None else f"x = hologram.numpy.{name}(x, …)"
        raise located(ArgumentError(f"numpy.{name} writes into its argument, and Tensors do not change: write {instead}"))
    lacking = f"numpy.{name}, which hologram.numpy lacks,"
    if own is not None and name not in _WRITERS:
        translated = _translated(of, own, args, options)
        if translated is not None:
            return own(*translated[0], **translated[1])
        lacking = f"numpy.{name} with arguments that hologram.numpy.{name} does not take"
    return of(*_values(args, lacking), **_values(options, lacking))


def _counterpart(of: Callable[..., Any]) -> Callable[..., Any] | None:
    """hologram.numpy's function of the same name, in the module of the same name."""
    home: Any = namespace()
    for part in of.__module__.split(".")[1:]:
        home = getattr(home, part, None)
    found: Callable[..., Any] | None = getattr(home, of.__name__, None)
    return found


Place = int | str  # of an argument: its number or name


class _Translation(NamedTuple):
    """Where the arguments of a call go: to hologram.numpy's function by place or by name, or nowhere, if they have their defaults."""

    positional: list[Place]
    keywords: dict[str, Place]
    defaults: list[tuple[Place, Any]]


def _signature(of: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function of NumPy's that hologram.numpy has too."""
    try:
        return inspect.signature(of)
    except ValueError:
        return inspect.signature(_SIGNATURES[of.__name__])


@lru_cache(maxsize=1024)
def _translation(of: Callable[..., Any], own: Callable[..., Any], count: int, names: tuple[str, ...]) -> _Translation | None:
    """How a call of NumPy's ``of`` with so many positional arguments and these keywords is one of ``own``; None where it is not.

    Parameters correspond by name, or by place where ``own`` has a name of its own. One that ``own`` lacks may have its default.
    """
    signature, own_signature = _signature(of), inspect.signature(own)
    theirs, ours = list(signature.parameters.values()), list(own_signature.parameters.values())
    named = {p.name for p in ours if p.kind is not p.POSITIONAL_ONLY}
    made = _Translation([], {}, [])
    if any(p.kind is p.VAR_POSITIONAL for p in theirs):
        made.positional.extend(range(count))
        made.keywords.update({name: name for name in names})
    else:
        for name, source in signature.bind(*range(count), **{n: n for n in names}).arguments.items():
            parameter = signature.parameters[name]
            at, name = theirs.index(parameter), _RENAMED.get(name, name)
            if parameter.kind is parameter.VAR_KEYWORD:
                made.keywords.update(source)
            elif name in named:
                made.keywords[name] = source
            elif at == len(made.positional) and at < len(ours) and (ours[at].name == name or ours[at].name not in signature.parameters):
                made.positional.append(source)
            else:
                made.defaults.append((source, parameter.default))
    try:
        own_signature.bind(*made.positional, **made.keywords)
    except TypeError:
        return None
    return made


def _translated(of: Callable[..., Any], own: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The arguments of NumPy's ``of`` as positional and keyword ones of ``own``; None where they do not fit."""
    found = _translation(of, own, len(args), tuple(options))

    def value(place: Place) -> Any:
        return args[place] if isinstance(place, int) else options[place]

    if found is None or any(value(place) is not default for place, default in found.defaults):
        return None
    return [value(p) for p in found.positional], {name: value(p) for name, p in found.keywords.items()}


def _values(x: Any, reading: str) -> Any:
    """``x`` with the values of the Tensors in its containers."""
    if type(x) is Tensor:
        return x._view(reading)
    if type(x) in (list, tuple):
        return type(x)([_values(e, reading) for e in x])
    return {k: _values(v, reading) for k, v in x.items()} if type(x) is dict else x
