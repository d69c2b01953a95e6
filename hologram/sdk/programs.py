"""Compiled ops: one program for an op, an element type and a device, written to where the caller wants its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hologram import numpy as hnp
from hologram.backends.llvm.memory import CACHE_LINE, NONTEMPORAL_BYTES
from hologram.backends.native import addresses, storage
from hologram.backends.native.dispatch import Into
from hologram.backends.native.module import module
from hologram.backends.residence import on_host
from hologram.dtypes import DType
from hologram.ir.aval import aval
from hologram.ir.devices import CPU
from hologram.ir.graph import Graph
from hologram.ir.symbolic import var
from hologram.sdk.table import Array, Row
from hologram.settings import settings
from hologram.support.lru_cache import Recent
from hologram.trace import compiling
from hologram.trace.operators import node_of, wrap
from hologram.trace.recorder import Trace, cast_node

PROGRAM_LIMIT = 512  # programs that are kept, the least recently used go
LONG_BYTES = 1 << 20  # a call that moves more gives up the GIL

_programs = Recent(PROGRAM_LIMIT)


class Program:
    """A row of the table compiled, for every size or (``fixed``) for certain ones. Its graph takes all parameters in order, the result's buffer
    included, which it does not read."""

    def __init__(self, row: Row, dtype: DType, device: str, extents: Mapping[str, Any], fixed: bool) -> None:
        self.row, self.dtype, self.device, self.fixed = row, dtype, device, fixed
        made: Any = compiling.compile_graph(_graph(row, dtype, extents), device=device)
        self.executable = made
        self.place = row.parameters.index(row.result)
        self.copies = device == CPU and made.outputs[0][0] == "input"

    def shapes(self, sizes: Mapping[str, int]) -> list[tuple[int, ...]]:
        return [p.shape(sizes) if isinstance(p, Array) else () for p in self.row.parameters]

    @property
    def sharers(self) -> list[int]:
        """Parameters, by number, at whose address the result may be computed. The CPU's alone."""
        return list(range(self.place)) if self.copies else [i for i in self.executable.donors[0] if i != self.place]

    def alignment(self, sizes: Mapping[str, int]) -> int:
        """Of which number of bytes the result's address has to be a multiple."""
        return CACHE_LINE if self.fixed and streams(self.row, self.dtype, sizes) else self.dtype.itemsize

    def call(self, sizes: Mapping[str, int]) -> tuple[int, Sequence[int], int, bool]:
        """What a call with these sizes supplies to the graph: its address, values of symbols, bytes of the arena; whether it is long."""
        made = self.executable
        if self.copies:
            nbytes = self.row.result.count(sizes) * self.dtype.itemsize
            return module().address("hg_copy_graph"), (nbytes,), 0, nbytes >= LONG_BYTES
        if made.computed is not None:
            return made.address, (), made.arena_bytes, made.long
        _, symbols, arena = made.at_shapes(self.shapes(sizes))
        return made.address, symbols, arena, made.long and sum(a.count(sizes) for a in self.row.arrays) * self.dtype.itemsize >= LONG_BYTES

    def bound(self, sizes: Mapping[str, int]) -> Callable[..., None]:
        """A function of the addresses of all parameters and then of the result, for these sizes."""
        address, symbols, arena, long = self.call(sizes)
        made = self.executable
        return addresses.bind(address, len(self.row.parameters), 1, made.constants, symbols, arena, long, made.parallel, keep=made)

    def into(self, sizes: Mapping[str, int]) -> Into:
        """Where native calls write the result."""
        return Into(self.place, self.sharers, self.alignment(sizes))

    def run(self, places: Sequence[tuple[int, Any]], sizes: Mapping[str, int]) -> np.ndarray:
        """The result as an array of its own, for parameters at ``places``: addresses, and what keeps them alive. On any device."""
        avals = [aval(self.dtype, shape) for shape in self.shapes(sizes)]
        inputs = [storage.over(a, address, owner, False) for a, (address, owner) in zip(avals, places, strict=True)]
        return storage.view(on_host(compiling.run(self.executable, inputs)[0]))


def streams(row: Row, dtype: DType, sizes: Mapping[str, int]) -> bool:
    """Whether a result is so large that a program for its size writes it past the caches, in whole lines."""
    return row.result.count(sizes) * dtype.itemsize >= NONTEMPORAL_BYTES


def _graph(row: Row, dtype: DType, extents: Mapping[str, Any]) -> Graph:
    with Trace(row.name) as trace:
        values = [wrap(trace.input(p.shape(extents) if isinstance(p, Array) else (), dtype)) for p in row.parameters]
        given = [v for v, p in zip(values, row.parameters, strict=True) if p is not row.result]
        result = hnp.broadcast_to(row.function(*given), row.result.shape(extents))
        outputs = [cast_node(node_of(result), dtype)]
    return trace.graph(outputs)


def program(row: Row, dtype: DType, device: str, sizes: Mapping[str, int], place: int) -> Program:
    """The program of an op for calls with these sizes and the result at the address ``place``, compiled by one thread. Raises UnsupportedError for
    what the device lacks."""
    fixed = row.by_size or (place % CACHE_LINE == 0 and streams(row, dtype, sizes))
    extents: Mapping[str, Any] = sizes if fixed else {e: var(e, low=1) for e in row.sizes}
    key = (row.name, dtype, device, settings.code, *(sizes.values() if fixed else ()))

    def make() -> Program:
        found: Program | None = _programs.get(key)
        if found is None:
            found = Program(row, dtype, device, extents, fixed)
            _programs.put(key, found)
        return found

    found: Program | None = _programs.get(key)
    return found if found is not None else compiling.once(("sdk", key), make)


def clear_programs() -> None:
    """Forgets all programs; those that calls have found live on with them."""
    _programs.clear()
