"""NumPy's own functions on Tensors: the protocols ``__array_ufunc__`` and ``__array_function__``.

What :mod:`hologram.numpy` has under the same name, for SciPy's ufuncs :mod:`hologram.special`, is called, and gives Tensors: ``np.sin(tensor)``,
``array + tensor``, ``np.mean(tensor, axis=0)``.
What it lacks, functions, arguments, options of ufuncs, NumPy computes on the values and gives arrays: with one warning for each function, as the
setting ``warn_fallback`` has it. While tracing there are no values, which is a TracedValueError. So are the methods of ufuncs,
``np.add.reduce(tensor)``. NumPy writes into its own arrays, ``array += tensor``; whatever would write into a Tensor is refused.
"""

from __future__ import annotations

import inspect
import math
import sys
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from hologram.errors import ArgumentError, DTypeError, FallbackWarning, HologramError, ShapeError
from hologram.settings import settings
from hologram.support.user_lines import located, user_frame, where
from hologram.trace import hooks
from hologram.trace.interchange.inplace_operators import writes_here, written
from hologram.trace.interchange.ufunc_options import with_dtype
from hologram.trace.recorder import current, transforming
from hologram.trace.tensor import Tensor, namespace

_WRITERS = ("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask")  # into their first argument


def _share_elements(a: Any, b: Any) -> bool:
    """Whether an assignment to elements of one may change the other, which is not known of the memory: Tensors have memory of their own once
    something reads them."""
    if type(a) is type(b) is Tensor:
        found: bool = hooks.assignment.share_elements(a, b)
        return found
    return np.may_share_memory(*_values((a, b), "numpy.may_share_memory"))


_ATTRIBUTES: dict[str, Callable[..., Any]] = {  # what is known without values
    "iscomplexobj": lambda x: np.issubdtype(x.dtype, np.complexfloating),
    "isrealobj": lambda x: not np.issubdtype(x.dtype, np.complexfloating),
    "shape": lambda a: a.shape,
    "may_share_memory": lambda a, b, max_work=None: _share_elements(a, b),
    "shares_memory": lambda a, b, max_work=None: _share_elements(a, b),
    "size": lambda a, axis=None: a.size if axis is None else math.prod(a.shape[i] for i in (axis if type(axis) is tuple else (axis,))),
}
# Of NumPy's functions in C that hologram.numpy has too: they tell no signature before NumPy 2.4.
_SIGNATURES: dict[str, Callable[..., None]] = {
    "arange": lambda start_or_stop, /, stop=None, step=1, *, dtype=None, device=None, like=None: None,
    "array": lambda object, dtype=None, *, copy=True, order="K", subok=False, ndmin=0, like=None: None,
    "asarray": lambda a, dtype=None, order=None, *, device=None, copy=None, like=None: None,
    "bincount": lambda x, /, weights=None, minlength=0: None,
    "can_cast": lambda from_, to, casting="safe": None,
    "concatenate": lambda arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind": None,
    "dot": lambda a, b, out=None: None,
    "empty": lambda shape, dtype=None, order="C", *, device=None, like=None: None,
    "empty_like": lambda prototype, /, dtype=None, order="K", subok=True, shape=None, *, device=None: None,
    "frombuffer": lambda buffer, dtype=None, count=-1, offset=0, *, like=None: None,
    "fromfile": lambda file, dtype=None, count=-1, sep="", offset=0, *, like=None: None,
    "fromiter": lambda iter, dtype, count=-1, *, like=None: None,
    "fromstring": lambda string, dtype=None, count=-1, *, sep, like=None: None,
    "inner": lambda a, b, /: None,
    "lexsort": lambda keys, axis=-1: None,
    "packbits": lambda a, /, axis=None, bitorder="big": None,
    "ravel_multi_index": lambda multi_index, dims, mode="raise", order="C": None,
    "result_type": lambda *arrays_and_dtypes: None,
    "unpackbits": lambda a, /, axis=None, count=None, bitorder="big": None,
    "unravel_index": lambda indices, shape, order="C": None,
    "vdot": lambda a, b, /: None,
    "where": lambda condition, x=None, y=None, /: None,
    "zeros": lambda shape, dtype=None, order="C", *, device=None, like=None: None,
}
_KNOWN_ORDERS = ("expn",)  # SciPy's takes arrays of orders
_RENAMED = {"a_min": "min", "a_max": "max", "newshape": "shape"}  # parameters with two names in NumPy


