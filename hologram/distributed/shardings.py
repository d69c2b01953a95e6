"""Shardings of arguments, results and values of traced functions: ``jit(in_shardings=…, out_shardings=…)`` and ``with_sharding_constraint``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any

from hologram import tree
from hologram.distributed.mesh import NamedSharding
from hologram.distributed.placement import put
from hologram.distributed.specs import map_with_specs
from hologram.errors import ArgumentError
from hologram.support.user_lines import located

__all__ = ["with_sharding_constraint", "with_shardings"]

Static = Collection[int]  # positions of arguments that have no sharding


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """``x``, a pytree, with its arrays divided as ``shardings`` says: a :class:`hologram.NamedSharding`, or a pytree of them that may end early, with
    None for arrays that stay as they are.

    Unlike JAX's, which is a wish, it decides what each rank has: a divided array is a :class:`~hologram.distributed.ShardedArray`. Its derivative is
    that of the whole array. Raises ArgumentError for shardings that do not fit, ShapeError for axes that do not divide.

    >>> mesh = hg.make_mesh((1,), "x")
    >>> hg.lax.with_sharding_constraint(hnp.zeros((4, 2)), hg.NamedSharding(mesh, hg.P("x")))
    ShardedArray(shape=[4, 2], dtype=float32, spec=PartitionSpec('x'))
    """
    return _divided(x, shardings, "with_sharding_constraint: the shardings")


def _divided(value: Any, shardings: Any, what: str) -> Any:
    return map_with_specs(_put, value, shardings, what, (NamedSharding, type(None)))


def _put(x: Any, sharding: NamedSharding | None) -> Any:
    return x if sharding is None else put(x, sharding)


def with_shardings(function: Callable[..., Any], in_shardings: Any, out_shardings: Any, static: Static) -> Callable[..., Any]:
    """``function`` of arguments, and with results, that are divided as ``jit`` was told."""
    for name, shardings in (("in_shardings", in_shardings), ("out_shardings", out_shardings)):
        _require_shardings(name, shardings)
    return _Sharded(function, in_shardings, out_shardings, frozenset(static))


def _require_shardings(name: str, shardings: Any) -> None:
    for sharding in tree.leaves(shardings):
        if not isinstance(sharding, NamedSharding):
            raise located(ArgumentError(f"jit: {name} takes NamedShardings, None and pytrees of them, not {sharding!r}"))


class _Sharded:
    def __init__(self, function: Callable[..., Any], in_shardings: Any, out_shardings: Any, static: frozenset[int]) -> None:
        functools.update_wrapper(self, function)
        self._f, self._in, self._out, self._static = function, in_shardings, out_shardings, static

    def __call__(self, *args: Any, **options: Any) -> Any:
        if self._in is not None:
            args = self._given(args, options)
        return _divided(self._f(*args, **options), self._out, "jit: out_shardings")

    def _given(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
        if options:
            raise located(ArgumentError(f"jit: with in_shardings arguments are given by position, not by name: {', '.join(options)}"))
        rest = iter(_divided(tuple([x for i, x in enumerate(args) if i not in self._static]), self._in, "jit: in_shardings"))
        return tuple([x if i in self._static else next(rest) for i, x in enumerate(args)])
