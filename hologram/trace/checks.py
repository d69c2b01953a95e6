"""Checks of arguments: each gives the argument as what was asked for, or raises an error that names the function (``what``) and the argument."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hologram.dtypes import DType
from hologram.errors import ArgumentError, OutOfMemory, ShapeError, TracedValueError
from hologram.ir.aval import MAX_BYTES, require_countable
from hologram.ir.op import Shape
from hologram.ir.symbolic import Expr, Int, bounds
from hologram.support.user_lines import located
from hologram.support.wording import did_you_mean
from hologram.trace.array_classes import check_unmasked
from hologram.trace.diagnostics.origins import traced_size
from hologram.trace.recorder import assume, plain

__all__ = [
    "as_function", "choice", "computed", "extent", "has_items", "integer", "items", "number", "require_shape", "shape_of", "truth",
]  # fmt: skip


def integer(n: Any, what: str, role: str) -> int:
    """An integer of Python or NumPy, or a Tensor that holds one. Raises ArgumentError for others, saying that ``role`` is an integer."""
    try:
        return operator.index(n)
    except TypeError as e:
        if isinstance(e, TracedValueError) and not isinstance(n, Expr):
            raise traced_size(n, what, role) from None
        raise located(ArgumentError(f"{what}: {role} is an integer, not {type(n).__name__}")) from None


def truth(x: Any, what: str, role: str) -> bool:
    """A bool, or an integer that stands for one. Raises ArgumentError for others, as sequences that are given for a single option."""
    return bool(x) if type(x) is bool or isinstance(x, np.bool_) else integer(x, what, role) != 0


def has_items(x: Any) -> bool:
    """Whether ``x`` can be gone through: arrays without axes cannot, though their types have the method for it."""
    return isinstance(x, Iterable) and getattr(x, "ndim", 1) != 0


def items(values: Any, what: str, role: str = "arrays") -> list[Any]:
    """The items of a sequence of ``role``. Raises ArgumentError for what has none."""
    if not has_items(values):
        raise located(ArgumentError(f"{what} takes a sequence of {role}, not {type(values).__name__}"))
    check_unmasked(values, what)
    return list(values)


def extent(n: Any, what: str) -> Int:
    """One extent of a shape argument. Raises ShapeError where it is negative; a symbolic one is assumed not to be."""
    if isinstance(n, Expr):
        n = plain(n)
        if (high := bounds(n)[1]) is not None and high < 0:
            raise located(ShapeError(f"{what}: negative extent {n}"))
        assume(n)
        return n
    i = integer(n, what, "an extent")
    if i < 0:
        raise located(ShapeError(f"{what}: negative extent {i}"))
    return i


def shape_of(shape: Any, what: str) -> Shape:
    """A shape argument: an integer or a sequence of them."""
    if type(shape) is int and shape >= 0:
        return (shape,)
    if has_items(shape):
        check_unmasked(shape, what)
        return tuple(extent(n, what) for n in shape)
    return (extent(shape, what),)


def require_shape(shape: Shape, dtype: DType) -> None:
    """Raises OutOfMemory, with the user's line, for a shape whose elements 64 bits do not count, ShapeError for too many axes."""
    try:
        require_countable(shape, dtype)
    except (OutOfMemory, ShapeError) as e:
        raise located(e) from None


def computed(what: str, count: int, itemsize: int, make: Callable[[], Any]) -> Any:
    """``make()``, which computes ``count`` elements at once. Raises OutOfMemory where there is no memory for them."""
    try:
        if count * itemsize <= MAX_BYTES:
            return make()
    except MemoryError:
        pass
    raise located(OutOfMemory(f"{what}: {count:,} elements, {count * itemsize:,} bytes, cannot be allocated"))


def choice(value: Any, what: str, role: str, names: Iterable[str]) -> str:
    """One of ``names``. Raises ArgumentError for anything else."""
    if not isinstance(value, str) or value not in names:
        given = repr(value) if isinstance(value, str) else type(value).__name__
        like = did_you_mean(value, names) if isinstance(value, str) else ""
        raise located(ArgumentError(f"{what}: {role} is {' or '.join(map(repr, names))}, not {given}{like}"))
    return value


def number(x: Any, what: str, role: str) -> float:
    """A real number. Raises ArgumentError for others, saying that ``role`` is one."""
    try:
        return float(x)
    except (TypeError, ValueError):
        raise located(ArgumentError(f"{what}: {role} is a number, not {type(x).__name__}")) from None


def as_function(f: Any, what: str) -> Callable[..., Any]:
    """Anything that can be called. Raises ArgumentError for others."""
    if not callable(f):
        raise located(ArgumentError(f"{what} takes a function, not {type(f).__name__}"))
    return f
