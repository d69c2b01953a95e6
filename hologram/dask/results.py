"""Results of tasks: computed when the task ends, so that what it read can go, and within the memory of the worker."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

from hologram.backends.native import storage
from hologram.trace.lazy import evaluate
from hologram.trace.tensor import Tensor

_FREE_PART = 16  # of a worker's memory one in so many parts may be free memory that is kept for results to come
_TRIM_INTERVAL = 100  # milliseconds between looks at the free memory of a worker
_watched: weakref.WeakSet[Any] = weakref.WeakSet()  # workers whose free memory is looked after


class Evaluated:
    """A function whose Tensors are computed when it returns. A pending Tensor would keep its operands: for Dask these are gone."""

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, *args: Any, **options: Any) -> Any:
        return evaluated(self.function(*args, **options))

    def __repr__(self) -> str:
        return repr(self.function)

    def __reduce__(self) -> Any:
        return Evaluated, (self.function,)

    def __dask_tokenize__(self) -> Any:
        return "hologram.dask.Evaluated", self.function


def evaluated(result: Any) -> Any:
    """``result``, with all Tensors in it computed."""
    tensors: list[Tensor] = []
    _collect(result, tensors)
    if tensors:
        evaluate(*tensors)
        _watch_worker()
    return result


def _collect(result: Any, tensors: list[Tensor]) -> None:
    if type(result) is Tensor:
        tensors.append(result)
    elif isinstance(result, (list, tuple)):
        for x in result:
            _collect(x, tensors)
    elif isinstance(result, dict):
        for x in result.values():
            _collect(x, tensors)


def _watch_worker() -> None:
    """Gives free memory of the ``distributed`` worker that runs this task back to the system, from now on.

    Dask counts it as used. A worker that has too much of that runs no tasks, in which memory would be used again, so it is looked after between them.
    """
    workers = sys.modules.get("distributed.worker")
    if workers is None:
        return
    try:
        worker = workers.get_worker()
    except ValueError:  # another scheduler runs this task
        return
    limit = worker.memory_manager.memory_limit
    if worker in _watched or not limit:
        return
    _watched.add(worker)
    worker.loop.add_callback(_start_trimming, worker, int(limit) // _FREE_PART)


def _start_trimming(worker: Any, most: int) -> None:
    """Runs in the worker's event loop."""
    from tornado.ioloop import PeriodicCallback

    def trim() -> None:
        if storage.statistics()["cached"] > most:
            storage.clear_caches()

    worker.periodic_callbacks["hologram"] = callback = PeriodicCallback(trim, _TRIM_INTERVAL)
    callback.start()
