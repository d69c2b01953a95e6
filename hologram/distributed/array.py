"""Arrays that are divided among processes, each of which has its part as a Tensor."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hologram import dtypes
from hologram.distributed.mesh import NamedSharding
from hologram.errors import ArgumentError, DistributedError, ShapeError
from hologram.support.user_lines import located
from hologram.trace import hooks, tree
from hologram.trace.convert import asarray, element_type
from hologram.trace.operators import is_operand
from hologram.trace.tensor import Tensor

__all__ = ["ShardedArray", "make_array_from_callback", "make_array_from_process_local_data", "make_array_from_single_device_arrays"]


@dataclass(frozen=True)
class Shard:
    """This process's part of an array: which part it is, and the Tensor."""

    index: tuple[slice, ...]
    data: Any


class ShardedArray:
    """An array of which this process has a part: what ``device_put`` with a sharding, and ``shard_map``, give where an axis is divided.

    Infix operators and elementwise functions work part by part, and their result is divided alike. Everything else, methods of Tensors included,
    takes the whole array, which each rank gathers, and warns (:class:`hologram.errors.GatherWarning`): so its results are those of one process, and
    its work is divided only in :func:`shard_map`. Values are read with :meth:`addressable_data`, or whole with :func:`process_allgather`; NumPy,
    ``float`` and ``bool`` raise DistributedError. A leaf of pytrees.

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
    __hash__ = None  # type: ignore[assignment]

    def addressable_data(self, index: int = 0) -> Any:
        """This process's part. Raises IndexError for another ``index`` than 0."""
        if index != 0:
            raise IndexError(f"a process has one part of an array, number 0, and not {index}")
        return self._part

    @property
    def addressable_shards(self) -> list[Shard]:
        """This process's part and which it is, in a list."""
        return [Shard(self.sharding.index(self.shape, "ShardedArray"), self._part)]

    @property
    def nbytes(self) -> int:
        """The bytes of the whole array."""
        return self.size * int(self.dtype.itemsize)

    def block_until_ready(self) -> ShardedArray:
        """Waits until this process's part is computed; the array itself."""
        self._part.block_until_ready()
        return self

    def astype(self, dtype: Any, *, copy: bool = True) -> Any:
        """The array with another element type."""
        return hooks.by_parts(_Cast(element_type(dtype)), (self,))

    def _values(self) -> Any:
        """The part that is all. Raises DistributedError where other processes have parts."""
        if not self.is_fully_addressable:
            advice = "addressable_data() is this process's; hg.distributed.process_allgather gathers all"
            raise located(DistributedError(f"an array of shape {list(self.shape)} whose parts other processes have: {advice}"))
        return self._part

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self._values(), dtype)

    def __float__(self) -> float:
        return float(self._values())

    def __int__(self) -> int:
        return int(self._values())

    def __complex__(self) -> complex:
        return complex(self._values())

    def __bool__(self) -> bool:
        return bool(self._values())

    def __len__(self) -> int:
        return len(self._part) * self.sharding.counts(self.ndim, "len")[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(hooks.gathered(self))

    def __getitem__(self, index: Any) -> Any:
        return hooks.gathered(self)[index]

    def __matmul__(self, other: Any) -> Any:
        return hooks.gathered(self) @ other

    def __rmatmul__(self, other: Any) -> Any:
        return other @ hooks.gathered(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(Tensor, name):
            raise AttributeError(f"a ShardedArray has no attribute {name!r}")
        return getattr(hooks.gathered(self), name)

    def __repr__(self) -> str:
        if not hasattr(self._part, "shape"):
            return f"ShardedArray(spec={self.sharding.spec})"
        return f"ShardedArray(shape={list(self.shape)}, dtype={self.dtype}, spec={self.sharding.spec})"


class _Cast(NamedTuple):
    """The conversion to an element type."""

    dtype: dtypes.DType

    def __call__(self, x: Any) -> Any:
        return x.astype(self.dtype)


def _infix(f: Callable[..., Any], swapped: bool = False) -> Callable[[Any, Any], Any]:
    def method(self: ShardedArray, other: Any) -> Any:
        if not (is_operand(other) or type(other) is ShardedArray):
            return NotImplemented
        return hooks.by_parts(f, (other, self) if swapped else (self, other))

    return method


def _prefix(f: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda self: hooks.by_parts(f, (self,))


for _name in "add sub mul truediv floordiv mod pow lshift rshift and xor or".split():
    _function = getattr(operator, f"__{_name}__")
    setattr(ShardedArray, f"__{_name}__", _infix(_function))
    setattr(ShardedArray, f"__r{_name}__", _infix(_function, swapped=True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(ShardedArray, f"__{_name}__", _infix(getattr(operator, _name)))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(ShardedArray, f"__{_name}__", _prefix(getattr(operator, f"__{_name}__")))

tree.divided.add(ShardedArray)
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
    _require_sharding(sharding, what).mesh.here(what)
    part = asarray(local_data)
    counts = sharding.counts(len(part.shape), what)
    made = tuple(n * k for n, k in zip(part.shape, counts, strict=True))
    if global_shape is not None and tuple(global_shape) != made:
        raise located(ShapeError(f"{what}: parts of shape {list(part.shape)} make an array of shape {list(made)}, not {list(global_shape)}"))
    return with_sharding(part, sharding)


def make_array_from_callback(
    shape: Sequence[int], sharding: NamedSharding, data_callback: Callable[[tuple[slice, ...]], Any], dtype: Any = None
) -> Any:
    """The array of ``shape`` of which each process asks ``data_callback`` for its own part, given by a tuple of slices.

    ``dtype``: what the parts are converted to. Raises ShapeError for an axis that does not divide, and for a part of another shape.

    >>> mesh = hg.make_mesh((1,), "x")
    >>> hg.make_array_from_callback((4,), hg.NamedSharding(mesh, hg.P("x")), lambda index: np.arange(4.0)[index])
    ShardedArray(shape=[4], dtype=float64, spec=PartitionSpec('x'))
    """
    what = "make_array_from_callback"
    index = _require_sharding(sharding, what).index(tuple(shape), what)
    part, wanted = asarray(data_callback(index), dtype), sharding.shard_shape(tuple(shape), what)
    if tuple(part.shape) != wanted:
        raise located(ShapeError(f"{what}: the callback gave a part of shape {list(part.shape)}, not {list(wanted)}"))
    return with_sharding(part, sharding)


def make_array_from_single_device_arrays(shape: Sequence[int], sharding: NamedSharding, arrays: Sequence[Any]) -> Any:
    """The array of ``shape`` of which this process has the part ``arrays[0]``: a process has one part. Raises ShapeError where they do not fit.

    >>> mesh = hg.make_mesh((1,), "x")
    >>> hg.make_array_from_single_device_arrays((2,), hg.NamedSharding(mesh, hg.P("x")), [hnp.ones(2)])
    ShardedArray(shape=[2], dtype=float32, spec=PartitionSpec('x'))
    """
    what = "make_array_from_single_device_arrays"
    if len(arrays) != 1:
        raise located(ArgumentError(f"{what}: a process has one part of an array, and {len(arrays)} are given"))
    return make_array_from_process_local_data(_require_sharding(sharding, what), arrays[0], shape)


def _require_sharding(sharding: Any, what: str) -> NamedSharding:
    if not isinstance(sharding, NamedSharding):
        raise located(ArgumentError(f"{what} takes a NamedSharding, not a {type(sharding).__name__}"))
    return sharding
