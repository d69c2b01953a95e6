"""Messages of a torch.distributed process group: sent and received by Gloo, waited for, and the memory that small ones go through.

Small messages go through memory that is kept. There, room for the next message of a tag is offered while one is on its way: the next then goes at
once, and not when its receiver has asked for it.
"""

from __future__ import annotations

import ctypes
import hashlib
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

ROOM_BYTES = 1 << 12  # of a message that goes through kept memory
MAX_OFFERS = 1024  # of room that nobody has asked for yet: no offer can be taken back
_TAG_BITS = 30  # of a positive integer of 32 bits


class _Room(NamedTuple):
    """Memory, as torch and as NumPy see it."""

    tensor: Any
    memory: np.ndarray


class Message:
    """A message on its way. ``data`` is what is sent, or where it is wanted."""

    __slots__ = ("_work", "data", "rank", "room", "tensor")

    def __init__(self, work: Any, rank: int, tensor: Any, data: np.ndarray | None, room: _Room | None) -> None:
        self._work, self.rank, self.tensor, self.data, self.room = work, rank, tensor, data, room

    def wait(self, at_most: Any) -> None:
        self._work.wait(at_most)


class Post:
    """Sends and receives bytes by a process group."""

    def __init__(self, group: Any) -> None:
        import torch  # optional

        self._group, self._torch = group, torch
        self._free: dict[int, list[_Room]] = {}  # by their bytes
        self._offers: dict[tuple[int, int], list[Message]] = {}  # of a rank and a tag

    def send(self, data: np.ndarray, rank: int, tag: int) -> Message:
        """Raises RuntimeError where the rank is gone."""
        if data.size > ROOM_BYTES:
            tensor, room = self._tensor(data), None
        else:
            room = self._room(data.size)
            room.memory[...] = data
            tensor = room.tensor
        return Message(self._group.send([tensor], rank, tag), rank, tensor, data, room)

    def receive(self, data: np.ndarray, rank: int, tag: int) -> Message:
        """Raises RuntimeError where the rank is gone. What came is in ``data`` after :meth:`free`."""
        if data.size > ROOM_BYTES:
            tensor = self._tensor(data)
            return Message(self._group.recv([tensor], rank, tag), rank, tensor, data, None)
        offers = self._offers.get((rank, tag))
        message = offers.pop() if offers else self._offer(data.size, rank, tag)
        message.data = data
        if offers is not None:
            try:  # noqa: SIM105 - on the way of each small message
                offers.append(self._offer(data.size, rank, tag))
            except RuntimeError:  # the rank has ended, perhaps after its last message: who asks for more is told
                pass
        elif len(self._offers) < MAX_OFFERS:  # what comes twice will come again
            self._offers[rank, tag] = []
        return message

    def _offer(self, nbytes: int, rank: int, tag: int) -> Message:
        room = self._room(nbytes)
        return Message(self._group.recv([room.tensor], rank, tag), rank, room.tensor, None, room)

    def _room(self, nbytes: int) -> _Room:
        try:
            return self._free[nbytes].pop()  # and no question before: another thread may take the last one
        except (KeyError, IndexError):
            memory = np.empty(nbytes, np.uint8)
            return _Room(self._torch.from_numpy(memory), memory)

    def received(self, message: Message) -> None:
        """Puts what has come where it is wanted."""
        if message.room is not None:
            assert message.data is not None
            message.data[...] = message.room.memory
            self.sent(message)

    def sent(self, message: Message) -> None:
        """The memory that a message went through is free again."""
        if message.room is not None:
            self._free.setdefault(message.room.memory.size, []).append(message.room)

    def _tensor(self, data: np.ndarray) -> Any:
        """Memory as torch takes it; what is not to be written is only read."""
        if data.flags.writeable:
            return self._torch.from_numpy(data)
        memory = (ctypes.c_uint8 * data.nbytes).from_address(data.ctypes.data)
        return self._torch.frombuffer(memory, dtype=self._torch.uint8)


@lru_cache(maxsize=4096)
def tag_of(text: str, phase: int, nbytes: int) -> int:
    """The tag of messages of one size, of one phase of a call."""
    digest = hashlib.blake2b(f"{text} {phase} {nbytes}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % 2**_TAG_BITS
