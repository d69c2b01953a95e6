"""Names of ``jax.flatten_util``: a pytree of arrays as one vector."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hologram import numpy as hnp
from hologram import tree
from hologram.errors import ShapeError
from hologram.support.user_lines import located
from hologram.trace.tensor import Tensor

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Tensor, Callable[[Any], Any]]:
    """The leaves of a pytree of arrays concatenated in one vector, and the function that makes such a pytree of a vector.

    The vector has the common type of the leaves; ``unravel`` gives each leaf its own shape and type. Where all leaves have one type they take that
    of the vector. ``unravel`` raises ShapeError for a vector of another size.

    >>> flat, unravel = hg.flatten_util.ravel_pytree({"w": hnp.ones((2, 2)), "b": 3.0})
    >>> flat
    Tensor([3., 1., 1., 1., 1.], dtype=float32)
    >>> unravel(flat)["w"].shape
    (2, 2)
    """
    leaves, structure = tree.flatten(pytree)
    arrays = [hnp.asarray(x) for x in leaves]
    shapes, types = [x.shape for x in arrays], [x.dtype for x in arrays]
    sizes, uniform = [math.prod(s) for s in shapes], len(set(types)) == 1

    def unravel(flat: Any) -> Any:
        line = hnp.asarray(flat)
        if line.shape != (sum(sizes),):
            raise located(ShapeError(f"unravel: a vector of {sum(sizes)} elements is wanted, not shape {list(line.shape)}"))
        parts, start = [], 0
        for size, shape, dtype in zip(sizes, shapes, types, strict=True):
            part = line[start : start + size].reshape(shape)
            parts.append(part if uniform else _real(part, dtype).astype(dtype))
            start += size
        return tree.unflatten(structure, parts)

    return (hnp.concat([x.reshape(-1) for x in arrays]) if arrays else hnp.zeros(0, hnp.float32)), unravel


def _real(x: Tensor, dtype: Any) -> Tensor:
    """The real part, where a complex vector holds a real leaf."""
    return hnp.real(x) if x.dtype.kind == "c" and dtype.kind != "c" else x
