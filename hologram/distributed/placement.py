"""``device_put`` with a sharding."""

from __future__ import annotations

from typing import Any

from hologram import tree
from hologram.distributed.array import ShardedArray, with_sharding
from hologram.distributed.gathering import divided, whole
from hologram.distributed.mesh import NamedSharding
from hologram.trace.convert import asarray
from hologram.trace.recorder import current, transforming


def device_put(value: Any, sharding: NamedSharding) -> Any:
    """The leaves of a pytree, which all processes have, divided by ``sharding``. Arrays that are divided otherwise are gathered first.

    In a trace the derivative is that of the whole array.
    """
    return tree.map(lambda x: put(x, sharding), value)


def put(x: Any, sharding: NamedSharding) -> Any:
    """One array, divided by ``sharding``."""
    if isinstance(x, ShardedArray):
        if x.sharding == sharding:
            return x
        x = whole(x)
    array = asarray(x)
    sharding.shard_shape(array.shape, "device_put")
    if not any(sharding.spec.normalised()):
        return array
    if current() is not None or transforming():
        return divided(array, sharding)
    return with_sharding(array[sharding.index(array.shape, "device_put")], sharding)
