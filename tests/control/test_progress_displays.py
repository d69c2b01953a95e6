"""How bars are drawn: what a line says, what stands on a terminal at the end, and the thread that draws."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.settings import override
from hologram.support import debug
from hologram.support.progress import bars, displays
from hologram.support.progress.displays import Plain, Rich, Terminal
from hologram.support.progress.meter import Meter, Progress, clock, spelled_rate
from tests.support.pages.displays import Recorder


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (-1, "0:00"), (59.9, "0:59"), (61, "1:01"), (3723, "1:02:03"), (90061, "1 day 1:01:01"), (1e30, "115740 days 17:46:40")],
)
def test_times(seconds: float, text: str) -> None:
    assert clock(seconds) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(0.25, "4.0 s/step"), (1, "1 steps/s"), (999, "999 steps/s"), (36_500, "36.5k steps/s"), (2e6, "2M steps/s"), (3e10, "30G steps/s")],
)
def test_rates(rate: float, text: str) -> None:
    assert spelled_rate(rate) == text


def test_what_a_bar_says() -> None:
    bar = Progress(1, "training", 450, 1000, 12.3, 36.5)
    assert bar.times == "450/1,000 · 0:12 · 0:15 left · 36.5 steps/s" and bar.line(200).startswith("training  45% |██████████▊ ")
    assert bar._replace(total=None).times == "450 steps · 0:12 · 36.5 steps/s"
    assert bar._replace(ended=True).times == "450/1,000 · 0:12 · stopped · 36.5 steps/s"
    assert bar._replace(done=1000, ended=True).times == "1,000/1,000 · 0:12 · 36.5 steps/s"
    assert bar._replace(stepless=True, detail="lowering").times == "12 s · lowering"


@given(
    st.text(max_size=60),
    st.none() | st.integers(0, 10**15),
    st.integers(0, 10**15),
    st.floats(0, 1e12),
    st.none() | st.floats(1e-12, 1e15),
    st.integers(1, 200),
)
@settings(max_examples=150, deadline=None)
def test_lines_fit(label: str, total: int | None, done: int, elapsed: float, rate: float | None, width: int) -> None:
    bar = Progress(1, label, done, total, elapsed, rate)
    assert len(bar.line(width)) <= width
    assert (bar.share is None) == (total is None) and 0 <= (bar.share or 0) <= 1
    if label.isascii():
        assert bar.line(width, ascii_only=True).isascii()


def test_the_rate_is_that_of_the_last_seconds() -> None:
    meter = Meter(0.0)
    assert meter.rate(0.0, 0) is None
    for second in range(1, 101):
        fast = meter.rate(float(second), second * 10)
    assert fast == pytest.approx(10)
    for second in range(101, 151):
        slow = meter.rate(float(second), 1000 + (second - 100) * 2)
    assert slow == pytest.approx(2)


class Tty(io.StringIO):
    """A stream that says it is a terminal; ``screen`` is what stands on it."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    @property
    def screen(self) -> list[str]:
        lines, row, column = [""], 0, 0
        for part in re.findall(r"\x1b\[\??\d*[A-Za-z]|\r|\n|[^\x1b\r\n]+", self.getvalue()):
            if part == "\r":
                column = 0
            elif part == "\n":
                row, column = row + 1, 0
                lines += [""] * (row + 1 - len(lines))
            elif part[0] != "\x1b":
                lines[row] = lines[row][:column].ljust(column) + part + lines[row][column + len(part) :]
                column += len(part)
            elif part[-1] == "A":
                row -= int(part[2:-1])
            elif part[-1] in "KJ":
                lines[row] = lines[row][:column] if part[2:-1] in ("", "0") else ""
                lines = lines[: row + 1] if part[-1] == "J" else lines
        return [line.rstrip() for line in lines if line.strip()]


A = Progress("a", "first", 1, 10, 1.0, 1.0)
B = Progress("b", "second", 2, 10, 1.0, 1.0)


