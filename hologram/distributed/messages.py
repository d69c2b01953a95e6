"""Messages of torch.distributed process groups: sent and received by Gloo, waited for, and the memory that small ones go through.

Small messages go through memory that is kept. There, room for the next messages of a tag is offered while one is on its way: the next then goes at
once, and not when its receiver has asked for it. Each offer is a message, so many are made together.

Messages to higher ranks and those to lower ones have a process group each. In Gloo a thread of its own receives, and polls without a pause while a
sender holds the lock of the connection. Where both share a core, a message that comes while another is sent keeps the sender from its core until the
scheduler's next tick (4 ms). A connection that carries data in one direction has no such pair.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
from collections import deque
from collections.abc import Iterator
from datetime import timedelta
from functools import lru_cache
from itertools import chain, repeat
from typing import Any, NamedTuple

import numpy as np

ROOM_BYTES = 1 << 16  # of a message that goes through kept memory: to copy more takes longer than to meet the receiver
MAX_STOCK = 32  # of offers for one tag: with each refill there are twice as many
MAX_STOCK_BYTES = 1 << 18
MAX_OFFERED_BYTES = 1 << 24  # of room that nobody has asked for yet: no offer can be taken back
_CLOSE_TAG = 2**31 - 1  # that no message has
_AT_ONCE = timedelta(milliseconds=1)
_DOUBLING = [2**k for k in range(MAX_STOCK.bit_length() - 1)]
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


class _Stock(NamedTuple):
    """Offers of room for messages of one tag from one rank, first in, first out."""

    offers: deque[Message]
    refills: Iterator[int]  # how many each adds


class Post:
    """Sends and receives bytes as number ``rank`` of two process groups of the same ranks: of messages to higher ranks, and to lower ones."""

    def __init__(self, upward: Any, downward: Any, rank: int) -> None:
        import torch  # optional

        self._upward, self._downward, self._rank, self._torch = upward, downward, rank, torch
        self._free: dict[int, list[_Room]] = {}  # by their bytes
        self._stocks: dict[tuple[int, int], _Stock] = {}  # of a rank and a tag
        self._offered = 0  # bytes of all stocks

    def send(self, data: np.ndarray, rank: int, tag: int) -> Message:
        """Raises RuntimeError where the rank is gone."""
        if data.size > ROOM_BYTES:
            tensor, room = self._tensor(data), None
        else:
            room = self._room(data.size)
            room.memory[...] = data
            tensor = room.tensor
        group = self._upward if rank > self._rank else self._downward
        return Message(group.send([tensor], rank, tag), rank, tensor, data, room)

    def receive(self, data: np.ndarray, rank: int, tag: int) -> Message:
        """Raises RuntimeError where the rank is gone. What came is in ``data`` after :meth:`free`."""
        if data.size > ROOM_BYTES:
            return self._receive(self._tensor(data), data, rank, tag, None)
        stock = self._stocks.get((rank, tag))
        if stock is None:  # what comes twice will come again
            self._stocks[rank, tag] = _Stock(deque(), chain(_DOUBLING, repeat(MAX_STOCK)))
            message = self._offer(data.size, rank, tag)
        elif stock.offers:
            message = stock.offers.popleft()
            self._offered -= data.size
        else:
            message = self._offer(data.size, rank, tag)
            self._refill(stock, data.size, rank, tag)
        message.data = data
        return message

    def _refill(self, stock: _Stock, nbytes: int, rank: int, tag: int) -> None:
        count = min(next(stock.refills), max(1, MAX_STOCK_BYTES // nbytes), (MAX_OFFERED_BYTES - self._offered) // nbytes)
        self._offered += count * nbytes
        with contextlib.suppress(RuntimeError):  # the rank has ended, perhaps after its last message: who asks for more is told
            for _ in range(count):
                stock.offers.append(self._offer(nbytes, rank, tag))

    def _offer(self, nbytes: int, rank: int, tag: int) -> Message:
        room = self._room(nbytes)
        return self._receive(room.tensor, None, rank, tag, room)

    def _receive(self, tensor: Any, data: np.ndarray | None, rank: int, tag: int, room: _Room | None) -> Message:
        group = self._upward if rank < self._rank else self._downward
        return Message(group.recv([tensor], rank, tag), rank, tensor, data, room)

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

    def close(self, rank: int) -> list[Any]:
        """Ends all connections, of which one is to ``rank``: Gloo does so where a wait takes too long. What it gives must stay."""
        kept = []
        for group in (self._upward, self._downward):
            room = self._room(1)
            with contextlib.suppress(RuntimeError):  # which says that this message did not come
                work = group.recv([room.tensor], rank, _CLOSE_TAG)
                kept.append((work, room))
                work.wait(_AT_ONCE)
        return kept

    def end(self) -> None:
        """Lets go all connections, which nobody uses."""
        self._stocks.clear()
        self._upward = self._downward = None

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
