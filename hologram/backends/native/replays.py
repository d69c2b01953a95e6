"""Captured calls of programs on devices, as native code finds them; and the classes of what is on devices, as it reads and makes their objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hologram.backends.native.code.object_layout import slot_offset
from hologram.backends.native.module import immortal, module
from hologram.support.once import once


class Replays:
    """The captured calls of a program at given sizes. ``known`` holds a table (a record :class:`records.Replay`) and what it keeps alive for each;
    ``queue`` is a Python callable that gives the queue of a call, None where Python is to make it."""

    __slots__ = ("known", "queue")

    def __init__(self, queue: Callable[[], Any]) -> None:
        self.known: tuple[Any, ...] = ()
        self.queue = queue


_SLOTS = {  # that native code reads
    "storage": "aval memory made owner exports _host",
    "memory": "handle pool queue piece uses",
    "piece": "handle size nbytes what",
    "submission": "queue error event _after _kept",
    "replays": "known queue",
}
_classes: dict[str, type] = {"replays": Replays}


def know_classes(storage: type, memory: type, piece: type, submission: type) -> None:
    """The classes of what is on devices. Whoever defines them calls this, before the first program of a device is dispatched."""
    _classes.update(storage=storage, memory=memory, piece=piece, submission=submission)


@once
def tell_classes() -> None:
    """Tells native code of the classes. Raises UnknownLayout where their slots are no fields of their objects."""
    remote = module().remote
    for kind, slots in _SLOTS.items():
        for name in slots.split():
            setattr(remote, f"{kind}_{name.lstrip('_')}", slot_offset(_classes[kind], name))
    for kind in ("storage", "memory", "submission"):
        setattr(remote, f"{kind}_type", id(immortal(_classes[kind])))
    remote.nothing, remote.zero = id(immortal(())), id(immortal(0))
