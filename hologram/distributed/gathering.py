"""Divided arrays that are made whole on every rank, and whole ones that are divided, as programs under ``shard_map``."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

from hologram import tree
from hologram.distributed.array import ShardedArray, make_array_from_process_local_data
from hologram.distributed.mesh import Mesh, NamedSharding, PartitionSpec
from hologram.distributed.shard_map import require_outside, shard_map
from hologram.errors import GatherWarning
from hologram.support.user_lines import user_place
from hologram.support.world import current_world
from hologram.trace.convert import asarray

__all__ = ["divided", "gathered", "process_allgather", "whole"]

PROGRAMS = 1024


def gathered(x: ShardedArray) -> Any:
    """All of an array, for an operation that reads more than a part. Warns: every rank then computes the same."""
    require_outside(x)
    if not x.is_fully_addressable:
        advice = "every rank computes the same; hg.shard_map divides the work"
        text = f"an array of shape {list(x.shape)} with {x.sharding.spec} is gathered on each of {x.sharding.mesh.size} ranks: {advice}"
        place = user_place()
        if place is None:
            warnings.warn(text, GatherWarning, stacklevel=2)
        else:
            warnings.warn_explicit(text, GatherWarning, *place)
    return whole(x)


def whole(x: ShardedArray) -> Any:
    """All of an array, as a Tensor on every rank. All processes call it."""
    return _dividing(x.sharding.mesh, PartitionSpec())(x)


def divided(x: Any, sharding: NamedSharding) -> Any:
    """A whole array, or one that is divided otherwise, as ``sharding`` says, in a trace."""
    return _dividing(sharding.mesh, sharding.spec)(x)


@lru_cache(maxsize=PROGRAMS)
def _dividing(mesh: Mesh, spec: PartitionSpec) -> Any:
    return shard_map(_itself, mesh, spec, spec)


def _itself(part: Any) -> Any:
    return part


def process_allgather(x: Any, tiled: bool = False) -> Any:
    """The whole of sharded arrays, for every process, as Tensors; of a pytree each. All processes call it.

    Other arrays, of which each process has one of its own, are stacked in the order of ranks, or with ``tiled`` joined along axis 0.

    >>> hg.distributed.process_allgather(np.asarray([1, 2]))
    Tensor([[1, 2]], dtype=int64)
    """
    return tree.map(lambda leaf: _gathered(leaf, tiled), x)


def _gathered(x: Any, tiled: bool) -> Any:
    if isinstance(x, ShardedArray):
        return whole(x)
    own = asarray(x)
    mesh = Mesh(range(current_world().size), "processes")
    stack = own if tiled and own.shape else own[None]
    sharding = NamedSharding(mesh, PartitionSpec("processes"))
    return _gathered(make_array_from_process_local_data(sharding, stack), tiled)
