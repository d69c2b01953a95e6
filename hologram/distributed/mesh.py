"""Meshes of processes, and how arrays lie on them: ``Mesh``, ``PartitionSpec``, ``NamedSharding``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hologram.errors import ArgumentError, DistributedError, ShapeError
from hologram.support.user_lines import located
from hologram.support.world import current_world
from hologram.trace.checks import has_items, integer, items

Part = str | tuple[str, ...] | None


class Mesh:
    """An array of ranks with a name for each axis: ``Mesh(np.arange(8).reshape(2, 4), ("data", "model"))``.

    Raises ArgumentError where a rank stands there twice, or there is not one name for each axis.

    >>> hg.distributed.Mesh([0, 1, 2, 3], "x").shape
    {'x': 4}
    """

    def __init__(self, devices: Any, axis_names: str | Sequence[str]) -> None:
        ranks = np.asarray(devices)
        names = (axis_names,) if isinstance(axis_names, str) else tuple(items(axis_names, "Mesh", "axis names"))
        if ranks.dtype.kind not in "iu" or not ranks.size or ranks.min() < 0:
            raise located(ArgumentError("Mesh takes an array of ranks: integers from 0 up"))
        if len(names) != ranks.ndim or not all(isinstance(n, str) for n in names):
            raise located(ArgumentError(f"Mesh: axis names {names} for an array of {ranks.ndim} axes: it takes a string for each"))
        if len(set(names)) < len(names):
            raise located(ArgumentError(f"Mesh: axis names {names}: one stands there twice"))
        flat = tuple(int(r) for r in ranks.reshape(-1))
        if len(set(flat)) < len(flat):
            raise located(ArgumentError("Mesh: a rank stands there twice"))
        self.axis_names: tuple[str, ...] = names
        self.devices = ranks.astype(np.int64)
        self.devices.flags.writeable = False
        in_order = flat == tuple(range(len(flat)))
        self.literal: tuple[Any, ...] = (names, tuple(map(int, ranks.shape)), () if in_order else flat)

    @property
    def shape(self) -> dict[str, int]:
        """The extent of each axis by its name."""
        return dict(zip(self.axis_names, self.literal[1], strict=True))

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return int(self.devices.size)

    def here(self, what: str) -> dict[str, int]:
        """The place of this process along each axis. Raises DistributedError where it, or a rank of the mesh, is none of those that run."""
        world = current_world()
        if int(self.devices.max()) >= world.size:
            advice = "start more processes, or see hg.distributed.initialize and simulate"
            raise located(DistributedError(f"{what}: {self} has rank {int(self.devices.max())}, and {_processes(world.size)}: {advice}"))
        found = np.argwhere(self.devices == world.rank)
        if not len(found):
            raise located(DistributedError(f"{what}: rank {world.rank} is not in {self}"))
        return {name: int(i) for name, i in zip(self.axis_names, found[0], strict=True)}

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Mesh) and self.literal == other.literal)

    def __hash__(self) -> int:
        return hash(self.literal)

    def __repr__(self) -> str:
        return f"Mesh({', '.join(f'{n}={k}' for n, k in self.shape.items())})"


def _processes(size: int) -> str:
    return "one process runs" if size == 1 else f"{size} processes run"


def make_mesh(axis_shapes: Sequence[int], axis_names: str | Sequence[str]) -> Mesh:
    """A mesh of all processes, in their order, the last axis the fastest. Raises ArgumentError where they do not fill it.

    >>> hg.distributed.make_mesh((1, 1), ("data", "model"))
    Mesh(data=1, model=1)
    """
    shape = tuple(integer(n, "make_mesh", "an extent") for n in items(axis_shapes, "make_mesh", "extents"))
    size = current_world().size
    if math.prod(shape) != size:
        raise located(ArgumentError(f"make_mesh: a mesh of shape {list(shape)} has {math.prod(shape)} ranks, and {_processes(size)}"))
    return Mesh(np.arange(size).reshape(shape), axis_names)


class PartitionSpec:
    """Which named axes each axis of an array is divided over: a name, several names (the first the slowest), or None; missing ones are None.

    >>> hg.distributed.PartitionSpec("data", None)
    PartitionSpec('data', None)
    """

    __slots__ = ("_normalised", "parts")

    def __init__(self, *parts: str | Sequence[str] | None) -> None:
        self.parts: tuple[Part, ...] = tuple(_part(p) for p in parts)
        found = [_names(p) for p in self.parts]
        while found and not found[-1]:
            found.pop()
        self._normalised = tuple(found)
        names = self.names()
        if len(set(names)) < len(names):
            raise located(ArgumentError(f"{self}: an axis name stands there twice"))

    def names(self) -> tuple[str, ...]:
        """All names, in order."""
        return tuple(n for p in self.parts for n in _names(p))

    def normalised(self) -> tuple[tuple[str, ...], ...]:
        """The names of each axis of an array, without axes at the end that have none."""
        return self._normalised

    def __iter__(self) -> Iterator[Part]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, i: Any) -> Any:
        return self.parts[i]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionSpec) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)

    def __repr__(self) -> str:
        return f"PartitionSpec({', '.join(map(repr, self.parts))})"


def _part(p: Any) -> Part:
    if p is None or isinstance(p, str):
        return p
    names = tuple(p) if has_items(p) else (p,)
    if not all(isinstance(n, str) for n in names):
        raise located(ArgumentError(f"PartitionSpec takes axis names, tuples of them, and None, not {p!r}"))
    return names


def _names(p: Part) -> tuple[str, ...]:
    return () if p is None else (p,) if isinstance(p, str) else p


class NamedSharding:
    """How an array lies on a mesh: :func:`hologram.device_put` takes it. Raises ArgumentError for names that the mesh has not.

    >>> mesh = hg.distributed.Mesh([0, 1], "x")
    >>> hg.distributed.NamedSharding(mesh, hg.distributed.PartitionSpec("x")).shard_shape((6, 5))
    (3, 5)
    """

    __slots__ = ("mesh", "spec")
    is_sharding = True  # what tells it from the name of a device

    def __init__(self, mesh: Mesh, spec: PartitionSpec) -> None:
        if not isinstance(mesh, Mesh) or not isinstance(spec, PartitionSpec):
            raise located(ArgumentError(f"NamedSharding takes a Mesh and a PartitionSpec, not {type(mesh).__name__} and {type(spec).__name__}"))
        unknown = [n for n in spec.names() if n not in mesh.axis_names]
        if unknown:
            raise located(ArgumentError(f"{spec} names {', '.join(map(repr, unknown))}, which {mesh} has not"))
        self.mesh, self.spec = mesh, spec

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every rank has the whole array."""
        return all(self.mesh.shape[n] == 1 for n in self.spec.names())

    def counts(self, ndim: int, what: str) -> tuple[int, ...]:
        """Into how many parts each axis of an array is divided. Raises ShapeError for an array with fewer axes than the spec."""
        parts = self.spec.normalised()
        if len(parts) > ndim:
            raise located(ShapeError(f"{what}: {self.spec} for an array with {ndim} axes"))
        shape = self.mesh.shape
        return tuple(math.prod(shape[n] for n in names) for names in parts) + (1,) * (ndim - len(parts))

    def shard_shape(self, global_shape: Sequence[int], what: str = "NamedSharding") -> tuple[int, ...]:
        """The shape of each rank's part. Raises ShapeError where an axis does not divide."""
        counts = self.counts(len(global_shape), what)
        for axis, (n, k) in enumerate(zip(global_shape, counts, strict=True)):
            if n % k:
                over = ", ".join(map(repr, self.spec.normalised()[axis]))
                raise located(ShapeError(f"{what}: axis {axis} of shape {list(global_shape)} does not divide among the {k} ranks of {over}"))
        return tuple(n // k for n, k in zip(global_shape, counts, strict=True))

    def divides(self, axis: int) -> bool:
        """Whether an axis is divided among several ranks."""
        return any(self.mesh.shape[n] > 1 for names in self.spec.normalised()[axis : axis + 1] for n in names)

    def with_axis(self, axis: int) -> NamedSharding:
        """That of an array with another axis, which is not divided, at a place."""
        parts = self.spec.normalised()
        return NamedSharding(self.mesh, PartitionSpec(*parts[:axis], *[()] * (axis - len(parts)), (), *parts[axis:]))

    def without_axis(self, axis: int) -> NamedSharding:
        """That of an array without one of its axes."""
        parts = self.spec.normalised()
        return NamedSharding(self.mesh, PartitionSpec(*parts[:axis], *parts[axis + 1 :]))

    def index(self, global_shape: Sequence[int], what: str) -> tuple[slice, ...]:
        """Which part this process has."""
        return self._index(self.shard_shape(global_shape, what), self.mesh.here(what))

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[int, tuple[slice, ...]]:
        """Which part each rank has. Raises ShapeError where an axis does not divide.

        >>> mesh = hg.distributed.Mesh([0, 1], "x")
        >>> hg.distributed.NamedSharding(mesh, hg.distributed.PartitionSpec("x")).devices_indices_map((6,))
        {0: (slice(0, 3, None),), 1: (slice(3, 6, None),)}
        """
        part, names = self.shard_shape(global_shape), self.mesh.axis_names
        places = {int(rank): dict(zip(names, place, strict=True)) for place, rank in np.ndenumerate(self.mesh.devices)}
        return {rank: self._index(part, place) for rank, place in places.items()}

    def _index(self, part: Sequence[int], place: Mapping[str, int]) -> tuple[slice, ...]:
        """The part, of a shape, that a rank has, of which ``place`` is the place along each axis of the mesh."""
        shape, slices = self.mesh.shape, []
        for axis, n in enumerate(part):
            names = self.spec.normalised()[axis] if axis < len(self.spec.normalised()) else ()
            number = 0
            for name in names:
                number = number * shape[name] + place[name]
            slices.append(slice(number * n, (number + 1) * n))
        return tuple(slices)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, NamedSharding) and self.mesh == other.mesh and self.spec.normalised() == other.spec.normalised())

    def __hash__(self) -> int:
        return hash((self.mesh, self.spec.normalised()))

    def __repr__(self) -> str:
        return f"NamedSharding({self.mesh}, {self.spec})"
