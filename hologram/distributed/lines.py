"""Lines: connections between processes of one machine, for small messages.

In Gloo a thread of its own receives, and wakes the thread that waits: two switches a message, and on a core that ranks share two turns of the
scheduler. Here the thread that waits reads what comes. A message is its tag, its size and its bytes. The n-th that comes with a tag is the n-th that
was asked for with it. What nobody has asked for yet is kept.
"""

from __future__ import annotations

import contextlib
import select
import shutil
import socket
import struct
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import numpy as np

_HEADER = struct.Struct("<II")  # of a message: tag and bytes
_RANK = struct.Struct("<I")  # who has connected
_SECONDS = struct.Struct("@ll")  # of a time-out, and microseconds, as the kernel takes them
READ_BYTES = 1 << 17  # that are read at once: more than a message has


class Received:
    """A message that is wanted. ``data`` is where."""

    __slots__ = ("_line", "data", "has_come", "rank")

    def __init__(self, line: _Line, data: np.ndarray) -> None:
        self._line, self.data, self.rank, self.has_come = line, data, line.rank, False

    def wait(self, at_most: timedelta) -> None:
        """Until it has come. Raises RuntimeError where the other rank is gone, or late."""
        self._line.read_until(self, time.monotonic() + at_most.total_seconds())


class Sent:
    """A message that is on its way: it needs its memory no more."""

    __slots__ = ("data", "rank")

    def __init__(self, rank: int, data: np.ndarray) -> None:
        self.rank, self.data = rank, data

    def wait(self, at_most: timedelta) -> None:
        """Nothing is to be waited for."""


