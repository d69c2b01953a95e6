"""The world between processes: messages by torch.distributed's Gloo, from the sender's memory into the receiver's.

A message has a tag, which is made from what the call is for: op, types, shapes, axes. Gloo moves data only once both sides have named a tag, so ranks
at different collectives wait for each other and no data is taken for other data. :mod:`hologram.distributed.watch` finds them.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import re
import threading
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any

import numpy as np

from hologram.distributed.watch import Watch
from hologram.errors import DistributedError, DistributedTimeoutError
from hologram.support.world import Call, Network

LARGE_BYTES = 1 << 16  # of a message: room for more is offered before it is sent, which saves a wait; for less the offers get into each other's way
PHASES = 2  # kinds of messages of one call, each with a tag of its own
_TAG_BITS = 29  # of the tag of a call: with its phase, a positive integer of 32 bits
_CLOSE_TAG = 2**31 - 1  # that no message has
_LATE = ("timed out", "timeout")  # in Gloo's messages


class GlooWorld:
    """The processes of a torch.distributed process group. ``names`` say where each rank runs, ``store`` is where they leave each other notes."""

    def __init__(self, group: Any, rank: int, size: int, timeout: float, names: list[str], store: Any, network: Network) -> None:
        import torch  # optional

        self.group, self.rank, self.size, self.timeout, self.names = group, rank, size, timeout, names
        self.network = network
        self.lock = threading.RLock()
        self._torch, self._wait_at_most = torch, timedelta(seconds=timeout)
        self._failure: str | None = None
        self._kept: list[Any] = []  # what Gloo reads or writes after a failure must stay
        self.watch = Watch(store, rank, self.close)

    def begin(self, call: Call, sends: Mapping[int, Any], receives: Mapping[int, Any], phase: int = 0) -> Messages:
        """As :meth:`hologram.support.world.World.begin`. After a failure every call raises DistributedError."""
        if self._failure is not None:
            raise DistributedError(f"rank {self.rank}, in {call}: an earlier collective has failed: {self._failure}")
        messages, tag = Messages(self, call), PHASES * _tag(call.text) + phase
        try:
            receive = [(messages.received, self.group.recv, receives)]
            send = [(messages.sent, self.group.send, sends)]
            is_large = any(data.size > LARGE_BYTES for data in receives.values())
            for found, start, given in receive + send if is_large else send + receive:
                for rank, data in given.items():
                    found.append((rank, self._started(start, rank, call, data, tag, messages)))
        except BaseException as e:
            self.fail(e, messages)
            raise
        return messages

    def fail(self, error: BaseException, messages: Any = None) -> None:
        """No other collective runs; memory of messages under way stays."""
        if self._failure is None:
            self._failure = str(error) or type(error).__name__
        self._kept.append(messages)

    def close(self) -> None:
        """Ends all connections: whoever waits for a message, here and elsewhere, is told so at once."""
        if self.size > 1:
            with contextlib.suppress(RuntimeError):  # which says that this message did not come
                into = self._torch.empty(1)
                self._kept.append(into)
                self.group.recv([into], (self.rank + 1) % self.size, _CLOSE_TAG).wait(timedelta(milliseconds=1))

    def _started(self, start: Any, rank: int, call: Call, data: np.ndarray, tag: int, kept: Messages) -> Any:
        tensor = self._tensor(data)
        try:
            work = start([tensor], rank, tag)
        except RuntimeError as e:
            raise self._lost(rank, call, e) from None
        kept.memory.append((work, tensor, data))
        return work

    def _tensor(self, data: np.ndarray) -> Any:
        """Memory as torch takes it; what is not to be written is only read."""
        if data.flags.writeable:
            return self._torch.from_numpy(data)
        memory = (ctypes.c_uint8 * data.nbytes).from_address(data.ctypes.data)
        return self._torch.frombuffer(memory, dtype=self._torch.uint8)

    def wait(self, work: Any, rank: int, call: Call) -> None:
        """Waits for a message from ``rank`` or to it."""
        self.watch.waits(rank, call)
        try:
            work.wait(self._wait_at_most)
        except RuntimeError as e:
            self.watch.require_alike()
            text = str(e)
            if any(word in text.lower() for word in _LATE):
                late = f"{self.names[rank]} did not come to it within {self.timeout:g} s"
                raise DistributedTimeoutError(f"rank {self.rank}, in {call}: {late}") from None
            raise self._lost(rank, call, e) from None
        finally:
            self.watch.goes_on()

    def _lost(self, rank: int, call: Call, error: RuntimeError) -> DistributedError:
        reason = re.sub(r"^\[.*?\] *|\. This is typically.*", "", str(error), flags=re.DOTALL)  # without Gloo's own file, and its advice
        return DistributedError(f"rank {self.rank}, in {call}: {self.names[rank]} is lost: {reason}")

    def end(self) -> None:
        """The process leaves the others."""
        self.watch.end()


class Messages:
    """Messages under way, whose memory it keeps."""

    __slots__ = ("call", "memory", "received", "sent", "world")

    def __init__(self, world: GlooWorld, call: Call) -> None:
        self.world, self.call = world, call
        self.received: list[tuple[int, Any]] = []
        self.sent: list[tuple[int, Any]] = []
        self.memory: list[Any] = []

    def wait(self, sent: bool = True) -> None:
        """Until all have come, and with ``sent`` all have gone. Raises DistributedError where a rank is lost, late or at another call."""
        try:
            while self.received:
                rank, work = self.received.pop(0)
                self.world.wait(work, rank, self.call)
            while sent and self.sent:
                rank, work = self.sent.pop(0)
                self.world.wait(work, rank, self.call)
        except BaseException as e:
            self.world.fail(e, self)
            raise


@lru_cache(maxsize=4096)
def _tag(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") % 2**_TAG_BITS
