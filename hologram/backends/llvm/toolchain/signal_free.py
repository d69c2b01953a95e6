"""Calls of llvmlite away from handlers of signals, which Python runs in its main thread between any two steps of any function.

Ctrl-C raises an exception there, and llvmlite's own Python code is not made for one: between LLVM's freeing an object and llvmlite's note of it
the object is freed twice, after a lock is taken and before it is a ``with`` block's it is held for ever, and in a finaliser the interrupt is lost. So
whatever makes or frees objects of LLVM runs in a thread beside the main thread, which waits. An interrupt ends the wait; what LLVM is at is finished
and dropped. No handler is touched, whoever set it.
"""

from __future__ import annotations

import _thread
import atexit
import functools
import os
import queue
import threading
import traceback
import weakref
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

LOOK_SECONDS = 0.1  # Windows handles signals between waits, not in them


def signal_free(function: Callable[P, T]) -> Callable[P, T]:
    """``function``, made to run where no signal is handled: where it is called, or, from the main thread, in a thread of its own.

    What an exception's frames hold is dropped there too. In the main thread it ends with what a handler raises, and its thread goes on to the end.
    """

    @functools.wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> T:
        if threading.get_ident() == threading.main_thread().ident:
            return _Job(functools.partial(function, *args, **options)).wait()
        _free_ended()
        return function(*args, **options)

    return call


class _Job:
    """A function's call in a thread of its own. Threads are the bare ones of Python: an object of ``threading`` has finalisers in Python."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work, self.process = work, os.getpid()
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = threading.Lock()
        self.done.acquire()

    def run(self) -> None:
        _under_way.add(self)
        try:
            _free_ended()
            self.result = self.work()
        except BaseException as e:
            _clear_frames(e)
            self.error = e
        finally:
            _under_way.discard(self)
            self.done.release()

    def wait(self) -> Any:
        try:
            _thread.start_new_thread(self.run, ())
        except RuntimeError:  # no more threads, or the interpreter is about to exit
            return self.work()
        while not self.done.acquire(timeout=LOOK_SECONDS):
            if os.getpid() != self.process:  # a handler forked: the child has no such thread
                return self.work()
        if self.error is not None:
            try:
                raise self.error
            finally:
                self.error = None  # whose frames refer to this
        return self.result


_under_way: set[_Job] = set()


@atexit.register
def _finish() -> None:
    """Interrupted calls come to their end before LLVM is taken down."""
    for job in list(_under_way):
        if job.process == os.getpid():
            job.done.acquire()


def _clear_frames(error: BaseException) -> None:
    """Lets go what the functions that an exception came through hold; the lines stay."""
    chain: list[BaseException | None] = [error]
    while chain:
        e = chain.pop()
        if e is not None:
            traceback.clear_frames(e.__traceback__)
            chain += [e.__cause__, e.__context__]


# --- finalisers ---------------------------------------------------------------------------------------------------------------------------


class _End(weakref.ref):
    """Of an object: keeps what is freed after it."""

    __slots__ = ("resource",)
    resource: Any


_ends: set[_End] = set()
_ended: queue.SimpleQueue[_End] = queue.SimpleQueue()


def free_after(owner: Any, resource: Any) -> None:
    """Lets ``resource`` go after ``owner``, away from signals: at the next call that is :func:`signal_free`. The owner must not hold it."""
    end = _End(owner, _ended.put)  # C code, so nothing is raised in it, wherever the owner's memory is collected
    end.resource = resource
    _ends.add(end)


@signal_free
def free_ended() -> None:
    """Frees what waits for it."""


def _free_ended() -> None:
    while True:
        try:
            _ends.discard(_ended.get_nowait())
        except queue.Empty:
            return
