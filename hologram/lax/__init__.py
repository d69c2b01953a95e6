"""Names of ``jax.lax``: windows of arrays, loops and branches, ``top_k``. Other packages have them too: ``hologram.numpy``, ``hologram.control``."""

from hologram.control import associative_scan, cond, fori_loop, map, scan, switch, while_loop
from hologram.numpy.indexing.dynamic import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
)
from hologram.numpy.sorting import top_k

__all__ = [
    "associative_scan",
    "cond",
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "fori_loop",
    "map",
    "scan",
    "switch",
    "top_k",
    "while_loop",
]
