"""Errors that nobody catches are shown with the user's frames, and without ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.support import tracebacks

PROGRAM = """
import threading
import hologram as hg, hologram.numpy as hnp

@hg.jit
def model(x):
    def step(c, y):
        {what}
        return c, y
    return hg.scan(step, x, x)

def main():
    model(hnp.ones(3))

{call}
"""
TRACED, MINE = "hnp.ones(3) + hnp.ones(4)", "raise ValueError('mine')"


def printed(tmp_path: Path, what: str, call: str = "main()", **environment: str) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.format(what=what, call=call))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=os.environ | environment)
    return done.stderr


@pytest.mark.parametrize("call", ["main()", "t = threading.Thread(target=main); t.start(); t.join()"])
@pytest.mark.parametrize(("what", "message"), [(TRACED, "ShapeError: add: shapes [3] and [4]"), (MINE, "ValueError: mine")])
def test_users_frames_alone_are_shown(tmp_path: Path, what: str, message: str, call: str) -> None:
    text = printed(tmp_path, what, call)
    package = os.path.dirname(hg.__file__)
    assert message in text and package not in text and tracebacks.NOTE in text
    assert [f", in {f}\n" in text for f in ("main", "model", "step")] == [True] * 3


def test_all_frames_are_shown_where_asked_for(tmp_path: Path) -> None:
    text = printed(tmp_path, TRACED, HOLOGRAM_TRACEBACK="full")
    assert os.path.dirname(hg.__file__) in text and tracebacks.NOTE not in text


def fails() -> BaseException:
    with pytest.raises(hg.errors.ShapeError) as e:
        hg.jit(lambda x: x + hnp.ones(4))(hnp.ones(3))
    return e.value


def test_the_exception_keeps_its_frames() -> None:
    error = fails()
    before = error.__traceback__
    assert tracebacks.hides(error)
    found: list[bool] = []
    tracebacks.show_hidden(error, lambda: found.append(error.__traceback__ is before or tracebacks.NOTE not in error.__notes__))
    assert found == [False] and error.__traceback__ is before and tracebacks.NOTE not in getattr(error, "__notes__", ())


def test_defects_and_errors_without_our_frames_are_shown_whole() -> None:
    with pytest.raises(ZeroDivisionError) as e:
        print(1 / 0)
    assert not tracebacks.hides(e.value)
    error = fails()
    assert not tracebacks.hides(hg.errors.CompileError("a kernel").with_traceback(error.__traceback__))
    assert not tracebacks.hides(KeyError("a defect").with_traceback(error.__traceback__))  # raised by our own line
    with hg.settings.override(traceback="full"):
        assert not tracebacks.hides(error)
    with pytest.raises(ValueError, match="traceback is short or full"):
        hg.settings.traceback = "long"
