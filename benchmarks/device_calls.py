"""What a call of a program on a device costs the host: ``python -m benchmarks.device_calls``.

The programs have 20 small kernels or 20 leaves of arguments, which are on the device, and nothing waits for results: what is timed is the way from
the caller to the driver and back. CUDA is a driver that does nothing, so its rows hold no time of a driver: ``cuda:0`` is called by native code,
``cuda:1`` by Python. The others run for real where there are such devices.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from hologram.backends.cuda.api import Addresses, Api, Properties
from hologram.backends.llvm.toolchain import target
from hologram.support.cached_property import cached_property

CALLS = 200  # of a round, after which the device catches up
ROUNDS = 25


class IdleError(Exception):
    """Never raised."""


class IdleApi(Api):
    """Calls of CUDA that do nothing at once. Memory is addresses."""

    errors: tuple[type[Exception], ...] = (IdleError,)
    addresses = None  # of functions for native code: calls are captured and replayed by Python
    words = "does nothing, called by Python"

    def __init__(self) -> None:
        self._numbers: Iterator[int] = itertools.count(1 << 20, 1 << 20)
        self._host: list[np.ndarray] = []

    def properties(self, number: int) -> Properties:
        return Properties(f"a driver that {self.words}", "sm_90", 132, 2**37)

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

    words = "does nothing"

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


def network(params: Any, x: Any) -> Any:
    """Ten layers of 20 leaves."""
    import hologram.numpy as hnp

    for i in range(10):
        x = hnp.tanh(x @ params[f"w{i}"] + params[f"b{i}"])
    return x


def update(params: Any, step: Any) -> Any:
    """As many leaves in the result."""
    return {name: p - 0.1 * step * p for name, p in params.items()}


def arguments(function: Callable[..., Any], device: str) -> tuple[Any, ...]:
    """Of one of the functions above, on the device."""
    import hologram as hg

    rng = np.random.default_rng(0)
    params = {f"{kind}{i}": rng.random((32, 32) if kind == "w" else 32, np.float32) for i in range(10) for kind in "wb"}
    x, y = (rng.random((32, 32), np.float32) for _ in range(2))
    return hg.device_put({layers: (x, y), network: (params, x), update: (params, x[0, :1])}[function], device)


def measured(function: Callable[..., Any], device: str) -> float:
    """Microseconds of a call."""
    import hologram as hg

    f, given = hg.jit(function, device=device), arguments(function, device)

    def calls() -> None:
        for _ in range(CALLS):
            f(*given)

    return _microseconds(calls, lambda: hg.block_until_ready(f(*given)))


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
    from hologram.backends.cuda import device as cuda
    from hologram.ir import devices

    idle = [cuda.Device(NativeIdleApi(), 0), cuda.Device(IdleApi(), 1)]
    cuda.found = lambda: (idle, None)  # type: ignore[assignment]
    cases = {"2 arguments": layers, "20 leaves": network, "20 leaves in and out": update}
    print(f"{'us a call':12}" + "".join(f"{name:>24}" for name in cases))
    for name in ("null:0", "cuda:0", "cuda:1", "opencl:0"):
        try:
            device = devices.find(name)
        except devices.DeviceError as e:
            print(f"{name:12} {e}")
            continue
        print(f"{name:12}" + "".join(f"{measured(f, name):24.1f}" for f in cases.values()) + f"  {device.describe()}", flush=True)


if __name__ == "__main__":
    main()
