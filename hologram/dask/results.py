"""Results of tasks: computed when the task ends, so that what it read can go, and within the memory of the worker."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from hologram.backends.native import storage
from hologram.trace.lazy import evaluate
from hologram.trace.tensor import Tensor

_FREE_PART = 16  # of a worker's memory one in so many parts may be free memory that is kept for results to come


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
        limit = _worker_limit()
        if limit and storage.statistics()["cached"] > limit // _FREE_PART:
            storage.clear_caches()
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


def _worker_limit() -> int:
    """The bytes that the ``distributed`` worker that runs this task may use; 0 where there is no worker, or no limit."""
    workers = sys.modules.get("distributed.worker")
    if workers is None:
        return 0
    try:
        worker = workers.get_worker()
    except ValueError:
        return 0
    return int(worker.memory_manager.memory_limit or 0)
