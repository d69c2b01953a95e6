"""Plans of Fourier transforms in memory, for native code to run (:mod:`.code.kernels.fft`): their kernels, compiled once for a machine and kept in
the disk cache one by one, and their tables. A plan lives as long as a program that has it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from hologram.backends import object_cache as disk
from hologram.backends.llvm.abi import PHASE_BYTES
from hologram.backends.llvm.fft.kernels import Code, module_ir
from hologram.backends.llvm.fft.plan import Phase, Request, plan
from hologram.backends.llvm.fft.program import Step, Table
from hologram.backends.llvm.toolchain import target
from hologram.backends.native.code.kernels import fft as fft_code
from hologram.backends.native.module import immortal
from hologram.backends.native.processors import usable_processors
from hologram.backends.native_lang.language import fields_of, size_of
from hologram.settings import settings
from hologram.support import forks

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
        memory = np.empty(array.nbytes + _LINE, np.uint8)
        start = -memory.ctypes.data % _LINE
        memory[start : start + array.nbytes] = np.ascontiguousarray(array).view(np.uint8).ravel()
        self.kept[name] = memory
        return int(memory.ctypes.data + start)

    def _table(self, table: Table | None) -> int:
        if table is None:
            return 0
        if table not in self.kept:
            make, arguments = table
            return self._stored(table, make(*arguments))
        return int(self.kept[table].ctypes.data + -self.kept[table].ctypes.data % _LINE)

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
            *(self._table(p.aux), p.aux_step, p.memory),
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
