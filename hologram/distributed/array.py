"""Arrays that are divided among processes, each of which has its part as a Tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hologram.distributed.mesh import NamedSharding
from hologram.errors import ArgumentError, DistributedError, ShapeError
from hologram.support.user_lines import located
from hologram.trace import tree
from hologram.trace.convert import asarray

__all__ = ["ShardedArray", "make_array_from_process_local_data"]


@dataclass(frozen=True)
class Shard:
    """This process's part of an array: which part it is, and the Tensor."""

    index: tuple[slice, ...]
    data: Any


class ShardedArray:
    """An array of which this process has a part: what ``device_put`` with a sharding, and ``shard_map``, give where an axis is divided.

    It is a pytree of one leaf, the part: ``tree.map`` goes part by part, ``jit`` and ``grad`` take it. Its values are read with
    :meth:`addressable_data`, or whole with :func:`process_allgather`; it is computed with in :func:`shard_map`.

    >>> mesh = hg.distributed.make_mesh((1,), "x")
    >>> x = hg.device_put(np.arange(4.0), hg.distributed.NamedSharding(mesh, hg.distributed.PartitionSpec("x")))
    >>> x.shape, x.addressable_data()
    ((4,), Tensor([0., 1., 2., 3.], dtype=float64))
    """

    __slots__ = ("_part", "sharding")
    __array_ufunc__ = None

    def __init__(self, part: Any, sharding: NamedSharding) -> None:
        self._part, self.sharding = part, sharding

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole array."""
        part = self._part.shape
        return tuple(n * k for n, k in zip(part, self.sharding.counts(len(part), "ShardedArray"), strict=True))

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self._part.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._part.shape)

    @property
    def size(self) -> int:
        """The number of elements of the whole array."""
        return math.prod(self.shape)

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process has all parts."""
        return self.sharding.mesh.size == 1

    is_fully_replicated = False

    def addressable_data(self, index: int = 0) -> Any:
        """This process's part. Raises IndexError for another ``index`` than 0."""
        if index != 0:
            raise IndexError(f"a process has one part of an array, number 0, and not {index}")
        return self._part

    @property
    def addressable_shards(self) -> list[Shard]:
        """This process's part and which it is, in a list."""
        return [Shard(self.sharding.index(self.shape, "ShardedArray"), self._part)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if not self.is_fully_addressable:
            advice = "addressable_data() is this process's; hg.distributed.process_allgather gathers all"
            raise located(DistributedError(f"an array of shape {list(self.shape)} whose parts other processes have: {advice}"))
        return np.asarray(self._part, dtype)

    def __repr__(self) -> str:
        if not hasattr(self._part, "shape"):
            return f"ShardedArray(spec={self.sharding.spec})"
        return f"ShardedArray(shape={list(self.shape)}, dtype={self.dtype}, spec={self.sharding.spec})"


tree.register(ShardedArray, lambda x: ((x._part,), x.sharding), lambda sharding, children: ShardedArray(children[0], sharding))


def with_sharding(part: Any, sharding: NamedSharding) -> Any:
    """The array of which ``part`` is this process's: a Tensor where no axis is divided."""
    return ShardedArray(part, sharding) if any(sharding.spec.normalised()) else part


def make_array_from_process_local_data(sharding: NamedSharding, local_data: Any, global_shape: Sequence[int] | None = None) -> Any:
    """The array of which each process gives its own part, ``local_data``, so that no process has to load all: a :class:`ShardedArray`.

    Of an axis that is not divided, all give the whole. Raises ShapeError where ``global_shape`` is not what the parts make.

    >>> mesh = hg.distributed.make_mesh((1,), "x")
    >>> sharding = hg.distributed.NamedSharding(mesh, hg.distributed.PartitionSpec("x"))
    >>> hg.distributed.make_array_from_process_local_data(sharding, np.zeros((2, 3), np.float32))
    ShardedArray(shape=[2, 3], dtype=float32, spec=PartitionSpec('x'))
    """
    what = "make_array_from_process_local_data"
    if not isinstance(sharding, NamedSharding):
        raise located(ArgumentError(f"{what} takes a NamedSharding, not a {type(sharding).__name__}"))
    sharding.mesh.here(what)
    part = asarray(local_data)
    counts = sharding.counts(len(part.shape), what)
    made = tuple(n * k for n, k in zip(part.shape, counts, strict=True))
    if global_shape is not None and tuple(global_shape) != made:
        raise located(ShapeError(f"{what}: parts of shape {list(part.shape)} make an array of shape {list(made)}, not {list(global_shape)}"))
    return with_sharding(part, sharding)
