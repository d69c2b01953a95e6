"""What is shown of an error that nobody catches: the user's frames, without ours.

Python's ``sys.excepthook`` and ``threading.excepthook``, and IPython's handler, show errors whose innermost frames are of this package without any
frames of this package. ``settings.traceback = "full"`` (``HOLOGRAM_TRACEBACK=full``) shows all. Frames are hidden in what is shown alone: the
exception keeps them. A defect of ours (an error that is none of :mod:`hologram.errors`) is shown whole.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from hologram.support.user_lines import is_own

NOTE = "Hologram's own frames are hidden; HOLOGRAM_TRACEBACK=full shows them."
_installed: list[Any] = []


def shown(traceback: TracebackType | None) -> TracebackType | None:
    """``traceback`` without our frames."""
    frames = [t for t in _each(traceback) if not is_own(t.tb_frame.f_code.co_filename)]
    out: TracebackType | None = None
    for t in reversed(frames):
        out = TracebackType(out, t.tb_frame, t.tb_lasti, t.tb_lineno)
    return out


def _each(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def hides(error: BaseException) -> bool:
    """Whether our frames say nothing to the user: errors of ours that are no defects, and errors of the user's own code that we called."""
    from hologram.errors import HologramError, is_defect
    from hologram.settings import settings

    frames = [is_own(t.tb_frame.f_code.co_filename) for t in _each(error.__traceback__)]
    if settings.traceback == "full" or not any(frames) or all(frames) or is_defect(error):  # type: ignore[arg-type]
        return False
    return isinstance(error, HologramError) or not frames[-1]


def _chain(error: BaseException | None) -> list[BaseException]:
    """``error`` and those that are shown before it."""
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return found


def show_hidden(error: BaseException, show: Callable[[], Any]) -> None:
    """Calls ``show`` while ``error``, and those before it, have no frames of ours."""
    kept = [(e, e.__traceback__) for e in _chain(error) if hides(e)]
    noted = bool(kept) and not any(NOTE in getattr(e, "__notes__", ()) for e, _ in kept)
    try:
        for e, traceback in kept:
            e.__traceback__ = shown(traceback)
        if noted:
            error.add_note(NOTE)
        show()
    finally:
        for e, traceback in kept:
            e.__traceback__ = traceback
        if noted:
            error.__notes__.remove(NOTE)


def install() -> None:
    """Lets the interpreter's hooks hide our frames, where they are the interpreter's own."""
    if _installed:
        return
    _installed.append(True)
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _excepthook
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = _thread_excepthook
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None and not shell.custom_exceptions:
        from hologram.errors import HologramError

        shell.set_custom_exc((HologramError,), _in_ipython)


def _excepthook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    show_hidden(error, lambda: sys.__excepthook__(kind, error, error.__traceback__))


def _thread_excepthook(args: Any) -> None:
    if args.exc_value is None:
        threading.__excepthook__(args)
        return
    error = args.exc_value
    show_hidden(error, lambda: threading.__excepthook__(threading.ExceptHookArgs((args.exc_type, error, error.__traceback__, args.thread))))


def _in_ipython(shell: Any, kind: type[BaseException], error: BaseException, traceback: Any, tb_offset: int | None = None) -> None:
    show_hidden(error, lambda: shell.showtraceback((kind, error, error.__traceback__), tb_offset=tb_offset))
