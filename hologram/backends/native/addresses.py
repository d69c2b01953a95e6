"""Graphs on memory that the caller names by its address: no Tensors, no allocation, results where the caller wants them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hologram.backends.native import calls
from hologram.backends.native.code.records import PARALLEL, Bound
from hologram.backends.native.module import METH_FASTCALL, check_size, module, why_not_native
from hologram.backends.native.pool import the_pool


def bind(
    address: int,
    inputs: int,
    results: int,
    constants: Sequence[Any] = (),
    symbols: Sequence[int] = (),
    arena_bytes: int = 0,
    long: bool = False,
    parallel: int = PARALLEL,
    keep: Any = None,
) -> Callable[..., None]:
    """A function of ``inputs`` and then ``results`` addresses, as Python integers, that runs the graph at ``address`` on them.

    ``constants`` are Storages and ``symbols`` integers that every call supplies; ``keep`` is kept alive (the graph's code). Addresses are
    trusted: whoever calls sees to memory of the right size, aligned to its elements. The function raises TypeError for another number of
    arguments or for what is no integer, and what :func:`calls.run` raises.
    """
    check_size(arena_bytes)
    if why_not_native() is not None:
        return _bound_in_python(address, inputs, results, constants, symbols, arena_bytes, calls.flags(long, parallel), keep)
    from hologram.backends.native.tables import table  # whose memory is a native Storage

    the_pool()
    arrays = {"constants": [s.data for s in constants], "symbols": list(symbols)}
    values = {
        "graph": address,
        "arena_bytes": arena_bytes,
        "flags": calls.flags(long, parallel),
        "n_inputs": inputs,
        "n_results": results,
        **{"n_" + name: len(words) for name, words in arrays.items()},
    }
    return module().builtin("hg_call_at", "run", METH_FASTCALL, (table(Bound, values, arrays), *constants, keep))


def _bound_in_python(
    address: int, inputs: int, results: int, constants: Sequence[Any], symbols: Sequence[int], arena_bytes: int, flags: int, keep: Any
) -> Callable[..., None]:
    def run(*addresses: int, _keep: Any = keep) -> None:
        if len(addresses) != inputs + results:
            raise TypeError(f"run takes {inputs + results} addresses, not {len(addresses)}")
        calls.run_slots(address, [*addresses[:inputs], *[s.data for s in constants], *addresses[inputs:], *symbols], arena_bytes, flags)

    return run
