"""The CUDA of ``fake_cuda.py`` with a driver in C (``emulation/driver.c``), whose functions native code calls without Python."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hologram.backends.cuda.api import Addresses
from tests.support.devices.c_harness import COMPILERS, EMULATION, _compile, new_folder
from tests.support.devices.fake_cuda import FakeApi

FUNCTIONS = Addresses._fields
MAX_ENTRIES = 256  # entries that are taken at one time


class _Entry(ctypes.Structure):
    _fields_ = [("what", ctypes.c_int64), ("arguments", ctypes.c_int64 * 3), ("stream", ctypes.c_int64), ("context", ctypes.c_int64)]


@functools.cache
def _driver() -> Path:
    out = new_folder() / "driver.so"
    _compile(COMPILERS["c"], "-shared", "-pthread", "-o", out, EMULATION / "driver.c")
    return out


def _caught_up(name: str) -> Callable[..., Any]:
    """A method of FakeApi, before which the driver's streams are brought up to date."""
    method = getattr(FakeApi, name)

    def run(self: NativeFakeApi, *args: Any) -> Any:
        with self._one_at_a_time:  # kernels are coroutines of one thread
            self.catch_up()
            return method(self, *args)

    return run


class NativeFakeApi(FakeApi):
    """What native code put in streams, ``contexts`` says of each launch in which context, is there whenever Python looks at a stream."""

    def __init__(self, devices: int = 1) -> None:
        super().__init__(devices)
        self.library = ctypes.CDLL(shutil.copy(_driver(), new_folder()))  # a copy has counters of its own
        self.addresses = Addresses(*[ctypes.cast(getattr(self.library, f"driver_{name}"), ctypes.c_void_p).value for name in FUNCTIONS])
        self.contexts: list[int] = []
        self._one_at_a_time = threading.RLock()

    def called(self, name: str) -> int:
        """How many times native code called a function."""
        return int((ctypes.c_int64 * len(FUNCTIONS)).in_dll(self.library, "driver_calls")[FUNCTIONS.index(name)])

    def fail(self, name: str, status: int, times: int) -> None:
        """The next calls of a function fail."""
        for array, value in (("status", status), ("faults", times)):
            (ctypes.c_int64 * len(FUNCTIONS)).in_dll(self.library, f"driver_{array}")[FUNCTIONS.index(name)] = value

    def current_context(self) -> int:
        return self.current + 1

    @contextlib.contextmanager
    def on(self, number: int) -> Iterator[None]:
        with super().on(number):
            self.library.driver_set_context(ctypes.c_int64(self.current + 1))
            yield
        self.library.driver_set_context(ctypes.c_int64(self.current + 1))

    def catch_up(self) -> None:
        with self._one_at_a_time:
            entries = (_Entry * MAX_ENTRIES)()
            while n := self.library.driver_taken(entries, ctypes.c_int64(MAX_ENTRIES)):
                for e in entries[:n]:
                    self._do(FUNCTIONS[e.what], list(e.arguments), e.stream, e.context)

    def _do(self, name: str, arguments: list[int], stream: int, context: int) -> None:
        if name == "copy_in":
            FakeApi.copy(self, *arguments, stream)
        elif name == "launch":
            self.contexts.append(context)
            FakeApi.launch_graph(self, arguments[0], stream)
        else:
            FakeApi.record(self, arguments[0], stream)

    copy, launch, record, launch_graph = map(_caught_up, ("copy", "launch", "record", "launch_graph"))
    is_done, wait, wait_in, synchronize, finish = map(_caught_up, ("is_done", "wait", "wait_in", "synchronize", "finish"))
    destroy_graph, destroy_stream, array_at = map(_caught_up, ("destroy_graph", "destroy_stream", "array_at"))
