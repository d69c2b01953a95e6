"""What messages between the processes cost (the alpha-beta model), measured, and kept in the disk cache beside the rates of devices."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from hologram.backends import object_cache as disk
from hologram.errors import DistributedError
from hologram.primitives.host.exchanges import RUN, Peers
from hologram.support.user_lines import located
from hologram.support.world import Call, Network, World, current_world

SMALL, MEDIUM, LARGE = 8, 1 << 19, 1 << 24  # bytes of a message
MESSAGES = 64  # that a rank sends at once
ROUNDS, MANY_ROUNDS, MEDIUM_ROUNDS, LARGE_ROUNDS = 32, 4, 8, 2  # in a row
ROWS = 4
_FIELDS = set(Network._fields)


def known(processes: int, is_local: bool) -> Network | None:
    """What so many processes on this machine, or on several, have measured; None where none have."""
    key = _key(processes, is_local)
    found = disk.load_entry(key, lambda data, meta: meta.keys() == _FIELDS and all(type(x) is float and x > 0 for x in meta.values()))
    return None if found is None else Network(**found[1])


def _key(processes: int, is_local: bool) -> str:
    return disk.key("network", f"{processes} processes", "one machine" if is_local else "several machines")


def measure_network() -> Network:
    """Measures what messages between the processes cost; all call it. It takes about a second.

    Each rank sends to the next one, all at the same time. What rank 0 measures holds for all, decides from then on which small sums are one call, and
    is kept on this machine for as many processes. Raises DistributedError where one process runs alone.

    >>> hg.distributed.simulate(2).run(hg.distributed.measure_network)[0].latency > 0
    True
    """
    world = current_world()
    if world.size < 2:
        raise located(DistributedError("measure_network: one process runs: there is no network between processes"))
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    call = Call(f"measure_network of {world.size}", "")
    out, into = np.zeros(LARGE, np.uint8), np.zeros(LARGE, np.uint8)

    def send(nbytes: int, times: int = 1) -> None:
        messages = [world.begin(call, {right: out[:nbytes]}, {left: into[:nbytes]}) for _ in range(times)]
        for m in messages:
            m.wait()

    ranks = tuple(range(world.size))
    peers = Peers(world, ranks, [r for r in ranks if r != world.rank], world.rank, call)
    terms = np.zeros(world.size * MEDIUM, np.uint8)
    total = np.empty_like(terms)

    def reduce() -> None:
        for _ in RUN["psum"](peers, [terms], [total]):
            pass
        peers.under_way.clear()

    with world.lock:
        small = _steady(lambda: send(SMALL), ROUNDS)
        many = _steady(lambda: send(SMALL, MESSAGES), MANY_ROUNDS)
        medium = _steady(reduce, MEDIUM_ROUNDS)
        large = _steady(lambda: send(LARGE), LARGE_ROUNDS)
        bandwidth = LARGE / max(large - small, 1e-6)
        message = max(many - small, 1e-9) / (MESSAGES - 1)
        rendezvous = max(medium / 2 - small - (world.size - 1) * MEDIUM / bandwidth, 1e-9)
        figures = np.array([small, bandwidth, message, rendezvous])
        _from_first(world, call, figures.view(np.uint8))
    world.network = Network(*map(float, figures))
    names = getattr(world, "names", None)
    if names is not None and world.rank == 0:
        _keep(world.network, world.size, is_local=len({_host(n) for n in names}) == 1)
    return world.network


def _host(name: str) -> str:
    return name.partition("host ")[2].partition(",")[0]


def _from_first(world: World, call: Call, data: np.ndarray) -> None:
    """Everyone has rank 0's bytes."""
    others = range(1, world.size)
    sends, receives = (dict.fromkeys(others, data), {}) if world.rank == 0 else ({}, {0: data})
    world.begin(call, sends, receives, 1).wait()


def _steady(run: Callable[[], None], times: int) -> float:
    """Seconds of one of some runs in a row. A single one may find its message there already: other ranks were ahead, and on a core that ranks share
    the time that it took was theirs. Of some rows the fastest: other work makes them slower, never faster."""
    run()
    found = []
    for _ in range(ROWS):
        start = time.perf_counter()
        for _ in range(times):
            run()
        found.append((time.perf_counter() - start) / times)
    return min(found)


def _keep(network: Network, processes: int, is_local: bool) -> None:
    """Keeps measured figures on this machine."""
    disk.store(_key(processes, is_local), b"", network._asdict(), kind="rates")
