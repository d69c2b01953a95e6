"""In-place operators, and functions that write: what ``x += v`` means depends on the package in which the statement stands.

Programs in the style of JAX expect that ``x += v`` gives the name ``x`` a new value. Packages that were written for NumPy's arrays, SciPy among them,
expect that it writes into ``x`` and into every view of the same elements: ``part = x[1:]; part += 1`` changes ``x``. Python tells an operator
nothing of that, so ``settings.inplace_packages`` names the packages that expect the second. In their code ``x += v`` is ``x[...] = x + v``,
and functions such as ``put_along_axis``, which give a changed copy elsewhere, change their argument, as their callers drop the result.

Tensors get the operators when one of these packages has been imported. Without them Python computes ``x = x + v``, and nobody pays for a look at
the caller.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from hologram.errors import DTypeError, ShapeError
from hologram.settings import INPLACE_PACKAGES, listeners, settings
from hologram.support.imports import when_imported
from hologram.support.user_lines import located
from hologram.trace import hooks, operators

SYMBOLS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>",
}  # fmt: skip


def _operator(name: str) -> Callable[[Any, Any], Any]:
    plain = getattr(operators.tensor_class, f"__{name}__")

    def method(self: Any, other: Any, /) -> Any:
        result = plain(self, other)
        if result is NotImplemented or not _writes(sys._getframe(1).f_globals.get("__name__")):
            return result
        return written(self, result, SYMBOLS[name])

    method.__name__ = f"__i{name}__"
    return method


_known: dict[Any, bool] = {}  # by names of modules
_writers: set[Callable[..., Any]] = set()


def _writes(module: Any) -> bool:
    """Whether code of the module with this name, None for what has none, belongs to one of the packages."""
    try:
        return _known[module]
    except KeyError:
        name = f"{module}."
        return _known.setdefault(module, any(name.startswith(f"{p}.") for p in settings.inplace_packages))


def writes_here() -> bool:
    """Whether the code that called into NumPy or Hologram belongs to one of the packages."""
    frame: Any = sys._getframe(1)
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in ("hologram", "numpy"):
        frame = frame.f_back
    return frame is not None and _writes(frame.f_globals.get("__name__"))


def writer(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, which gives a copy of its first argument, a Tensor, with other elements; in the packages that expect it, it gives None, and its
    argument has the new elements."""

    @functools.wraps(function)
    def method(x: Any, /, *args: Any, **options: Any) -> Any:
        result = function(x, *args, **options)
        if type(x) is not operators.tensor_class or not _writes(sys._getframe(1).f_globals.get("__name__")):
            return result
        return hooks.assignment.replace(x, result)

    _writers.add(method)
    return method


def around(wrapper: Callable[[Callable[..., Any]], Callable[..., Any]], function: Callable[..., Any]) -> Callable[..., Any]:
    """``wrapper(function)``; of a :func:`writer`, which looks at the code that calls it, the wrapper comes inside."""
    return writer(wrapper(function.__wrapped__)) if function in _writers else wrapper(function)  # type: ignore[attr-defined]


def of_method(x: Any, result: Any) -> Any:
    """``result``; where a package that expects it called the method of ``x``, ``x`` has its elements instead, and the method gives None."""
    if not _writes(sys._getframe(2).f_globals.get("__name__")):
        return result
    return hooks.assignment.replace(x, result)


def written(x: Any, result: Any, symbol: str) -> Any:
    """``x`` with the values of ``result``. A value of its own, as NumPy's scalars are, is not written into: then ``result`` itself.

    Raises DTypeError and ShapeError for results that ``x`` cannot hold, and otherwise as an assignment to elements.
    """
    if hooks.assignment.is_scalar(x):
        return result
    (shape, dtype), (new_shape, new_dtype) = x._aval(), result._aval()
    if new_shape != shape:
        raise located(ShapeError(f"x {symbol}= v: the result has shape {list(new_shape)}, x has {list(shape)}"))
    if new_dtype.rank > dtype.rank:
        raise located(DTypeError(f"x {symbol}= v: the result is {new_dtype}, which x of type {dtype} cannot hold: write x = x {symbol} v"))
    hooks.assignment.replace(x, result if new_dtype is dtype else result.astype(dtype.np))
    return x


def _install() -> None:
    if not hasattr(operators.tensor_class, "__iadd__"):
        for name in SYMBOLS:
            setattr(operators.tensor_class, f"__i{name}__", _operator(name))


_watched: tuple[str, ...] = ()


def watch() -> None:
    """Gives Tensors the operators when a package of ``settings.inplace_packages`` is there, or comes."""
    global _watched
    if settings.inplace_packages is _watched:
        return
    _watched = settings.inplace_packages
    _known.clear()
    for package in _watched:
        if package in sys.modules or package not in INPLACE_PACKAGES:  # what the user names is there, or about to be
            _install()
        elif not hasattr(operators.tensor_class, "__iadd__"):
            when_imported(package, _install)


listeners.append(watch)
