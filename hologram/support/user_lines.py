"""Which of the user's lines an op or an error comes from."""

from __future__ import annotations

import os
import sys
from types import FrameType, TracebackType

from hologram.errors import HologramError

# of this package and of those beside it that are made of it: no user's lines
_PACKAGES = tuple(os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + more + os.sep for more in ("", "_torch", "_ffi"))


def is_own(filename: str) -> bool:
    """Whether a file is one of the packages'."""
    return filename.startswith(_PACKAGES)


def user_frame() -> FrameType | None:
    """The innermost frame outside the packages."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGES):
        frame = frame.f_back
    return frame


def user_place() -> tuple[str, int] | None:
    """The file and line of :func:`user_frame`."""
    frame = user_frame()
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else None


def at_line() -> str:
    """`` at file.py:12``, of :func:`user_frame`, or nothing where no user's frame is left."""
    place = user_place()
    return "" if place is None else f" at {os.path.basename(place[0])}:{place[1]}"


def user_line(error: BaseException) -> str:
    """The innermost line outside the packages that ``error`` came through."""
    place, traceback = "", error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_filename.startswith(_PACKAGES):
            place = f"{code.co_filename}:{traceback.tb_lineno}, in {code.co_name}"
        traceback = traceback.tb_next
    return place


def user_traceback(error: BaseException) -> TracebackType | None:
    """The traceback of ``error`` from its first line outside the packages, and outside of the interpreter's own loading of modules, on; None where
    it came through none."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename.startswith((*_PACKAGES, "<frozen ")):
        traceback = traceback.tb_next
    return traceback


def where() -> str:
    """`` (at file.py:12, in f)``, or nothing where no user's frame is left."""
    frame = user_frame()
    if frame is None:
        return ""
    code = frame.f_code
    return f" (at {code.co_filename}:{frame.f_lineno}, in {code.co_name})"


def located(error: HologramError) -> HologramError:
    """``error`` with the user's line at the end of its message; once."""
    text = str(error)
    if " (at " in text:
        return error
    return type(error)(text + where())
