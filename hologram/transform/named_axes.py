"""Named axes: which names the code that runs may reduce over, and what they are: axes of ``vmap`` or of a mesh of processes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from hologram.errors import AxisNameError
from hologram.ir.node import Node
from hologram.support.user_lines import located


class NamedAxis(NamedTuple):
    """``number`` is that of the example, of a vmap's axis; ``mesh`` the literal (names, shape, ranks) of a mesh's, else ()."""

    name: str
    size: int
    number: Node | None
    mesh: tuple[Any, ...] = ()


class LocalResults(NamedTuple):
    """What a batching rule gives in the place of a node with several results: each result, with the stack's axis in front if ``stacked``, else the
    same for all examples."""

    values: tuple[Node, ...]
    stacked: bool


class _State(threading.local):
    bound: tuple[NamedAxis, ...] = ()  # the innermost last
    stacked: str | None = None  # the name of the axis whose examples are being stacked


_state = _State()


@contextlib.contextmanager
def bound(axes: Sequence[NamedAxis]) -> Iterator[None]:
    """The axes have their names for a block."""
    before = _state.bound
    try:
        _state.bound = (*before, *axes)
        yield
    finally:
        _state.bound = before


def find(name: Any, what: str) -> NamedAxis:
    """The axis that ``name`` means here. Raises AxisNameError for an unbound one."""
    for axis in reversed(_state.bound):
        if axis.name == name:
            return axis
    there = ", ".join(repr(a.name) for a in _state.bound)
    advice = f"there {'are' if len(_state.bound) > 1 else 'is'} {there}" if there else "no vmap with axis_name, and no shard_map, is around it"
    raise located(AxisNameError(f"{what}: unbound axis name: {name!r}: {advice}"))


def mesh_axes() -> tuple[NamedAxis, ...]:
    """The axes of the ``shard_map`` around the code, if there is one."""
    return tuple(a for a in _state.bound if a.mesh)


def rebound(axes: Sequence[NamedAxis]) -> contextlib.AbstractContextManager[None]:
    """:func:`bound`, for rules that are run when what they are the rules of has ended: names of a mesh that are bound are left as they are."""
    return bound(() if mesh_axes() else axes)


@contextlib.contextmanager
def stacking(name: str | None) -> Iterator[None]:
    """Batching rules are asked for the axis ``name`` for a block."""
    before = _state.stacked
    try:
        _state.stacked = name
        yield
    finally:
        _state.stacked = before


def stacked_axis() -> str | None:
    """The name of the axis that batching rules are asked for; None for one without."""
    return _state.stacked
