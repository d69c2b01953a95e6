"""The bars of loops that run natively, as Python's thread sees them: the other side of :mod:`.code.progress`."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from hologram.backends.llvm.abi import BAR_LABEL_BYTES
from hologram.backends.native.code.records import BAR_ENDING, BAR_RUNNING, BAR_SLOTS, BAR_SPARE, CACHE_LINE
from hologram.backends.native.code.records import Bar as BarRecord
from hologram.backends.native_lang.language import offset_of, size_of
from hologram.settings import listeners, settings
from hologram.support import forks
from hologram.support.progress import bars

WORDS = size_of(BarRecord) // 8
STATE, SERIAL, TOTAL, THREAD, SHOWN, LABEL, DONE = (
    offset_of(BarRecord, name) // 8 for name in ("state", "serial", "total", "thread", "shown", "label", "done")
)


class NativeBar(bars.Bar):
    """A slot, for as long as one loop has it."""

    __slots__ = ("words", "serial")

    def __init__(self, words: Any) -> None:
        raw = ctypes.string_at(ctypes.addressof(words) + 8 * LABEL, BAR_LABEL_BYTES)
        total = words[TOTAL]
        super().__init__(raw.partition(b"\0")[0].decode(errors="ignore"), total if total >= 0 else None)
        self.words, self.serial, self.thread = words, words[SERIAL], words[THREAD]
        self.meter = bars.Meter(self.started, words[DONE])

    def at(self, now: float) -> bars.Progress:
        if self.words[SERIAL] == self.serial:  # else another loop counts there, and what was read last stands
            self.done = max(self.done, self.words[DONE])
        return super().at(now)

    def announce(self) -> bool:
        self.words[SHOWN] = 1
        with threading.Lock():  # a fence: the loop says that it ends before it looks whether it has been shown
            return bool(self.words[STATE] == BAR_RUNNING and self.words[SERIAL] == self.serial)


class Slots:
    """All slots. The memory, and what native code calls, live as long as this."""

    def __init__(self, record: Any) -> None:
        count = (BAR_SLOTS + 1) * WORDS
        self.memory = (ctypes.c_int64 * (count + CACHE_LINE // 8))()
        start = (ctypes.addressof(self.memory) + CACHE_LINE - 1) // CACHE_LINE * CACHE_LINE
        self.record, self.calls = record, (self.wake, self.finish)
        self.slots = [(ctypes.c_int64 * WORDS).from_address(start + 8 * WORDS * i) for i in range(BAR_SLOTS + 1)]
        self.slots[-1][STATE] = BAR_SPARE
        self.known: list[NativeBar | None] = [None] * BAR_SLOTS
        record.bars = start
        record.wake, record.finish = map(id, self.calls)
        self._follow()
        listeners.append(self._follow)
        forks.in_child(self._after_fork)
        bars.watch.sources.append(self)

    def _follow(self) -> None:
        self.record.off, self.record.quiet_until = int(settings.progress == "off"), 0

    def _after_fork(self) -> None:
        self.known = [None] * BAR_SLOTS
        self.record.watched = 0
        for slot in self.slots[:-1]:
            slot[STATE] = 0

    def set_watched(self, watched: bool) -> None:
        self.record.watched = int(watched)

    def bars(self) -> list[bars.Bar]:
        """Those of loops under way."""
        found: list[bars.Bar] = []
        for i, words in enumerate(self.slots[:-1]):
            if words[STATE] != BAR_RUNNING:
                continue
            bar = self.known[i]
            if bar is None or bar.serial != words[SERIAL]:
                bar = self.known[i] = NativeBar(words)
            found.append(bar)
        return found

    def wake(self, address: int) -> None:
        """A loop has found nobody watching."""
        try:
            bars.watch.wake()
        except Exception:  # a stream that is gone, say: no concern of the program's
            self.record.watched = 0

    def finish(self, address: int) -> None:
        """A loop whose bar has been shown ends."""
        i = (address - ctypes.addressof(self.slots[0])) // (8 * WORDS)
        bar = self.known[i]
        assert self.slots[i][STATE] == BAR_ENDING
        if bar is not None:
            bars.watch.finish(bar)
