"""Which axes turn symbolic by themselves under ``jit(dynamic="auto")``: those whose sizes vary from call to call.

Calls that differ in nothing but extents are one :class:`Family`. The first two sizes of an axis are compiled as they are; with the third, every axis
that has varied turns symbolic, and one program serves all further sizes. Sizes 0 and 1, which broadcast, stay static. Where no program with
symbols can be made, because the function depends on a size, the family stays static.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hologram.errors import TracedValueError
from hologram.trace.call.signature import Call, LeafType
from hologram.trace.call.trace_call import Traced

STATIC_SIZES = 2  # sizes of an axis that are compiled as they are, before it turns symbolic


class Family:
    """Calls of one function that differ in extents alone.

    ``axes`` are the symbolic axes, as pairs of a leaf and its axis; ``is_static`` tells that no program with symbols serves this family. Threads
    share it: each change is one operation on a dict or set, and what a late reader misses it adds itself.
    """

    __slots__ = ("axes", "is_static", "_sizes", "_shapes")

    def __init__(self) -> None:
        self.axes: frozenset[tuple[int, int]] = frozenset()
        self.is_static = False
        self._sizes: dict[tuple[int, int], set[int]] = {}  # of axes that are not symbolic, where they are not 0 or 1
        self._shapes: list[Any] = []  # of the call noted last

    def note(self, types: Sequence[LeafType]) -> None:
        """Learns the shapes of a call; an axis whose size is the third turns symbolic, with all others that have varied."""
        before = self._shapes or [None] * len(types)
        shapes = [t.shape for t in types]
        turns = False
        for leaf, (old, shape) in enumerate(zip(before, shapes, strict=True)):
            if old != shape:
                turns |= self._note_shape(leaf, shape)
        self._shapes = shapes
        if turns:
            self.axes = self.axes | {place for place, sizes in list(self._sizes.items()) if len(sizes) > 1}

    def _note_shape(self, leaf: int, shape: Sequence[Any]) -> bool:
        """Whether an axis of this leaf has more sizes than are compiled as they are."""
        found = False
        for axis, n in enumerate(shape):
            if n > 1 and (leaf, axis) not in self.axes:
                sizes = self._sizes.setdefault((leaf, axis), set())
                sizes.add(n)
                found |= len(sizes) > STATIC_SIZES or (len(sizes) > 1 and bool(self.axes))
        return found


def check_traced(traced: Traced) -> None:
    """Raises TracedValueError for a trace in which the value of an extent was asked for, though the function went on without it: with a size that is
    known it may do something else."""
    if traced.refused:
        raise TracedValueError(traced.refused)


def family_key(call: Call) -> Any:
    """What calls of one family have in common."""
    return call.treedef, call.key[1], *[p for t in call.types for p in (len(t.shape), t.dtype, t.weak)]