# These make an array of the kind of their argument. Libraries try them for an element type of NumPy's alone, and take other ways at the TypeError.
_LIKE = ("empty_like", "full_like", "ones_like", "zeros_like")
_FOR_C = ("atleast_1d", "atleast_2d", "atleast_3d")  # what callers of C code make sure of arrays by
_UFUNC_DEFAULTS = {"where": True, "casting": "same_kind", "order": "K", "dtype": None, "subok": True}


def ufunc(of: np.ufunc, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """``Tensor.__array_ufunc__``. Raises ArgumentError for what would write into a Tensor, TracedValueError where NumPy would need traced values."""
    others = (*inputs, *options.get("out", ()))
    if any(hasattr(type(x), "__array_ufunc__") and not isinstance(x, (Tensor, np.ndarray, np.generic)) for x in others):
        return NotImplemented
    what = f"numpy.{of.__name__}"
    if any(isinstance(x, np.ndarray) and x.dtype.kind == "O" for x in inputs):
        return _fallback(of if method == "__call__" else getattr(of, method), what, f"{what} of an array of objects", inputs, options)
    own = _own_ufunc(of)
    if method != "__call__":
        return _method(of, own, method, inputs, options)
    options = {k: v for k, v in options.items() if v is not _UFUNC_DEFAULTS.get(k, v) or k not in _UFUNC_DEFAULTS}
    if options.keys() == {"dtype"}:
        inputs, options = with_dtype(of, inputs, options)
    if "out" in options:
        return _into_arrays(of, what, inputs, options)
    if own is not None and options and options.keys() <= _keywords(own):
        return own(*inputs, **options)
    if options or own is None:
        given = " and ".join(f"{option}=" for option in options)
        reason = (
            f"{what} with {given}, which hologram.numpy.{of.__name__} does not take," if own is not None else f"{what}, which hologram.numpy lacks,"
        )
        return _fallback(of, what, reason, inputs, options)
    try:
        return own(*[np.asarray(x) if isinstance(x, (list, tuple)) else x for x in inputs])
    except (ArgumentError, DTypeError) as e:  # such as an order of complex numbers
        return _refused(e, of, what, (), inputs, {})


@lru_cache(maxsize=256)
def _keywords(own: Callable[..., Any]) -> frozenset[str]:
    """The arguments of a function that can be given by name."""
    if isinstance(own, namespace().ufunc):
        return frozenset()
    return frozenset(name for name, p in inspect.signature(own).parameters.items() if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD))


