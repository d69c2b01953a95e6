"""Plans of Fourier transforms in memory, for native code to run (:mod:`.code.kernels.fft`).

Their kernels are compiled once for a machine and kept in the disk cache one by one. A plan lives as long as a program that has it; of those for sizes
that are known only in a call, the last few stay.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.backends import object_cache as disk
from hologram.backends.llvm.abi import PHASE_BYTES
from hologram.backends.llvm.fft.arithmetic import FLOATS
from hologram.backends.llvm.fft.kernels import Code, module_ir
from hologram.backends.llvm.fft.plan import Phase, Request, plan
from hologram.backends.llvm.fft.program import Step, Table
from hologram.backends.llvm.graph import fourier
from hologram.backends.llvm.graph.host_calls import ROUTINES
from hologram.backends.llvm.toolchain import target
from hologram.backends.native.code.kernels import fft as fft_code
from hologram.backends.native.code.records import SCRATCH_BYTES, Context
from hologram.backends.native.module import Record, immortal, module
from hologram.backends.native.pool import the_pool
from hologram.backends.native.processors import usable_processors
from hologram.backends.native_lang.language import fields_of, size_of
from hologram.graph.library.fft.sizes import work_elements
from hologram.settings import settings
from hologram.support import forks
from hologram.support.once import once

_LINE = 64
_lock = forks.guard(forks.RUNTIME, threading.RLock())
_kernels: dict[tuple[str, Code], int] = {}  # addresses, of code that stays
_plans: weakref.WeakValueDictionary[tuple[str, str], LoadedPlan] = weakref.WeakValueDictionary()


class LoadedPlan:
    """A plan in memory. ``address`` is that of its phases."""

    __slots__ = ("address", "kept", "__weakref__")

    def __init__(self, phases: Sequence[Phase]) -> None:
        found = kernels({s.code for p in phases for s in (*p.steps, *p.last_steps)})
        self.kept: dict[Any, np.ndarray] = {}
        words = [self._phase(p, found) for p in phases]
        self.address = self._stored("phases", np.concatenate(words))

    def _stored(self, name: Any, array: np.ndarray) -> int:
        """The address of an array that is kept, at the start of a cache line."""
        memory = self.kept[name] = _lines(array.nbytes)
        memory[:] = np.ascontiguousarray(array).view(np.uint8).ravel()
        return int(memory.ctypes.data)

    def _table(self, table: Table | None) -> int:
        if table is None:
            return 0
        make, arguments = table
        return int(self.kept[table].ctypes.data) if table in self.kept else self._stored(table, make(*arguments))

    def _steps(self, steps: Sequence[Step], found: dict[Code, int]) -> int:
        words = [w for s in steps for w in self._step(s, found)]
        return self._stored(len(self.kept), np.array(words, np.int64))

    def _step(self, s: Step, found: dict[Code, int]) -> list[int]:
        places = [s.source.real, s.source.imaginary, s.target.real, s.target.imaginary]
        words = [found[s.code], *[w for p in places for w in p], s.source.row, s.target.row, s.lanes, s.runs, s.blocks, self._table(s.table)]
        assert len(words) == len(fields_of(fft_code.Step))
        return words

    def _phase(self, p: Phase, found: dict[Code, int]) -> np.ndarray:
        steps = self._steps(p.steps, found)
        last = steps if p.last_steps is p.steps else self._steps(p.last_steps, found)
        words = [
            *(steps, len(p.steps), last, len(p.last_steps), p.blocks, p.width, p.limit),
            *(p.source.array, p.source.outer, p.source.step, p.target.array, p.target.outer, p.target.step),
            *(self._table(p.aux), p.aux_step, p.memory, p.chunks, p.grain),
        ]
        assert 8 * len(words) == size_of(fft_code.Phase) == PHASE_BYTES
        return np.array(words, np.int64)


def plans(symbols: Iterable[str]) -> dict[str, LoadedPlan]:
    """The plans that object code names. Raises KeyError for what is no plan."""
    return {symbol: _plan(symbol) for symbol in symbols}


def _plan(symbol: str) -> LoadedPlan:
    with _lock:
        key = target.host().id, symbol
        found = _plans.get(key)
        if found is None:
            phases = plan(Request.of(symbol))
            if phases is None:
                raise KeyError(symbol)
            found = _plans[key] = LoadedPlan(phases)
        return found


def kernels(codes: Iterable[Code]) -> dict[Code, int]:
    """The addresses of kernels, for this machine."""
    of = target.host()
    with _lock:
        missing = sorted({c for c in codes if (of.id, c) not in _kernels})
        if missing:
            code = immortal(target.link(_objects(missing, of), {}, [c.name for c in missing]))
            _kernels.update({(of.id, c): code.address(c.name) for c in missing})
        return {c: _kernels[of.id, c] for c in codes}


def _objects(codes: Sequence[Code], of: target.Target) -> list[bytes]:
    """Object code, from the disk cache where it is there."""
    keys = {c: disk.key("fft", c.name) for c in codes} if settings.cache else {}
    found = {c: code for c in codes if c in keys and (code := disk.load(keys[c])) is not None}
    missing, at_once = [c for c in codes if c not in found], usable_processors()
    for i in range(0, len(missing), at_once):
        some = missing[i : i + at_once]
        made = target.compile_modules([module_ir(c) for c in some], of, ["kernel"] * len(some))
        for c, code in zip(some, made, strict=True):
            found[c] = code
            if c in keys:
                disk.store(keys[c], code, kind="runtime")
    return [found[c] for c in codes]


# --- sizes that are known in a call ------------------------------------------------------------------------------------------


class _Recent:
    """A plan, and the memory that one call at a time works in."""

    def __init__(self, request: Request) -> None:
        kind = FLOATS[request.kind][1]
        self.plan, self.count = _plan(request.symbol), len(fourier.phases(request))
        self.nbytes = 2 * kind * work_elements(request.name, request.shape, request.axes, request.n, kind)

    def run(self, x: np.ndarray, out: np.ndarray) -> None:
        words, scratch, work = np.zeros(size_of(Context) // 8, np.int64), _lines(SCRATCH_BYTES), _lines(self.nbytes)
        context = Record(Context, words.ctypes.data)
        context.scratch = scratch.ctypes.data
        call = np.array([0, 0, x.ctypes.data, out.ctypes.data, work.ctypes.data], np.int64)
        if _native_run()(context.address, call.ctypes.data, self.plan.address, self.count):
            raise MemoryError("no memory for a Fourier transform")


_recent = lru_cache(maxsize=32)(_Recent)


@once
def _native_run() -> Any:
    the_pool()
    return module().function("hg_fft_run", ctypes.c_int64, *[ctypes.c_void_p] * 3, ctypes.c_int64, gil=False)


def _lines(nbytes: int) -> np.ndarray:
    """Memory that starts at a cache line."""
    memory = np.empty(nbytes + _LINE, np.uint8)
    start = -memory.ctypes.data % _LINE
    return memory[start : start + nbytes]


def run(name: str, arrays: list[np.ndarray], attributes: list[Any]) -> bool:
    """Runs a transform of one array to another, both in C order; False where there is no plan. ``attributes`` are those of the op ``name``."""
    x, out = arrays
    request = fourier.request_of(name, dtypes.of(x.dtype), x.shape, out.shape, tuple(attributes), target.host())
    if request is None:
        return False
    _recent(request).run(x, out)
    return True


ROUTINES.update(dict.fromkeys(fourier.NAMES, run))
