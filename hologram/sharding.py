"""Names of ``jax.sharding`` that :mod:`hologram.distributed` has."""

from hologram.distributed.mesh import Mesh, NamedSharding, PartitionSpec
from hologram.distributed.mesh import PartitionSpec as P

__all__ = ["Mesh", "NamedSharding", "P", "PartitionSpec"]
