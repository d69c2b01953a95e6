"""The registry of rows: from the name of an ATen op to the function that computes it on Hologram's Tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

table: dict[str, Callable[..., Any]] = {}


def register(name: str, function: Callable[..., Any]) -> None:
    """Adds one row; ``name`` is ``op`` or ``op.overload``, of ATen where it names no namespace."""
    key = name if "::" in name else "aten::" + name
    assert key not in table, f"two rows for {key}"
    table[key] = function


def implements(*names: str) -> Callable[[F], F]:
    """Decorator: makes the function the row of each op named."""

    def decorate(function: F) -> F:
        for name in names:
            register(name, function)
        return function

    return decorate


def rows(functions: Mapping[str, Callable[..., Any]], form: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Adds one row for each op of ``functions``; ``form`` gives a function of arrays the signature and the type rule of its kind of op.

    Blanks separate the names of ops that share a function.
    """
    for names, function in functions.items():
        formed = form(function)
        for name in names.split():
            register(name, formed)
