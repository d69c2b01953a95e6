"""Elementwise functions of divided arrays outside of ``shard_map``: each rank computes its part.

They are small programs under ``shard_map``, so their derivatives are those of the whole arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from hologram.distributed.array import ShardedArray
from hologram.distributed.mesh import Mesh, Part, PartitionSpec
from hologram.distributed.shard_map import require_outside, shard_map
from hologram.ir.op import Op, Shape
from hologram.trace.convert import asarray
from hologram.trace.operators import SCALARS, broadcast_shapes, elementwise

__all__ = ["apply"]

PROGRAMS = 1024


class _Call:
    """A function of the arrays among its arguments: Python numbers keep their places. Equal where function and numbers are, to the sign of zeros."""

    __slots__ = ("_args", "_f", "_key")

    def __init__(self, f: Callable[..., Any] | Op, args: Sequence[Any]) -> None:
        self._f, self._args = f, [x if type(x) in SCALARS else None for x in args]
        self._key = f, tuple([(type(x), repr(x)) for x in self._args])

    def __call__(self, *arrays: Any) -> Any:
        rest = iter(arrays)
        args = [next(rest) if x is None else x for x in self._args]
        return elementwise(self._f, *args) if isinstance(self._f, Op) else self._f(*args)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Call and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def apply(f: Callable[..., Any] | Op, args: Sequence[Any]) -> Any:
    """An elementwise op or function of arguments that broadcast, of which one is divided: each rank computes its part.

    The result is divided as the first divided argument; arrays that are divided otherwise are gathered. Raises ShapeError for arguments that do not
    broadcast, ArgumentError for arrays on different meshes.
    """
    leader = next(x for x in args if isinstance(x, ShardedArray))
    require_outside(leader)
    name = f.name if isinstance(f, Op) else getattr(f, "__name__", "call").strip("_")
    arrays = [x if hasattr(x, "shape") else asarray(x) for x in args if type(x) not in SCALARS]
    shape = broadcast_shapes(name, [tuple(x.shape) for x in arrays])
    parts: tuple[Part, ...] = (None,) * (len(shape) - leader.ndim) + leader.sharding.spec.parts
    specs = tuple([_aligned(parts, tuple(x.shape), shape) for x in arrays])
    return _program(_Call(f, args), leader.sharding.mesh, specs, PartitionSpec(*parts))(*arrays)


def _aligned(parts: tuple[Part, ...], own: Shape, shape: Shape) -> PartitionSpec:
    """How an argument is divided beside a result of ``shape``: not along axes that are stretched."""
    offset = len(shape) - len(own)
    return PartitionSpec(*[part if own[i] == shape[offset + i] else None for i, part in enumerate(parts[offset:])])


@lru_cache(maxsize=PROGRAMS)
def _program(call: _Call, mesh: Mesh, in_specs: tuple[PartitionSpec, ...], out_spec: PartitionSpec) -> Any:
    return shard_map(call, mesh, in_specs, out_spec)
