"""What a call of a program on a device costs the host: ``python -m benchmarks.device_calls``.

The program has 20 small kernels, its arguments are on the device, and nothing waits for results: what is timed is the way from the caller to the
driver and back. CUDA is a driver that does nothing, so its row holds no time of a driver; the others run for real where there are such devices.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from hologram.backends.cpu import target
from hologram.backends.cuda.api import Addresses, Api, Properties
from hologram.cached import cached_property

CALLS = 200  # of a round, after which the device catches up
ROUNDS = 25


class IdleError(Exception):
    """Never raised."""


class IdleApi(Api):
    """Calls of CUDA that do nothing at once. Memory is addresses."""

    errors: tuple[type[Exception], ...] = (IdleError,)
    addresses = None  # Python's way

    def __init__(self) -> None:
        self._numbers: Iterator[int] = itertools.count(1 << 20, 1 << 20)
        self._host: list[np.ndarray] = []

    def properties(self, number: int) -> Properties:
        return Properties("a driver that does nothing", "sm_90", 132, 2**37)

    def versions(self) -> str:
        return "no driver"

    def compiler_version(self) -> str:
        return "none"

    def on(self, number: int) -> AbstractContextManager[None]:
        return nullcontext()

    def current_stream(self, number: int) -> int:
        return 0

    def is_done(self, event: int) -> bool:
        return True

    def compile(self, source: str, options: Any) -> bytes:
        return b""

    def allocate_host(self, nbytes: int) -> int:
        self._host.append(np.empty(nbytes, np.uint8))
        return int(self._host[-1].ctypes.data)

    def _number(self, *_: Any) -> int:
        return next(self._numbers)

    def _nothing(self, *_: Any) -> None:
        return

    allocate = new_stream = new_event = load = function = end_capture = _number
    free = free_host = copy = destroy_stream = synchronize = record = wait = wait_in = unload = launch = _nothing
    begin_capture = launch_graph = destroy_graph = _nothing


_DONE = "define i32 @{}({}) {{ ret i32 0 }}\n"
_FUNCTIONS = {"copy_in": "i64, ptr, i64, i64", "launch": "i64, i64", "record": "i64, i64", "push_current": "ptr", "pop_current": "ptr"}


class NativeIdleApi(IdleApi):
    """The same with functions that native code calls, and which do nothing."""

    @cached_property
    def addresses(self) -> Addresses:  # type: ignore[override]
        text = "".join(_DONE.format(name, types) for name, types in _FUNCTIONS.items())
        text += "define i32 @get_current(ptr %p) { store i64 1, ptr %p ret i32 0 }\n"
        names = list(Addresses._fields)
        self._code = target.link(target.compile_ir(text, target.host(), opt="quick"), {}, names)
        return Addresses(*[self._code.address(name) for name in names])


def layers(x: Any, y: Any) -> Any:
    """20 kernels."""
    import hologram.numpy as hnp

    for _ in range(10):
        x = hnp.tanh(x @ y) + hnp.sum(x)
    return x


def measured(device: Any, name: str | None = None) -> dict[str, float]:
    """Microseconds of a call on ``device``, one of the driver's, for jitted functions made there."""
    import hologram as hg

    f = hg.jit(layers, device=name or device.name)
    x, y = (hg.device_put(np.random.default_rng(s).random((32, 32), np.float32), device.name) for s in range(2))

    def calls() -> None:
        for _ in range(CALLS):
            f(x, y)

    return {"us": _microseconds(calls, lambda: hg.block_until_ready(f(x, y)))}


def _microseconds(calls: Callable[[], None], wait: Callable[[], Any]) -> float:
    """Of one call: the median over rounds."""
    calls()
    found = []
    for _ in range(ROUNDS):
        wait()
        start = time.perf_counter()
        calls()
        found.append((time.perf_counter() - start) / CALLS * 1e6)
    return statistics.median(found)


def main() -> None:
    from hologram.backends import devices
    from hologram.backends.cuda import device as cuda

    idle = [cuda.Device(NativeIdleApi(), 0)]
    cuda.found = lambda: (idle, None)  # type: ignore[assignment]
    for name in ("null", "cuda", "opencl"):
        try:
            device = devices.find(name)
        except devices.DeviceError as e:
            print(f"{name:8} {e}")
            continue
        print(f"{name:8} {measured(device)['us']:8.1f} us a call  ({device.describe()})", flush=True)


if __name__ == "__main__":
    main()
