"""What a bar says: the share that is done, elapsed and remaining time, and the rate, as plain text."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

WINDOW_SECONDS = 15.0  # over which the rate is taken
BAR_CELLS = 24


class Progress(NamedTuple):
    """A bar at one time. ``key`` tells it from others; ``total`` is None where nobody knows; ``rate`` is steps a second, None before it is known;
    ``stepless``: nothing is counted; ``detail`` says what is done now; ``ended``: this is the last of it;
    ``leaves``: it stays."""

    key: Any
    label: str
    done: int
    total: int | None
    elapsed: float
    rate: float | None = None
    stepless: bool = False
    detail: str = ""
    ended: bool = False
    leaves: bool = True

    @property
    def share(self) -> float | None:
        """The share that is done, from 0 to 1; None where the total is not known."""
        return None if self.total is None else min(1.0, self.done / self.total) if self.total else 1.0

    @property
    def remaining(self) -> float | None:
        """Seconds that are left, at the present rate; None where that cannot be told."""
        return None if self.total is None or not self.rate else max(0, self.total - self.done) / self.rate

    @property
    def times(self) -> str:
        """Counts, times and rate: ``450/1,000 · 0:12 · 0:15 left · 36.5 steps/s``."""
        if self.stepless:
            return f"{self.elapsed:.0f} s{' · ' * bool(self.detail)}{self.detail}"
        counts = f"{self.done:,}" if self.total is None else f"{self.done:,}/{self.total:,}"
        parts = [counts if self.total is not None else f"{counts} steps", clock(self.elapsed)]
        if self.total is not None and self.done < self.total:
            parts += ["stopped"] if self.ended else [] if self.remaining is None else [f"{clock(self.remaining)} left"]
        return " · ".join([*parts, *([spelled_rate(self.rate)] if self.rate else [])])

    def line(self, width: int, ascii_only: bool = False) -> str:
        """One line of at most ``width`` characters."""
        share, sep = self.share, "-" if ascii_only else "·"
        middle = "" if share is None else f" {int(100 * share):3d}% |{_cells(share, ascii_only)}|"
        whole = f"{self.label}{middle} {self.times}".replace("·", sep)
        if len(whole) > width:
            whole = f"{self.label}{'' if share is None else f' {int(100 * share)}%'} {self.times}".replace("·", sep)
        return whole[: max(1, width)]


class Meter:
    """The rate of one bar, over the last :data:`WINDOW_SECONDS`."""

    __slots__ = ("_samples",)

    def __init__(self, now: float, done: int = 0) -> None:
        self._samples: deque[tuple[float, int]] = deque([(now, done)])

    def rate(self, now: float, done: int) -> float | None:
        """Steps a second; None while there is none to tell."""
        samples = self._samples
        samples.append((now, done))
        while len(samples) > 2 and now - samples[1][0] > WINDOW_SECONDS:
            samples.popleft()
        then, before = samples[0]
        return (done - before) / (now - then) if now > then and done > before else None


def clock(seconds: float) -> str:
    """A time: ``0:12``, ``1:02:03``, ``3 days 1:02:03``."""
    whole = int(min(max(seconds, 0.0), 1e10))
    days, rest = divmod(whole, 86400)
    hours, rest = divmod(rest, 3600)
    text = f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours or days else f"{rest // 60}:{rest % 60:02d}"
    return f"{days} day{'s' * (days != 1)} {text}" if days else text


def spelled_rate(rate: float) -> str:
    """Steps a second, or seconds a step where these are longer."""
    if rate < 1:
        return f"{1 / rate:.1f} s/step"
    for limit, unit in ((1e3, ""), (1e6, "k"), (1e9, "M")):
        if rate < limit:
            return f"{rate / (limit / 1e3):.3g}{unit} steps/s"
    return f"{rate / 1e9:.3g}G steps/s"


def _cells(share: float, ascii_only: bool) -> str:
    """The bar itself, in eighths of cells."""
    full, part = divmod(int(share * BAR_CELLS * 8), 8)
    if ascii_only:
        return ("#" * full).ljust(BAR_CELLS)
    return ("█" * full + ("▏▎▍▌▋▊▉"[part - 1] if part else "")).ljust(BAR_CELLS)
