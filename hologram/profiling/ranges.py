"""Ranges of another profiler around programs and their steps, opened and closed while they run: PyTorch's, by :mod:`hologram_torch.bridge.profiler`.

The code of a profiled program calls a hook where a step begins and where it ends, on the thread that calls the program. Each call takes the GIL and
about a microsecond, so there is no hook unless another profiler is at work. What loads LLVM is imported then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

Close = Callable[[], Any]
Opener = Callable[[str], Close]  # opens a range of this name
sources: list[Callable[[], Opener | None]] = []  # profilers: how each opens ranges, None where it is not at work


class _Open(threading.local):
    """The ranges of a thread, the innermost last: where each began, and how it is closed."""

    def __init__(self) -> None:
        self.ranges: list[tuple[int, Close]] = []


_open = _Open()
_users: list[tuple[Any, Opener]] = []
_names: dict[int, str] = {}  # of counters, by their address
_lock = threading.RLock()


def at_work() -> Opener | None:
    """How a profiler opens ranges that is at work now."""
    return next((found for source in sources if (found := source()) is not None), None)


def start(owner: Any, opener: Opener) -> None:
    """From now on the steps of programs open ranges."""
    from hologram.backends.native import counters

    with _lock:
        _users.append((owner, opener))
        counters.recorder().set_hook(_told)


def stop(owner: Any) -> None:
    """Ends that; nothing where ``owner`` did not start it."""
    from hologram.backends.native import counters

    with _lock:
        _users[:] = [x for x in _users if x[0] is not owner]
        if not _users:
            counters.recorder().set_hook(None)
            _names.clear()
    while not _users and _open.ranges:  # of calls that failed
        _open.ranges.pop()[1]()


def _told(address: int) -> None:
    """A step begins, whose counter is at ``address``, or ends, where that is negative."""
    open_ = _open.ranges
    if address > 0:
        users = _users
        if users:
            open_.append((address, users[-1][1](_names.get(address) or _name(address))))
    elif any(begun == -address for begun, _ in open_):
        while _closed(open_, -address):
            pass


def _closed(open_: list[tuple[int, Close]], address: int) -> bool:
    """Closes the innermost range; whether there is one to close after it: those inside of a step that failed are open yet."""
    begun, close = open_.pop()
    close()
    return begun != address


def _name(address: int) -> str:
    """The name of the step whose counter is at an address; remembered."""
    from hologram.backends.native import counters
    from hologram.profiling.facts import facts_of

    for of in counters.programs():
        step = of.step_at(address)
        if step is not None:
            program = of.name or "expression"
            facts = facts_of(of.plan())
            for n in range(of.steps):
                _names[of.first + n * counters.COUNTER_BYTES] = f"hologram: {program}" if n == 0 else f"hologram: {program}: {facts[n - 1].name}"
            return _names[address]
    return "hologram"
