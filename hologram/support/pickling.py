"""Pickling functions that were made of functions: by the name that a module gives them, or as what they are made of."""

from __future__ import annotations

import sys
from typing import Any

_BY_VALUE = ("cloudpickle", "dill")  # picklers that take what ``__main__`` holds along, for processes with another ``__main__``


def by_name(made: Any, function: Any) -> tuple[Any, ...] | None:
    """What ``__reduce__`` gives for ``made``, of ``function``, where that is what the function's module has under its name: a decorated function.

    None where it is not: ``made`` is to be pickled as what it is made of.
    """
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if module not in sys.modules or name is None or (module == "__main__" and _is_by_value()):
        return None
    try:
        return (_named, (module, name)) if _named(module, name) is made else None
    except AttributeError:
        return None


def _named(module: str, name: str) -> Any:
    __import__(module)
    found: Any = sys.modules[module]
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _is_by_value() -> bool:
    """Whether one of these picklers is at work. Nothing but the frames tells: ``__reduce__`` is not told who asks."""
    frame = sys._getframe()
    while frame is not None:
        if any(part in _BY_VALUE for part in frame.f_globals.get("__name__", "").split(".")):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
