"""``device_put`` with a sharding."""

from __future__ import annotations

from typing import Any

from hologram.distributed.array import ShardedArray, with_sharding
from hologram.distributed.mesh import NamedSharding
from hologram.distributed.shard_map import process_allgather
from hologram.trace import tree
from hologram.trace.convert import asarray


def device_put(value: Any, sharding: NamedSharding) -> Any:
    """The leaves of a pytree, which all processes have, divided by ``sharding``. Arrays that are divided otherwise are gathered first."""
    if isinstance(value, ShardedArray):
        return value if value.sharding == sharding else _part(process_allgather(value), sharding)
    own = tree.children_of(value)
    if own is None:
        return _part(value, sharding)
    data, children = own
    return tree.unflatten(tree.Treedef(type(value), data, (tree.LEAF,) * len(children)), [device_put(c, sharding) for c in children])


def _part(x: Any, sharding: NamedSharding) -> Any:
    whole = asarray(x)
    index = sharding.index(whole.shape, "device_put")
    return with_sharding(whole[index] if any(sharding.spec.normalised()) else whole, sharding)
