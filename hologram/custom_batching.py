"""Names of ``jax.custom_batching``: functions that say themselves what they are under ``vmap``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hologram import control
from hologram.trace import tree
from hologram.transform.custom_batching import custom_vmap

__all__ = ["custom_vmap", "sequential_vmap"]


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """``f``, which under :func:`hologram.vmap` is a loop over the examples: see :func:`hologram.control.map`.

    It takes less memory, and effects such as prints happen example by example. Arguments and results are pytrees of arrays. Raises as ``f`` does.

    >>> @hg.custom_batching.sequential_vmap
    ... def f(x):
    ...     hg.debug.print("{}", x)
    ...     return x + 1
    >>> hg.vmap(f)(hnp.arange(3))
    0
    1
    2
    Tensor([1, 2, 3], dtype=int64)
    """
    made = custom_vmap(f)

    @made.def_vmap
    def rule(axis_size: int, in_batched: list[Any], *args: Any) -> tuple[Any, bool]:
        leaves, structure = tree.flatten(args)
        flags = tree.leaves(in_batched)

        def one(stacked: list[Any]) -> Any:
            rest = iter(stacked)
            return f(*tree.unflatten(structure, [next(rest) if flag else x for x, flag in zip(leaves, flags, strict=True)]))

        return control.map(one, [x for x, flag in zip(leaves, flags, strict=True) if flag]), True

    return made