@pytest.mark.parametrize("kind", [Terminal, Rich])
def test_what_stands_on_a_terminal(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if kind is Rich:
        pytest.importorskip("rich")
    stream = Tty()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    display = kind()
    display.draw([A])
    display.draw([A._replace(done=3), B])
    assert ["first" in stream.screen[0], "second" in stream.screen[1]] == [True, True] and len(stream.screen) == 2
    display.end(B._replace(done=10, ended=True, leaves=False))
    assert len(stream.screen) == 1 and "second" not in stream.screen[0]
    display.draw([A._replace(done=5)])
    display.end(A._replace(done=10, ended=True))
    (line,) = stream.screen
    assert "first" in line and "10/10" in line and "left" not in line
    display.draw([B])
    display.end(B._replace(ended=True))
    assert "stopped" in stream.screen[-1] and stream.getvalue().endswith(("\n", "\x1b[?25h"))
    assert stream.getvalue().count("\x1b[?25l") == stream.getvalue().count("\x1b[?25h"), "the cursor is shown again"


def test_plain_streams_get_few_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    display = Plain()
    for i in range(100):
        display.draw([A._replace(done=i)])
    display.end(A._replace(done=10, ended=True))
    display.end(B._replace(stepless=True, leaves=False))
    assert len(stream.getvalue().splitlines()) == 2 and "\x1b" not in stream.getvalue()


def test_who_wants_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for stream, found in ((Tty(), True), (io.StringIO(), False), (None, False)):
        monkeypatch.setattr(sys, "stderr", stream)
        for mode, want in (("auto", found), ("on", True), ("off", False)):
            with override(progress=mode):
                assert displays.wanted() == want
    monkeypatch.setattr(sys, "stderr", Tty())
    monkeypatch.setenv("TERM", "dumb")
    assert not displays.in_terminal() and isinstance(displays.choose(), Plain)


def test_a_thread_draws_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way: a compiled loop wakes the thread, which draws while the loop runs without the GIL, and ends when there is nothing to draw."""
    found = Recorder()
    monkeypatch.setattr(displays, "choose", lambda: found)
    monkeypatch.setattr(bars, "LOOP_DELAY", 0.0)
    monkeypatch.setattr(bars, "PERIOD_SECONDS", 0.001)
    monkeypatch.setattr(bars, "IDLE_LOOKS", 3)
    f = hg.jit(lambda x: hg.scan(lambda c, _: (hnp.sin(c) * 1.5 + 1, None), x, None, 200_000, progress="real")[0])
    want = f(np.ones(64, np.float32)).numpy()
    with override(progress="on"):
        for _ in range(20):
            assert f(np.ones(64, np.float32)).numpy().tobytes() == want.tobytes()
            if len({b.done for b in found.drawn}) > 2:
                break
    counts = [b.done for b in found.drawn]
    assert counts and max(counts) <= 200_000 and all(b.total == 200_000 for b in found.drawn)
    assert all((b.done, b.leaves) == (200_000, True) for b in found.ended)
    for _ in range(1000):
        if not any(t.name == "hologram-progress" for t in threading.enumerate()):
            break
        time.sleep(0.005)
    else:
        pytest.fail("the thread goes on")


def test_work_shows_its_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Recorder()
    monkeypatch.setattr(displays, "choose", lambda: found)
    monkeypatch.setattr(bars.Watch, "wake", lambda self: None)
    monkeypatch.setattr(bars, "WORK_DELAY", 0.0)
    with bars.work("compiling f"), debug.timed("code generation"):
        bars.watch.look()
    assert [(b.label, b.detail, b.stepless) for b in found.drawn] == [("compiling f", "code generation", True)]
    assert [b.leaves for b in found.ended] == [False]


def test_compilations_are_work(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(bars.Watch, "wake", lambda self: seen.extend(b.label for b in self.own.values()))

    def named(x: Any) -> Any:
        return x * 3.25

    hg.jit(named)(np.ones(3, np.float32))
    assert seen == ["compiling named"] and not bars.watch.own


def test_a_broken_display_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Recorder):
        def draw(self, shown: Any) -> None:
            raise OSError("no space")

    monkeypatch.setattr(displays, "choose", Broken)
    monkeypatch.setattr(bars, "LOOP_DELAY", 0.0)
    monkeypatch.setattr(bars.Watch, "wake", lambda self: None)
    for _ in hg.progress(range(3)):
        bars.watch.look()
    assert not bars.watch.drawn


def test_piped_output_stays_clean() -> None:
    program = """
import numpy as np, hologram as hg, hologram.numpy as hnp
from hologram.support.progress import bars
from tests.support.pages.displays import Recorder
bars.LOOP_DELAY = bars.WORK_DELAY = 0.0
print(float(hg.scan(lambda c, _: (hnp.sin(c) + 1, None), np.ones(64, np.float32), None, 300_000, progress="x")[0][0]) > 0)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("True\n", "")
