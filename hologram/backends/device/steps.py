"""What a plan does as actions on a device's queue.

A :class:`Block` is what a plan does at given sizes. Its arrays are in *slots*, places in device memory that a call supplies: inputs, constants,
results, and last the arena. Where an array is, is a slot and an offset in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from hologram.backends.device.driver import Launch, Place, Queue
from hologram.backends.device.runtime import Work
from hologram.errors import UnsupportedError

Where = tuple[int, int]  # a slot, and bytes from its start
Slots = Sequence[Place]


class Steps(Protocol):
    """Something that a call puts in its queue: a block, or a part of what an action does, which a backend may capture as it may a block."""

    def run(self, call: Call, slots: Slots) -> None: ...


class Call(NamedTuple):
    """A call under way: what it puts in its queue, the handle of the workspace, and how the backend runs steps that it may run again."""

    work: Work
    workspace: Any
    enqueue: Callable[[Steps, Call, Slots], None]

    @property
    def queue(self) -> Queue:
        return self.work.queue


class Action(Protocol):
    """``whole``: nothing of other calls can come between what it puts in the queue, as can while a routine of the host runs, without the lock of the
    device. ``unattended``: it ends whatever the values are, and the host need not know any. ``workspace``: bytes."""

    workspace: int
    whole: bool
    unattended: bool

    def run(self, call: Call, slots: Slots) -> None: ...


class Block:
    """What a plan does: its actions in order, and the bytes of its arena and of the workspace that its launches share."""

    __slots__ = ("actions", "arena", "workspace", "whole", "unattended", "_only_launches")

    def __init__(self, actions: Sequence[Action], arena: int, workspace: int) -> None:
        self.actions, self.arena, self.workspace = actions, arena, workspace
        self.whole, self.unattended = all(a.whole for a in actions), all(a.unattended for a in actions)
        self._only_launches = all(type(a) is Launch for a in actions)

    def run(self, call: Call, slots: Slots) -> None:
        if self._only_launches:
            return call.work.queue.launch_all(self.actions, slots, call.workspace)  # type: ignore[arg-type]
        for action in self.actions:
            action.run(call, slots)


def at(slots: Slots, where: Where) -> Place:
    handle, base = slots[where[0]]
    return handle, base + where[1]


def read(call: Call, place: Place, array: np.ndarray, what: str) -> np.ndarray:
    """Fills ``array``, for which the call waits. Raises UnsupportedError where the device has no values, on which ``what`` depends."""
    device = call.work.queue.device
    if not device.has_values:
        raise UnsupportedError(f"{device.name} computes no values, and {what} depends on one")
    call.work.queue.read(bytes_of(array), place)
    return array


def bytes_of(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)
