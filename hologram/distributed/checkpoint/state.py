"""What a checkpoint holds: the leaves of a pytree by their names, and which rank has and which rank writes each part of them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hologram import dtypes
from hologram.distributed.array import ShardedArray
from hologram.errors import ArgumentError
from hologram.support.user_lines import located
from hologram.trace import tree

Region = tuple[slice, ...]
NUMBERS = (bool, int, float, str)
WHOLE = "array"  # the name of a state that is one leaf


class Part(NamedTuple):
    """A region of an array, and the rank that writes it."""

    region: Region
    writer: int


class Leaf(NamedTuple):
    """A leaf of the state. ``shape`` is that of the whole array; None for a number of Python's, or a text."""

    name: str
    value: Any
    shape: tuple[int, ...] | None
    dtype: str


def is_leaf(x: Any) -> bool:
    return isinstance(x, ShardedArray)


def leaves_of(state: Any, what: str) -> list[Leaf]:
    """The leaves of a pytree. Raises ArgumentError for those that no checkpoint holds, and where two have the same name."""
    found = [_leaf(name or WHOLE, value, what) for name, value in _named(state, "")]
    names = [leaf.name for leaf in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise located(ArgumentError(f"{what}: two leaves of the state have the name {twice!r}"))
    return found


def _named(x: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Leaves with the keys to them, a point between each two: ``layers.0.weight``."""
    parts = None if is_leaf(x) else tree.children_of(x)
    if parts is None:
        yield prefix, x
        return
    for key, child in zip(tree.keys_of(x), parts[1], strict=True):
        own = next(getattr(key, field) for field in ("key", "idx", "name") if hasattr(key, field))
        yield from _named(child, f"{prefix}.{own}" if prefix else str(own))


def _leaf(name: str, value: Any, what: str) -> Leaf:
    if type(value) in NUMBERS:
        return Leaf(name, value, None, type(value).__name__)
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        raise located(ArgumentError(f"{what}: {name} is a {type(value).__name__}: a state has arrays, numbers and texts"))
    return Leaf(name, value, tuple(value.shape), dtypes.of(value.dtype).name)


def fingerprint(leaves: Sequence[Leaf]) -> int:
    """A number that ranks compare: of the names and types of all leaves, and of values that are no arrays."""
    text = repr([(x.name, x.shape, x.dtype, x.value if x.shape is None else None) for x in leaves])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "little")


def regions(leaf: Leaf, ranks: int) -> dict[int, Region]:
    """The region of an array that each rank has: all of it, where it is not divided."""
    assert leaf.shape is not None
    if isinstance(leaf.value, ShardedArray):
        return leaf.value.sharding.devices_indices_map(leaf.shape)
    return dict.fromkeys(range(ranks), tuple(slice(0, n) for n in leaf.shape))


def parts_of(leaves: Sequence[Leaf], ranks: int) -> dict[str, list[Part]]:
    """The parts of each array: every element in one part, and parts with writers so that all ranks write about as much."""
    found: dict[str, list[Part]] = {}
    jobs: list[tuple[int, int, str, Region, list[int]]] = []
    for leaf in leaves:
        if leaf.shape is None:
            continue
        found[leaf.name], having = [], dict[Any, list[int]]()
        for rank, region in regions(leaf, ranks).items():
            having.setdefault(tuple((s.start, s.stop) for s in region), []).append(rank)
        itemsize = dtypes.of(leaf.dtype).itemsize
        for ends, of in having.items():
            size = itemsize * math.prod(b - a for a, b in ends)
            jobs.append((-size, len(jobs), leaf.name, tuple(slice(*e) for e in ends), of))
    load = dict.fromkeys(range(ranks), 0)
    for size, _, name, region, of in sorted(jobs, key=lambda job: (len(job[4]) > 1, job[0], job[1])):  # what one rank alone has, first
        writer = min(of, key=lambda rank: (load[rank], rank))
        load[writer] -= size
        found[name].append(Part(region, writer))
    return found


def own_array(leaf: Leaf) -> np.ndarray:
    """What this rank has of a leaf."""
    value = leaf.value.addressable_data() if isinstance(leaf.value, ShardedArray) else leaf.value
    return np.asarray(value)
