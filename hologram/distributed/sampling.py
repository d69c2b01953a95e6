"""Data loading by rank: which rows of a dataset a step has, and which of them this process."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram.distributed.array import make_array_from_process_local_data
from hologram.distributed.mesh import NamedSharding
from hologram.errors import ArgumentError
from hologram.support.user_lines import located
from hologram.trace import tree
from hologram.trace.checks import integer

__all__ = ["BatchSampler"]


class BatchSampler:
    """Batches of ``batch_size`` rows of a dataset of ``size``, divided among ranks as ``sharding`` divides axis 0.

    Step ``i`` has the same rows on any number of ranks and in every run, in the same order: they follow from ``seed`` and ``i`` alone, so that a
    training goes on from any step without reading what came before. Each epoch is another permutation, which ``shuffle=False`` leaves out. Rows at
    the end of an epoch that fill no batch are in none of it.

    Raises ArgumentError for sizes that make no batch, ShapeError where a batch does not divide among ranks.

    >>> mesh = hg.distributed.make_mesh((1,), "data")
    >>> sharding = hg.distributed.NamedSharding(mesh, hg.distributed.PartitionSpec("data"))
    >>> batches = hg.distributed.BatchSampler(10, 4, sharding, seed=1)
    >>> batches.rows(0), batches.rows(3)
    (array([3, 5, 2, 9]), array([2, 7, 8, 3]))
    """

    def __init__(self, size: int, batch_size: int, sharding: NamedSharding, *, seed: int = 0, shuffle: bool = True) -> None:
        what = "BatchSampler"
        self.size, self.batch_size = integer(size, what, "size"), integer(batch_size, what, "batch_size")
        self.seed, self.shuffle = integer(seed, what, "seed"), bool(shuffle)
        if not 1 <= self.batch_size <= self.size:
            raise located(ArgumentError(f"{what}: batches of {batch_size} rows out of {size}"))
        if not 0 <= self.seed < 2**64:
            raise located(ArgumentError(f"{what}: a seed is in 0 … 2**64 - 1, not {seed}"))
        if not isinstance(sharding, NamedSharding):
            raise located(ArgumentError(f"{what} takes a NamedSharding, not a {type(sharding).__name__}"))
        sharding.shard_shape((self.batch_size,), what)
        self.sharding = sharding
        self._epoch: tuple[int, np.ndarray] | None = None

    @property
    def steps_per_epoch(self) -> int:
        """How many batches the dataset has."""
        return self.size // self.batch_size

    def global_rows(self, step: int) -> np.ndarray:
        """The rows of a step, of all ranks together: int64, in order.

        >>> mesh = hg.distributed.make_mesh((1,), "data")
        >>> sharding = hg.distributed.NamedSharding(mesh, hg.distributed.PartitionSpec("data"))
        >>> hg.distributed.BatchSampler(10, 4, sharding, shuffle=False).global_rows(1)
        array([4, 5, 6, 7])
        """
        number = integer(step, "BatchSampler", "a step")
        if number < 0:
            raise located(ArgumentError(f"BatchSampler: a step is not negative: {number}"))
        epoch, place = divmod(number, self.steps_per_epoch)
        return self._order(epoch)[place * self.batch_size : (place + 1) * self.batch_size]

    def rows(self, step: int) -> np.ndarray:
        """The rows of a step that this process has: int64, in order."""
        return self.global_rows(step)[self.sharding.index((self.batch_size,), "BatchSampler")]

    def batch(self, data: Any, step: int) -> Any:
        """The rows of a step out of a pytree of arrays, each of ``size`` rows: of each the array of which this process reads its own rows alone.

        Arrays are anything that an array of integers indexes, such as ``np.memmap``. Raises ArgumentError for one of another length.

        >>> mesh = hg.distributed.make_mesh((1,), "data")
        >>> sharding = hg.distributed.NamedSharding(mesh, hg.distributed.PartitionSpec("data"))
        >>> hg.distributed.BatchSampler(10, 4, sharding).batch({"x": np.zeros((10, 3), np.float32)}, step=0)
        {'x': ShardedArray(shape=[4, 3], dtype=float32, spec=PartitionSpec('data'))}
        """
        rows = self.rows(step)

        def taken(x: Any) -> Any:
            if len(x) != self.size:
                raise located(ArgumentError(f"BatchSampler: a dataset of {self.size} rows, and an array of {len(x)}"))
            return make_array_from_process_local_data(self.sharding, x[rows])

        return tree.map(taken, data)

    def _order(self, epoch: int) -> np.ndarray:
        """The rows of an epoch, in order. Raw bits of Philox: NumPy says of those alone that they stay the same."""
        if not self.shuffle:
            return np.arange(self.size)
        if self._epoch is None or self._epoch[0] != epoch:
            keys = np.random.Philox(key=self.seed, counter=[0, 0, 0, epoch]).random_raw(self.size)
            self._epoch = epoch, np.argsort(keys, kind="stable")
        return self._epoch[1]

    def __repr__(self) -> str:
        return f"BatchSampler({self.size}, {self.batch_size}, {self.sharding}, seed={self.seed}, shuffle={self.shuffle})"
