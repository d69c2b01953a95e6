"""The world between processes: messages by torch.distributed's Gloo, each behind a header that says what it is for.

The first message to a peer has a fixed length: a header, and what fits behind it. The rest follows, from the caller's memory into the caller's
memory, once both have compared headers: ranks at different collectives find out before their data is used.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import threading
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any

import numpy as np

from hologram.distributed.simulation import unequal
from hologram.errors import DistributedError, DistributedTimeoutError
from hologram.support.world import Call

MESSAGE_BYTES = 4096
_DIGEST_BYTES, _TEXT_BYTES = 16, 1006
INLINE_BYTES = MESSAGE_BYTES - _DIGEST_BYTES - 2 - _TEXT_BYTES  # of data behind the header
_LATE = ("timed out", "timeout")  # in Gloo's messages


class GlooWorld:
    """The processes of a torch.distributed process group. ``names`` say where each rank runs."""

    def __init__(self, group: Any, rank: int, size: int, timeout: float, names: list[str]) -> None:
        import torch  # optional

        self.group, self.rank, self.size, self.timeout, self.names = group, rank, size, timeout, names
        self._torch, self._wait_at_most = torch, timedelta(seconds=timeout)
        self._lock = threading.Lock()
        self._failure: str | None = None
        self._under_way: list[Any] = []  # what Gloo reads or writes after a failure must stay

    def exchange(self, call: Call, sends: Mapping[int, Any], receives: Mapping[int, Any]) -> None:
        """As :meth:`hologram.support.world.World.exchange`. After a failure every call raises DistributedError."""
        with self._lock:
            if self._failure is not None:
                raise DistributedError(f"rank {self.rank}, in {call}: an earlier collective has failed: {self._failure}")
            work: list[Any] = []
            try:
                self._exchange(call, sends, receives, work)
            except BaseException as e:
                self._failure, self._under_way = str(e) or type(e).__name__, work
                raise

    def _exchange(self, call: Call, sends: Mapping[int, Any], receives: Mapping[int, Any], kept: list[Any]) -> None:
        header = _header(call)
        sent = [(rank, work) for rank, data in sends.items() for work in self._send(rank, call, header, data, kept)]
        heads = {rank: self._receive(rank, call, np.empty(MESSAGE_BYTES, np.uint8), kept) for rank in receives}
        rest = {}
        for rank, (message, work) in heads.items():
            self._wait(work, rank, call)
            if message[:_DIGEST_BYTES].tobytes() != header[:_DIGEST_BYTES].tobytes():
                raise unequal(self.rank, call, rank, _text(message))
            into, start = receives[rank], MESSAGE_BYTES - INLINE_BYTES
            into[:INLINE_BYTES] = message[start : start + into.size]
            if into.size > INLINE_BYTES:
                rest[rank] = self._receive(rank, call, into[INLINE_BYTES:], kept)
        for rank, (_, work) in rest.items():
            self._wait(work, rank, call)
        for rank, work in sent:
            self._wait(work, rank, call)

    def _send(self, rank: int, call: Call, header: np.ndarray, data: np.ndarray, kept: list[Any]) -> list[Any]:
        message = header.copy()
        start = MESSAGE_BYTES - INLINE_BYTES
        message[start : start + min(data.size, INLINE_BYTES)] = data[:INLINE_BYTES]
        parts = [message, data[INLINE_BYTES:]] if data.size > INLINE_BYTES else [message]
        return [self._started(self.group.send, rank, call, part, kept) for part in parts]

    def _receive(self, rank: int, call: Call, into: np.ndarray, kept: list[Any]) -> tuple[np.ndarray, Any]:
        return into, self._started(self.group.recv, rank, call, into, kept)

    def _started(self, start: Any, rank: int, call: Call, data: np.ndarray, kept: list[Any]) -> Any:
        tensor = self._tensor(data)
        try:
            work = start([tensor], rank, 0)
        except RuntimeError as e:
            raise self._lost(rank, call, e) from None
        kept.append((work, tensor, data))
        return work

    def _tensor(self, data: np.ndarray) -> Any:
        """Memory as torch takes it; what is not to be written is only read."""
        if data.flags.writeable:
            return self._torch.from_numpy(data)
        memory = (ctypes.c_uint8 * data.nbytes).from_address(data.ctypes.data)
        return self._torch.frombuffer(memory, dtype=self._torch.uint8)

    def _wait(self, work: Any, rank: int, call: Call) -> None:
        try:
            work.wait(self._wait_at_most)
        except RuntimeError as e:
            text = str(e)
            if any(word in text.lower() for word in _LATE):
                late = f"{self.names[rank]} did not come to it within {self.timeout:g} s"
                raise DistributedTimeoutError(f"rank {self.rank}, in {call}: {late}") from None
            raise self._lost(rank, call, e) from None

    def _lost(self, rank: int, call: Call, error: RuntimeError) -> DistributedError:
        reason = re.sub(r"^\[.*?\] *|\. This is typically.*", "", str(error), flags=re.DOTALL)  # without Gloo's own file, and its advice
        return DistributedError(f"rank {self.rank}, in {call}: {self.names[rank]} is lost: {reason}")


@lru_cache(maxsize=1024)
def _header(call: Call) -> np.ndarray:
    """The header of a message, with room for data behind it; not to be written to."""
    text = str(call).encode()[:_TEXT_BYTES]
    head = hashlib.blake2b(call.text.encode(), digest_size=_DIGEST_BYTES).digest() + len(text).to_bytes(2, "little") + text
    message = np.zeros(MESSAGE_BYTES, np.uint8)
    message[: len(head)] = np.frombuffer(head, np.uint8)
    return message


def _text(message: np.ndarray) -> str:
    """What a header says that its message is for."""
    head = message.tobytes()
    length = int.from_bytes(head[_DIGEST_BYTES : _DIGEST_BYTES + 2], "little")
    return head[_DIGEST_BYTES + 2 : _DIGEST_BYTES + 2 + length].decode(errors="replace")
