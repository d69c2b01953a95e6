"""Captured calls of programs on devices, as native code finds them; and the classes of what is on devices, as it reads and makes their objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from hologram.backends.cpu.native.module import immortal, module
from hologram.backends.cpu.native.object_layout import slot_offset
from hologram.backends.device import memory, storage


class Replays:
    """The captured calls of a program at given sizes. ``known`` holds a table (a record :class:`records.Replay`) and what it keeps alive for each;
    ``queue`` is a Python callable that gives the queue of a call, None where Python is to make it."""

    __slots__ = ("known", "queue")

    def __init__(self, queue: Callable[[], Any]) -> None:
        self.known: tuple[Any, ...] = ()
        self.queue = queue


_CLASSES: dict[str, tuple[type, str]] = {
    "storage": (storage.DeviceStorage, "aval memory made owner exports _host"),
    "memory": (memory.Memory, "handle pool queue piece uses"),
    "piece": (memory.Piece, "handle size nbytes what"),
    "submission": (storage.Submission, "queue error event _after _kept"),
    "replays": (Replays, "known queue"),
}


@cache
def know_classes() -> None:
    """Tells native code of the classes. Raises UnknownLayout where their slots are no fields of their objects."""
    remote = module().remote
    for kind, (cls, slots) in _CLASSES.items():
        for name in slots.split():
            setattr(remote, f"{kind}_{name.lstrip('_')}", slot_offset(cls, name))
    for kind in ("storage", "memory", "submission"):
        setattr(remote, f"{kind}_type", id(immortal(_CLASSES[kind][0])))
    remote.nothing, remote.zero = id(immortal(())), id(immortal(0))
