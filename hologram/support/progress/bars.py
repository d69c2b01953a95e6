"""Bars that are under way, and the thread that draws them.

A bar is drawn once it is older than its ``delay``: what is done sooner draws nothing, and starts nothing but a thread that sleeps. The thread ends
when there has been no bar for a while. Whoever ends a bar draws it for the last time itself, so nothing is drawn after it has returned.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from hologram.support import forks
from hologram.support.progress import displays
from hologram.support.progress.meter import Meter, Progress

PERIOD_SECONDS = 0.1  # between looks
LOOP_DELAY = 0.5  # seconds before the bar of a loop is drawn
WORK_DELAY = 2.0  # the same for work that has no steps, as compiling
IDLE_LOOKS = 50  # without a bar, after which the thread ends


class Bar:
    """A count of steps. Its owner sets ``done``; ``total`` is None where nobody knows it; ``thread`` is the thread whose loop it is."""

    __slots__ = ("label", "total", "done", "delay", "started", "stepless", "detail", "meter", "thread")

    def __init__(self, label: str, total: int | None = None, delay: float | None = None, stepless: bool = False) -> None:
        self.label, self.total, self.stepless = label, total, stepless
        self.delay = LOOP_DELAY if delay is None else delay
        self.thread = threading.get_ident()
        self.done, self.detail, self.started = 0, "", time.perf_counter()
        self.meter = Meter(self.started)

    def at(self, now: float) -> Progress:
        """The bar as it stands."""
        done = self.done
        return Progress(id(self), self.label, done, self.total, now - self.started, self.meter.rate(now, done), self.stepless, self.detail)

    def announce(self) -> bool:
        """Tells the owner that the bar is about to be drawn; False where it has ended meanwhile."""
        return True


class Source(Protocol):
    """Bars that are kept elsewhere."""

    def bars(self) -> list[Bar]:
        """Those under way: the same objects from look to look."""

    def set_watched(self, watched: bool) -> None:
        """Tells whether a thread looks."""


class Watch:
    """The bars of this process."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.sources: list[Source] = []
        self.own: dict[int, Bar] = {}
        self.thread: threading.Thread | None = None
        self.display: displays.Display | None = None
        self.drawn: dict[int, Bar] = {}

    # --- by those who count --------------------------------------------------------------------------------------------

    def add(self, bar: Bar) -> None:
        """From now on ``bar`` is drawn, if bars are."""
        self.own[id(bar)] = bar
        self.wake()

    def remove(self, bar: Bar) -> None:
        """The end of a bar."""
        self.own.pop(id(bar), None)
        self.finish(bar)

    def wake(self) -> None:
        """Starts the thread, if bars are to be drawn."""
        if not displays.wanted():
            return
        with self.lock:
            if self.thread is not None and self.thread.is_alive():
                return
            self.thread = threading.Thread(target=self._run, name="hologram-progress", daemon=True)
            for source in self.sources:
                source.set_watched(True)
            with contextlib.suppress(RuntimeError):  # no more threads, or the interpreter is about to exit
                self.thread.start()

    def finish(self, bar: Bar) -> None:
        """Draws ``bar`` for the last time, if it has been drawn. Those of inner loops vanish."""
        with self.lock:
            if self.drawn.pop(id(bar), None) is not None and self.display is not None:
                outer = any(b.thread == bar.thread and b.started < bar.started for b in self._bars() if b is not bar)
                self._safely(self.display.end, bar.at(time.perf_counter())._replace(ended=True, leaves=not (bar.stepless or outer)))

    # --- the thread ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        idle = 0
        while idle < IDLE_LOOKS or not self._sleep():
            idle = 0 if self.look() else idle + 1
            time.sleep(PERIOD_SECONDS)

    def _sleep(self) -> bool:
        """Gives up watching, unless a bar has come meanwhile."""
        with self.lock:
            for source in self.sources:
                source.set_watched(False)
        with self.lock:  # a fence between telling and looking
            if self._bars():
                for source in self.sources:
                    source.set_watched(True)
                return False
            self.thread = None
            return True

    def _bars(self) -> list[Bar]:
        return [*list(self.own.values()), *[b for source in self.sources for b in source.bars()]]

    def look(self) -> bool:
        """Draws the bars that are due; whether there are any bars."""
        with self.lock:
            bars, now = self._bars(), time.perf_counter()
            there = {id(b) for b in bars}
            for bar in [b for key, b in self.drawn.items() if key not in there]:
                self.finish(bar)
            due = [b for b in bars if now - b.started >= b.delay and (id(b) in self.drawn or b.announce())]
            if due:
                if not self.drawn:
                    self.display = self._safely(displays.choose)
                if self.display is not None:
                    self.drawn.update({id(b): b for b in due})
                    self._safely(self.display.draw, [b.at(now) for b in due])
            return bool(bars)

    def _safely(self, action: Callable[..., Any], *args: Any) -> Any:
        """What a stream or display raises concerns no program."""
        try:
            return action(*args)
        except Exception:
            self.display = None
            return None


watch = Watch()


class _Work(threading.local):
    bar: Bar | None = None  # of the work that a thread does


_work = _Work()


@forks.in_child
def _after_fork() -> None:
    """The thread, and what others had under way, is not there."""
    sources = watch.sources
    watch.__init__()  # type: ignore[misc]
    watch.sources = sources


@contextlib.contextmanager
def work(label: str) -> Iterator[Bar]:
    """Shows that something without steps is under way, once it has taken :data:`WORK_DELAY`."""
    bar, before = Bar(label, delay=WORK_DELAY, stepless=True), _work.bar
    try:
        watch.add(bar)
        _work.bar = bar
        yield bar
    finally:
        _work.bar = before
        watch.remove(bar)


def phase(name: str) -> None:
    """Says what the work of this thread does now."""
    if _work.bar is not None:
        _work.bar.detail = name


@contextlib.contextmanager
def counting(label: Sequence[str], total: int | None = None) -> Iterator[Bar]:
    """A bar for steps that are counted in ``done``, drawn if there is a label."""
    bar = Bar(label[0] if label else "", total)
    try:
        if label:
            watch.add(bar)
        yield bar
    finally:
        if label:
            watch.remove(bar)
