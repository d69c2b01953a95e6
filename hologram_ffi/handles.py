"""What handles stand for. A handle is the number that the SDK gives the object, so no two objects of a process share one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from hologram.errors import ArgumentError, HandleError, HologramError
from hologram.sdk.buffer import Buffer
from hologram.sdk.executor import Executor
from hologram.sdk.strided import StridedTensor
from hologram.support.user_lines import located

T = TypeVar("T", Executor, Buffer, StridedTensor)


class Registry(Generic[T]):
    """Objects of one kind by handle; they live at least until they are released."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._objects: dict[int, T] = {}

    def add(self, found: T) -> int:
        self._objects[found.handle] = found
        return found.handle

    def get(self, handle: Any) -> T:
        """The object. Raises HandleError."""
        try:
            return self._objects[handle]
        except (KeyError, TypeError):
            raise self._unknown(handle) from None

    def release(self, handle: Any) -> T:
        """The object, whose handle is no longer one: of several threads, one gets it. Raises HandleError."""
        try:
            return self._objects.pop(handle)
        except (KeyError, TypeError):
            raise self._unknown(handle) from None

    def drop(self, found: T) -> None:
        """The object's handle is no longer one, if another thread has not released it already."""
        self._objects.pop(found.handle, None)

    def _unknown(self, handle: Any) -> HologramError:
        return located(HandleError(f"{handle!r} is no {self.kind}'s handle: it was never given out, or the {self.kind} was released"))

    def objects(self) -> list[T]:
        return list(self._objects.values())


executors: Registry[Executor] = Registry("executor")
buffers: Registry[Buffer] = Registry("buffer")
tensors: Registry[StridedTensor] = Registry("tensor")


def end(executor: Executor) -> None:
    """Ends an executor; the handles of its buffers are released."""
    for b in buffers.objects():
        if b.executor is executor:
            buffers.drop(b)
    executor.cleanup()


def clear_all_registries() -> None:
    """Releases every handle, ends the executors and frees the buffers.

    >>> executor = hologram_ffi.new_executor()
    >>> hologram_ffi.clear_all_registries()
    """
    for t in tensors.objects():
        tensors.drop(t)
    for e in executors.objects():
        executors.drop(e)
        end(e)
    for b in buffers.objects():
        buffers.drop(b)
        b.free()


def integers(text: Any, what: str) -> tuple[int, ...]:
    """A JSON list of integers. Raises ArgumentError for another text."""
    found = parsed(text, what)
    if not all(type(n) is int for n in found):
        raise located(ArgumentError(f"{what} is a JSON list of integers, not {text!r}"))
    return tuple(found)


def parsed(text: Any, what: str) -> Sequence[Any]:
    """A JSON list. Raises ArgumentError for another text."""
    try:
        found = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        found = None
    if not isinstance(found, list):
        raise located(ArgumentError(f"{what} is a JSON list, not {text!r:.80}"))
    return found
