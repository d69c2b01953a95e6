"""Ctrl-C while the main thread waits inside of the engine's native code, where Python cannot act on it: another thread is told.

Python writes the numbers of signals that it gets to a socket (``signal.set_wakeup_fd``), whatever the main thread is at. The watch over collectives
reads them.
"""

from __future__ import annotations

import contextlib
import select
import signal
import socket
import threading
import time

from hologram.support.forks import in_child

_NONE = -1  # no file that is told of signals
_WAKE = 0  # no signal has this number
_MOST = 4096  # signals that are read at once
_told = [_NONE]  # the file of ours that is told


class Interrupts:
    """Made in the main thread it is told of signals, unless something else in the process is; made in another it is told of none."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        for s in (self._reader, self._writer):
            s.setblocking(False)
        if threading.current_thread() is threading.main_thread():
            before = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
            if before == _NONE:
                _told[0] = self._writer.fileno()
            else:
                signal.set_wakeup_fd(before)

    def wait(self, seconds: float) -> bool:
        """Waits until Ctrl-C is to end the program, or so long, and gives whether it was Ctrl-C. A handler of the user's own may go on."""
        end = time.monotonic() + seconds
        while select.select([self._reader], [], [], max(0.0, end - time.monotonic()))[0]:
            signals = self._reader.recv(_MOST)
            if _WAKE in signals:
                return False
            if signal.SIGINT in signals and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                return True
        return False

    def end(self) -> None:
        """Is told of nothing more, and ends a wait of another thread."""
        _be_told_no_more()
        with contextlib.suppress(OSError):
            self._writer.send(bytes([_WAKE]))

    def __enter__(self) -> Interrupts:
        return self

    def __exit__(self, *error: object) -> None:
        self._reader.close()
        self._writer.close()


@in_child
def _be_told_no_more() -> None:
    """Also in a forked child, whose signals are not its parent's."""
    if _told[0] != _NONE and threading.current_thread() is threading.main_thread():
        before = signal.set_wakeup_fd(_NONE)
        if before != _told[0]:
            signal.set_wakeup_fd(before)
        _told[0] = _NONE
