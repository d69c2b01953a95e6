"""``map``: a function of every element, one after the other or in batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hologram.control.loops import scan
from hologram.control.progress import Label, loop_label
from hologram.errors import ArgumentError, ShapeError
from hologram.support.user_lines import located
from hologram.trace import tree
from hologram.trace.checks import as_function, integer
from hologram.trace.tensor import Tensor, namespace
from hologram.transform.stacking import vmap


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None, progress: Label = None) -> Any:
    """``f`` of every element along the first axis of ``xs``, stacked: a loop, which takes less memory than :func:`vmap`.

    - ``xs``: a pytree whose leaves share the extent of their first axis. The result is the pytree that ``f`` gives, with that axis in front.
    - ``batch_size``: so many elements are computed at once, by :func:`vmap`; those left over at the end, too.
    - ``progress``: see :func:`scan`; a step is an element, or a batch.

    Raises ArgumentError for a batch of fewer than one element, and as :func:`scan`.

    >>> hg.control.map(lambda x: x * x, hnp.asarray([1, 2, 3]))
    Tensor([1, 4, 9], dtype=int64)
    >>> hg.control.map(lambda x: x * x, hnp.asarray([1, 2, 3]), batch_size=2)
    Tensor([1, 4, 9], dtype=int64)
    """
    as_function(f, "map")
    label = loop_label(progress, f, "map")
    shown = label[0] if label else False
    if batch_size is None:
        return scan(lambda _, x: (None, f(x)), None, xs, progress=shown)[1]
    size = integer(batch_size, "map", "batch_size")
    if size < 1:
        raise located(ArgumentError(f"map: a batch of {size} elements"))
    arrays = tree.map(namespace().asarray, xs)
    n = _extent(arrays)
    whole = n // size * size
    parts = []
    if whole or not n:
        batches = tree.map(lambda x: x[:whole].reshape((n // size, size, *x.shape[1:])), arrays)
        parts.append(tree.map(_unbatched, scan(lambda _, x: (None, vmap(f)(x)), None, batches, progress=shown)[1]))
    if whole < n:
        parts.append(vmap(f)(tree.map(lambda x: x[whole:], arrays)))
    return parts[0] if len(parts) == 1 else tree.map(lambda *x: namespace().concat(x), *parts)


def _extent(xs: Any) -> int:
    """The common extent of the first axes. Raises ArgumentError or ShapeError where there is none."""
    shapes = [x.shape for x in tree.leaves(xs)]
    if not shapes:
        raise located(ArgumentError("map takes at least one array"))
    if not all(shapes):
        raise located(ShapeError("map: a scalar has no axis to step along"))
    if len({shape[0] for shape in shapes}) > 1:
        raise located(ArgumentError(f"map: first axes of different extents in shapes {', '.join(str(list(s)) for s in shapes)}"))
    return int(shapes[0][0])


def _unbatched(x: Tensor) -> Tensor:
    result: Tensor = x.reshape((x.shape[0] * x.shape[1], *x.shape[2:]))
    return result
