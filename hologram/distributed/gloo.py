"""The world between processes: messages by torch.distributed's Gloo, from the sender's memory into the receiver's.

A message has a tag, which is made from what the call is for (op, types, shapes, axes) and its size. Gloo moves data only once both sides have named a
tag, so ranks at different collectives wait for each other and no data is taken for other data. :mod:`hologram.distributed.watch` finds them.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import numpy as np

from hologram.distributed.messages import ROOM_BYTES, Message, Post, tag_of
from hologram.distributed.watch import END, Fault, Watch
from hologram.errors import DistributedError, DistributedTimeoutError
from hologram.support.world import Call, Network

_LATE = ("timed out", "timeout")  # in Gloo's messages
PAUSE = 0.001  # seconds between looks whether threads have left the engine


class GlooWorld:
    """The processes of torch.distributed process groups: ``upward`` carries messages to higher ranks, ``downward`` those to lower ones. ``names`` say
    where each rank runs, ``store`` is where they leave each other notes."""

    def __init__(
        self,
        upward: Any,
        downward: Any,
        rank: int,
        size: int,
        timeout: float,
        names: list[str],
        store: Any,
        network: Network,
    ) -> None:
        self.rank, self.size, self.timeout, self.names = rank, size, timeout, names
        self.network = network
        self.lock = threading.RLock()
        self.lane: Any = None
        self.groups: tuple[Any, ...] = upward, downward
        self.post = Post(upward, downward, rank)
        self._wait_at_most = timedelta(seconds=timeout)
        self._failure: str | None = None
        self._kept: list[Any] = []  # what Gloo reads or writes after a failure must stay
        self.watch = Watch(store, rank, self.close)

    def begin(self, call: Call, sends: Mapping[int, Any], receives: Mapping[int, Any], phase: int = 0) -> Messages:
        """As :meth:`hologram.support.world.World.begin`. After a failure every call raises DistributedError."""
        if self._failure is not None:
            raise DistributedError(f"rank {self.rank}, in {call}: {self._failure}")
        messages = Messages(self, call)
        try:
            for rank, data in receives.items():
                if data.size > ROOM_BYTES:  # offered before anything is sent, which saves a wait
                    self._receive(messages, rank, data, phase)
            for rank, data in sends.items():
                try:
                    messages.sent.append(self.post.send(data, rank, tag_of(call.text, phase, data.size)))
                except RuntimeError as e:
                    raise self._fault(rank, call, e) from None
            for rank, data in receives.items():
                if data.size <= ROOM_BYTES:
                    self._receive(messages, rank, data, phase)
        except BaseException as e:
            self.fail(e, messages)
            raise
        return messages

    def _receive(self, messages: Messages, rank: int, data: np.ndarray, phase: int) -> None:
        try:
            messages.received.append(self.post.receive(data, rank, tag_of(messages.call.text, phase, data.size)))
        except RuntimeError as e:
            raise self._fault(rank, messages.call, e) from None

    def fail(self, error: BaseException, messages: Any = None) -> None:
        """No other collective runs; memory of messages under way stays."""
        if self._failure is None:
            self._failure = f"an earlier collective has failed: {str(error) or type(error).__name__}"
        self._kept.append(messages)

    def close(self) -> None:
        """Ends all connections: whoever waits for a message, here and elsewhere, is told so at once."""
        if self.size > 1:
            self._kept.append(self.post.close((self.rank + 1) % self.size))

    def wait(self, message: Message, call: Call) -> None:
        """Waits for a message."""
        number = self.watch.waits(message.rank, call)
        try:
            message.wait(self._wait_at_most)
        except RuntimeError as e:
            self.watch.require_alike()
            raise self._fault(message.rank, call, e) from None
        finally:
            self.watch.goes_on(number)

    def _fault(self, rank: int, call: Call, error: RuntimeError) -> DistributedError:
        """The error of a message from or to ``rank``. It names the rank that was at fault first: others stop after it, and are lost or late, too."""
        first = self.watch.first_fault()
        if first is None:
            first = self.watch.first_fault(self._found(rank, error))
        assert first is not None
        kind = DistributedTimeoutError if first.is_late else DistributedError
        return kind(f"rank {self.rank}, in {call}: {first.text}" + (f" (found by rank {first.by})" if first.by != self.rank else ""))

    def _found(self, rank: int, error: RuntimeError) -> Fault:
        if any(word in str(error).lower() for word in _LATE):
            return Fault(self.rank, True, f"{self.names[self.watch.hanging(rank)]} did not come to it within {self.timeout:g} s")
        reason = re.sub(r"^\[.*?\] *|\. This is typically.*", "", str(error), flags=re.DOTALL)  # without Gloo's own file, and its advice
        return Fault(self.rank, False, f"{self.names[rank]} is lost: {reason}")

    def end(self) -> None:
        """The process leaves the others. Threads in a collective are told so, and have then left the engine. The process groups are no longer the
        world's, so that to destroy them ends their threads, which free Python objects. When the interpreter ends, a thread that comes to it from C++
        is unwound, which C++ takes for a crash."""
        self.give_up("this process has left the others")
        end = time.monotonic() + END
        while not self._is_quiet() and time.monotonic() < end:
            time.sleep(PAUSE)
        self.watch.end()
        self.post.end()
        self.groups = ()

    def _is_quiet(self) -> bool:
        """Whether no thread is in a collective any more. Connections end where one waits."""
        if self.watch.has_waits():
            self.close()
        if not self.lock.acquire(timeout=PAUSE):
            return False
        self.lock.release()
        return not self.watch.has_waits()

    def give_up(self, reason: str) -> None:
        """No collective runs from now on, and the engine stays as it is."""
        self._failure = reason

    def is_left_by_child(self) -> None:
        """In a forked child, which has none of the threads that the engine lives by: it uses nothing of it."""
        self.give_up(f"this process was forked from rank {self.rank}, whose connections these are: start it anew (spawn), and let it call initialize")


class Messages:
    """Messages under way, whose memory it keeps."""

    __slots__ = ("_done", "call", "received", "sent", "world")

    def __init__(self, world: GlooWorld, call: Call) -> None:
        self.world, self.call = world, call
        self.received: list[Message] = []
        self.sent: list[Message] = []
        self._done: list[Message] = []

    def wait(self, sent: bool = True) -> None:
        """Until all have come, and with ``sent`` all have gone. Raises DistributedError where a rank is lost, late or at another call."""
        try:
            self._wait(self.received, self.world.post.received)
            if sent:
                self._wait(self.sent, self.world.post.sent)
        except BaseException as e:
            self.world.fail(e, self)
            raise

    def _wait(self, some: list[Any], then: Any) -> None:
        while some:
            self.world.wait(some[0], self.call)
            message = some.pop(0)
            then(message)
            self._done.append(message)
