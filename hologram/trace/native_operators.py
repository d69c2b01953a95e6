"""Operators and elementwise functions whose lean path is native code, once there is a reason to load that: expressions that come again; and methods
that read elements, once many are read.

Python's functions stay in place for what native code does not record. Who holds such a function registers with :func:`on_native` to have it replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hologram.trace import operators, recorder
from hologram.trace.operators import lean_operators, weak_constants
from hologram.trace.tensor import Tensor

_holders: list[tuple[Callable[..., Any], Callable[[Any], None]]] = []  # functions, and what takes their native forms
_is_native = False


def on_native(function: Callable[..., Any], replace: Callable[[Any], None]) -> None:
    """``replace`` takes the native form of a lean operator when there is one."""
    if function in lean_operators:
        _holders.append((function, replace))
        if _is_native:
            replace(_native(function))


def _native(function: Callable[..., Any]) -> Any:
    from hologram.backends.native import recording

    lean = lean_operators[function]
    return recording.operator(function, lean.op, lean.results, lean.arity, lean.swapped)


def make_native() -> None:
    """Replaces the operators of Tensors, the functions of all who registered, and what makes nodes in the recorder; nothing where native code does
    not know the layout of an object."""
    global _is_native
    if _is_native:
        return
    from hologram.backends.native import recording
    from hologram.backends.native.code.object_layout import UnknownLayout

    try:
        recorder.pending = recording.prepare(weak_constants, operators.CUT_DEPTH)
    except UnknownLayout:
        return
    _is_native = True
    for name, function in list(vars(Tensor).items()):
        if callable(function) and function in lean_operators:
            setattr(Tensor, name, _native(function))
    for function, replace in _holders:
        replace(_native(function))


def make_reading_native(element: Any, share: Callable[..., None], vectors: dict[Any, dict[int, Any]]) -> None:
    """Replaces methods of Tensors that read elements: see :func:`hologram.backends.native.recording.reading_methods`."""
    from hologram.backends.native import classes
    from hologram.backends.native.module import why_not_native

    if why_not_native() is not None:
        return
    from hologram.backends.native import recording
    from hologram.backends.native.code.object_layout import UnknownLayout

    try:
        classes.register_tensor_class(Tensor)
        methods = recording.reading_methods(Tensor, element, share, vectors)
    except UnknownLayout:
        return
    for name, method in methods.items():
        setattr(Tensor, name, method)
