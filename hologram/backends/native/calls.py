"""Running a compiled graph from Python, and what its code is linked against."""

from __future__ import annotations

import ctypes
import sysconfig
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from functools import cache
from typing import Any

from hologram.backends.native.code.kernels import copies as copies_code
from hologram.backends.native.code.kernels import fft as fft_code
from hologram.backends.native.code.kernels import lapack as lapack_code
from hologram.backends.native.code.kernels import sort as sort_code
from hologram.backends.native.code.records import LONG, PARALLEL
from hologram.backends.native.module import check_size, module
from hologram.backends.native.pool import the_pool
from hologram.backends.native_lang.language import Routine
from hologram.support.once import once

READY = tuple(
    x.symbol
    for source in (sort_code, lapack_code, fft_code, copies_code)
    for x in vars(source).values()
    if isinstance(x, Routine) and x.exported and source.__name__ == x.function.__module__
)  # kernels that are compiled already

_exclusive: Any = threading.RLock() if sysconfig.get_config_var("Py_GIL_DISABLED") else nullcontext()  # contexts are the GIL's to guard


@cache
def symbols() -> dict[str, int]:
    """Addresses of the functions that compiled graphs call.

    - ``i64 hg_parallel_for(ptr ctx, ptr kernel, ptr args, i64 chunks, i64 grain)``: runs all chunks of
      ``void kernel(ptr args, i64 begin, i64 end, ptr scratch)``, on the calling thread alone where ``grain`` is negative; nonzero: the call is
      cancelled and the graph must return;
    - ``void hg_begin_trial(ptr trial)``, ``void hg_end_trial(ptr trial)``: around a loop whose steps may be shared among threads or not;
      ``i64 hg_runs_serially(ptr trial)``: before each of these; nonzero: it is not shared;
    - ``i64 hg_poll(ptr ctx)``: for long loops outside of kernels: handles signals; nonzero likewise;
    - ``i64 hg_call_host(ptr ctx, ptr args)``: runs a host op through Python; nonzero likewise;
    - ``ptr hg_bar_begin(ptr ctx, ptr label, i64 total)``, ``void hg_bar_end(ptr ctx, ptr slot)``: around a loop that counts its steps;
    - what checked graphs call: :mod:`.code.checked`;
    - the kernels of :data:`READY`.
    """
    return {
        name: module().address(name)
        for name in (
            "hg_parallel_for",
            "hg_begin_trial",
            "hg_end_trial",
            "hg_runs_serially",
            "hg_poll",
            "hg_call_host",
            "hg_bar_begin",
            "hg_bar_end",
            "hg_violated",
            "hg_poison",
            "hg_poison_result",
            *READY,
        )
    }


@once
def _functions() -> tuple[Any, Any]:
    the_pool()
    m = module()
    run_graph = m.function("hg_run_graph", ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    return run_graph, m.function("hg_context_trim", None)


def flags(long: bool, parallel: int) -> int:
    """``long``: the GIL is released, and signals are looked for. ``parallel``: PARALLEL for a graph that has kernels for several threads, with
    TEAM where these may be OpenMP's; 0 for others."""
    return LONG * long | parallel


def run(
    address: int,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    symbols: Sequence[int] = (),
    arena_bytes: int = 0,
    long: bool = False,
    parallel: int = PARALLEL,
) -> None:
    """Runs the graph at ``address`` on Storages: inputs and hidden constants, then outputs; then the values of integer symbols.

    ``long``, ``parallel``: see :func:`flags`; workers are started if they do not run. Raises
    KeyboardInterrupt, or what else a signal's handler raises, where that cancels the run; OutOfMemory for the arena; BoundsError.
    """
    slots = [s.data for s in inputs]
    slots += [s.data for s in outputs]
    slots += symbols
    run_slots(address, slots, arena_bytes, flags(long, parallel))


def run_slots(address: int, slots: Sequence[int], arena_bytes: int, flags: int) -> None:
    """As :func:`run`, the words of all slots being given."""
    check_size(arena_bytes)
    buffers = (ctypes.c_int64 * len(slots))(*slots)
    with _exclusive:
        _functions()[0](address, buffers, arena_bytes, flags)


def trim_contexts() -> None:
    """Frees scratch and arenas that no call uses."""
    with _exclusive:
        _functions()[1]()