class _Line:
    """The connection to one rank."""

    def __init__(self, rank: int, connection: socket.socket, timeout: float) -> None:
        connection.settimeout(None)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _SECONDS.pack(int(timeout), int(timeout % 1 * 1e6)))
        self.rank, self.socket = rank, connection
        self._wanted: dict[int, deque[Received]] = {}  # by their tag
        self._early: dict[int, deque[bytes]] = {}
        self._room = memoryview(bytearray(READ_BYTES))  # what was read: the beginning of a message
        self._filled = 0  # bytes of it
        self._changed = threading.Condition(threading.Lock())  # guards the above
        self._has_reader = False

    def want(self, data: np.ndarray, tag: int) -> Received:
        """Asks for the next message of a tag."""
        received = Received(self, data)
        with self._changed:
            early = self._early.get(tag)
            if early:
                _fill(received, early.popleft())
            else:
                self._wanted.setdefault(tag, deque()).append(received)
        return received

    def read_until(self, received: Received, end: float) -> None:
        """Reads, or waits for another thread to read, until a message has come."""
        while not received.has_come:
            with self._changed:
                if self._has_reader and not received.has_come:
                    if not self._changed.wait(max(0.0, end - time.monotonic())):
                        raise RuntimeError("timed out")
                    continue
                self._has_reader = True
            try:
                if not received.has_come and not self._read():
                    raise RuntimeError("timed out")
            finally:
                with self._changed:
                    self._has_reader = False
                    self._changed.notify_all()

    def _read(self, flags: int = 0) -> bool:
        """Reads what comes next, and gives whether anything did."""
        try:
            nbytes = self.socket.recv_into(self._room[self._filled :], flags=flags)
        except BlockingIOError:
            return False
        except OSError as e:
            raise RuntimeError(str(e)) from None
        if not nbytes:
            raise RuntimeError("Connection closed by peer")
        with self._changed:
            self._deliver(self._filled + nbytes)
        return True

    def read_what_is_there(self) -> None:
        """Reads without waiting, where no other thread reads."""
        with self._changed:
            if self._has_reader:
                return
            self._has_reader = True
        try:
            self._read(socket.MSG_DONTWAIT)
        finally:
            with self._changed:
                self._has_reader = False
                self._changed.notify_all()

    def _deliver(self, filled: int) -> None:
        """Gives each message to who wants it, and keeps the beginning of one more."""
        at = 0
        while filled - at >= _HEADER.size:
            tag, nbytes = _HEADER.unpack_from(self._room, at)
            begin = at + _HEADER.size
            if filled - begin < nbytes:
                break
            at = begin + nbytes
            wanted = self._wanted.get(tag)
            if wanted:
                _fill(wanted.popleft(), self._room[begin:at])
            else:
                self._early.setdefault(tag, deque()).append(bytes(self._room[begin:at]))
        self._filled = filled - at
        if at and self._filled:
            self._room[: self._filled] = bytes(self._room[at:filled])

    def send(self, data: np.ndarray, tag: int) -> memoryview:
        """Sends what the kernel takes at once; the rest."""
        header = _HEADER.pack(tag, data.size)
        try:
            sent = self.socket.sendmsg([header, data.data], [], socket.MSG_DONTWAIT)
        except BlockingIOError:
            sent = 0
        except OSError as e:
            raise RuntimeError(str(e)) from None
        return memoryview(b"") if sent == len(header) + data.size else memoryview(header + data.tobytes())[sent:]

    def send_more(self, rest: memoryview) -> memoryview:
        """The same of what was left."""
        try:
            return rest[self.socket.send(rest, socket.MSG_DONTWAIT) :]
        except BlockingIOError:
            return rest
        except OSError as e:
            raise RuntimeError(str(e)) from None

    def leave(self) -> None:
        """Lets go this end. In a forked child the parent's stays."""
        self.socket.close()

    def close(self) -> None:
        """Ends waits of all threads, here and there."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        with self._changed:  # an interrupt may have left it
            self._has_reader = False
            self._changed.notify_all()


def _fill(received: Received, data: bytes | memoryview) -> None:
    received.data[...] = np.frombuffer(data, np.uint8)
    received.has_come = True


class Lines:
    """The lines of a rank, by the rank at the other end. One thread at a time sends."""

    def __init__(self, sockets: Mapping[int, socket.socket], timeout: float) -> None:
        self.timeout = timeout
        self._lines = {rank: _Line(rank, s, timeout) for rank, s in sockets.items()}

    def __contains__(self, rank: int) -> bool:
        return rank in self._lines

    def send(self, data: np.ndarray, rank: int, tag: int) -> Sent:
        """Raises RuntimeError where the rank is gone, or takes nothing for too long."""
        line = self._lines[rank]
        rest = line.send(data, tag)
        if rest:
            self._send_all(line, rest)
        return Sent(rank, data)

    def _send_all(self, line: _Line, rest: memoryview) -> None:
        """Others may be sending, too, and read only then: what comes is read meanwhile."""
        end = time.monotonic() + self.timeout
        by_file = {other.socket.fileno(): other for other in self._lines.values()}
        ready = select.poll()
        for other in self._lines.values():
            ready.register(other.socket, select.POLLIN | (select.POLLOUT if other is line else 0))
        while rest:
            found = ready.poll(max(0.0, 1e3 * (end - time.monotonic())))
            if not found:
                raise RuntimeError("timed out")
            for file, events in found:
                other = by_file[file]
                if events & select.POLLIN:
                    try:
                        other.read_what_is_there()
                    except RuntimeError:
                        if other is line:
                            raise
                        ready.unregister(other.socket)  # who waits for it is told
            rest = line.send_more(rest)

    def receive(self, data: np.ndarray, rank: int, tag: int) -> Received:
        """What waits for the next message of a tag."""
        return self._lines[rank].want(data, tag)

    def close(self) -> None:
        """Ends all lines: who waits for a message, here or there, is told."""
        for line in self._lines.values():
            line.close()

    def leave(self) -> None:
        """Lets go all lines, which no thread reads."""
        for line in self._lines.values():
            line.leave()


# --- coming together -------------------------------------------------------------------------------------------------


def machine() -> str:
    """What processes have in common that can reach each other's files and sockets. Empty where there are no such sockets."""
    if not hasattr(socket, "AF_UNIX"):
        return ""
    spaces = [str(p.readlink()) for p in map(Path, ("/proc/self/ns/mnt", "/proc/self/ns/net")) if p.is_symlink()]
    return " ".join([socket.gethostname(), *spaces])


class Listener:
    """Where ranks of this machine connect to, in a folder that only this user can read. ``path`` is empty where there are no such sockets."""

    def __init__(self, ranks: int) -> None:
        self.path = ""
        if hasattr(socket, "AF_UNIX"):
            self._folder = Path(tempfile.mkdtemp(prefix="hologram-"))
            self.path = str(self._folder / "line")
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.bind(self.path)
            self._socket.listen(ranks)

    def connect(self, rank: int, paths: Mapping[int, str], seconds: float) -> dict[int, socket.socket]:
        """The connections to all other ranks of ``paths``. All of them call it. Raises OSError where one does not."""
        found: dict[int, socket.socket] = {}
        if rank not in paths:
            return found
        for other in sorted(r for r in paths if r < rank):
            found[other] = socket.socket(socket.AF_UNIX)
            found[other].settimeout(seconds)
            found[other].connect(paths[other])
            found[other].sendall(_RANK.pack(rank))
        self._socket.settimeout(seconds)
        for _ in range(sum(r > rank for r in paths)):
            connection, _ = self._socket.accept()
            connection.settimeout(seconds)
            (other,) = _RANK.unpack(connection.recv(_RANK.size, socket.MSG_WAITALL))
            found[other] = connection
        return found

    def close(self) -> None:
        """Nobody connects any more."""
        if self.path:
            self._socket.close()
            shutil.rmtree(self._folder, ignore_errors=True)
