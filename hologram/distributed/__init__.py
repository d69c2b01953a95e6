"""Programs on several processes: meshes, sharded arrays, ``shard_map``, and collectives over named axes. See docs/distributed.md.

Processes talk through torch.distributed, which is imported by :func:`initialize`.
"""

from hologram.distributed import checkpoint
from hologram.distributed.array import (
    ShardedArray,
    make_array_from_callback,
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from hologram.distributed.collectives import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pbroadcast,
    pmax,
    pmean,
    pmin,
    ppermute,
    psum,
    psum_scatter,
)
from hologram.distributed.gathering import process_allgather
from hologram.distributed.mesh import Mesh, NamedSharding, PartitionSpec, make_mesh
from hologram.distributed.network import measure_network
from hologram.distributed.prediction import Prediction, predict
from hologram.distributed.processes import initialize, is_initialized, process_count, process_index, shutdown
from hologram.distributed.sampling import BatchSampler
from hologram.distributed.shard_map import shard_map
from hologram.distributed.shardings import with_sharding_constraint
from hologram.distributed.simulation import simulate
from hologram.support.world import Network

__all__ = [
    "BatchSampler", "Mesh", "NamedSharding", "Network", "PartitionSpec", "Prediction", "ShardedArray", "all_gather", "all_to_all", "axis_index",
    "axis_size", "checkpoint", "initialize", "is_initialized", "make_array_from_callback", "make_array_from_process_local_data",
    "make_array_from_single_device_arrays", "make_mesh", "measure_network", "pbroadcast", "pmax", "pmean", "pmin", "ppermute", "predict",
    "process_allgather", "process_count", "process_index", "psum", "psum_scatter", "shard_map", "shutdown", "simulate", "with_sharding_constraint",
]  # fmt: skip