def _into_arrays(of: Callable[..., Any], what: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """NumPy's result in the arrays that ``out`` names. A Tensor among them is written into in packages that expect it, else an ArgumentError."""
    advice = "write x = x + y for x += y where x is an array"
    out = options["out"]
    targets = out if type(out) is tuple else (out,)
    if any(type(x) is Tensor for x in targets):
        if len(targets) == 1 and options.keys().isdisjoint({"where", "casting"}) and writes_here():
            result = of(*inputs, **{name: value for name, value in options.items() if name != "out"})
            return written(targets[0], namespace().asarray(result), "=")
        raise located(ArgumentError(f"{what} with out= writes into a Tensor, which does not change: leave out= away, or {advice}"))
    reading = f"{what} with out=, which writes into an array ({advice}),"
    return of(*_values(inputs, reading), **_values(options, reading))


def _written_by(of: Callable[..., Any], what: str, args: Any, options: dict[str, Any]) -> None:
    """What NumPy's ``of`` writes into its first argument, written into that Tensor, which is a view of others perhaps: for code that expects it."""
    target = np.array(args[0]._view(what))
    of(target, *_values(args[1:], what), **_values(options, what))
    hooks.assignment.replace(args[0], namespace().asarray(target))


def _fallback(of: Callable[..., Any], name: str, reason: str, args: Any, options: dict[str, Any]) -> Any:
    """NumPy's result on the values; the first time for this function, with a warning where it is an array or a number."""
    result = of(*_values(args, reason), **_values(options, reason))
    if settings.warn_fallback and name not in _told and not isinstance(result, (str, type(None))):  # which tells, or writes files
        _told.add(name)
        advice = "keep to hologram.numpy to stay in compiled programs, or set hg.settings.warn_fallback = False"
        warnings.warn(f"{reason} ran in NumPy on the values and gives NumPy's arrays: {advice}{where()}", FallbackWarning, stacklevel=_depth())
    return result


_told: set[str] = set()  # functions that the user was warned of


def _depth() -> int:
    """The stack level of the user's line for a warning of the caller's."""
    level, frame, user = 1, inspect.currentframe(), user_frame()
    while frame is not None and frame is not user:
        level, frame = level + 1, frame.f_back
    return max(level - 1, 1)


def _own_ufunc(of: np.ufunc) -> Any:
    """Hologram's function for a ufunc of NumPy's or of SciPy's special functions; None for any other, whatever its name is."""
    name = of.__name__
    if any(getattr(module, name, None) is of for module in (np, sys.modules["numpy._core.umath"])):
        return getattr(namespace(), name, None)
    theirs = sys.modules.get("scipy.special._ufuncs")
    if theirs is not None and getattr(theirs, name, None) is of and name not in _KNOWN_ORDERS:
        return getattr(namespace().special, name, None)
    return None


def _method(of: np.ufunc, own: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A method of a ufunc: that of hologram.numpy's, or NumPy's on the values where it has none."""
    what = f"numpy.{of.__name__}.{method}"
    if method == "at" and type(inputs[0]) is Tensor and writes_here():
        return _written_by(of.at, what, inputs, options)
    if method == "at" and type(inputs[0]) is Tensor:
        instead = f"x = hologram.numpy.{of.__name__}.at(x, i, …)"
        raise located(ArgumentError(f"{what} writes into its argument, and Tensors do not change: write {instead}"))
    if method == "at":
        reading = f"{what}, whose first argument is an array,"
        return of.at(*_values(inputs, reading), **_values(options, reading))
    if "out" in options:
        return _into_arrays(getattr(of, method), what, inputs, options)
    found = getattr(own, method, None)
    if found is None or (method == "outer" and options):
        return _fallback(getattr(of, method), what, f"{what}, which hologram.numpy lacks,", inputs, options)
    try:
        return found(*inputs, **options)
    except (ArgumentError, DTypeError) as e:
        return _refused(e, getattr(of, method), what, (), inputs, options)


def function(of: Callable[..., Any], types: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """``Tensor.__array_function__``."""
    if not all(issubclass(t, (Tensor, np.ndarray)) for t in types):
        return NotImplemented
    name = of.__name__
    if name in _ATTRIBUTES:
        return _ATTRIBUTES[name](*args, **options)
    own = _counterpart(of)
    full = ".".join([*of.__module__.split("."), name])
    if name in _WRITERS:
        if type(args[0] if args else next(iter(options.values()))) is Tensor:
            if args and writes_here():
                return _written_by(of, full, args, options)
            instead = "x = x.at[i].set(v)" if own is None else f"x = hologram.numpy.{name}(x, …)"
            raise located(ArgumentError(f"{full} writes into its argument, and Tensors do not change: write {instead}"))
        return of(*_values(args, full), **_values(options, full))
    if name in _FOR_C and current() is None and not transforming():
        return of(*_values(args, full), **options)
    if type(options.get("out")) is Tensor:
        return _into_arrays(of, full, args, options)
    lacking = f"{full}, which hologram.numpy lacks,"
    if own is not None:
        translated = _translated(of, own, args, options)
        lacking = _untaken(full)
        if translated is not None:
            try:
                return own(*translated[0], **translated[1])
            except (ArgumentError, DTypeError, ShapeError) as e:
                if name in _LIKE:
                    raise
                return _refused(e, of, full, types, args, options)
    if options.get("out") is not None:
        return _into_arrays(of, full, args, options)
    return _fallback(of, full, lacking, args, options)


def _untaken(full: str) -> str:
    return f"{full} with arguments that hologram.{full} does not take"


def _refused(e: HologramError, of: Callable[..., Any], full: str, types: Any, args: Any, options: dict[str, Any]) -> Any:
    """NumPy's result where hologram.numpy refuses an argument that NumPy takes, such as None among arrays. Raises that error where there are no
    values, where a mask would be lost, and where NumPy refuses too."""
    if current() is not None or transforming() or any(issubclass(t, np.ma.MaskedArray) for t in types):
        raise e
    try:
        return _fallback(of, full, _untaken(full), args, options)
    except FallbackWarning:  # which the user made an error
        raise
    except Exception:
        raise e from None


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
    named = {p.name for p in ours if p.kind is not p.POSITIONAL_ONLY} - {"out"}  # an array for results is NumPy's to write into
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
            elif (
                at == len(made.positional)
                and at < len(ours)
                and name != "out"
                and (ours[at].name == name or ours[at].name not in signature.parameters)
            ):
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
