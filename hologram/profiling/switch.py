"""Programs with counters in the place of those without, as long as anybody wants them."""

from __future__ import annotations

import threading
from typing import Any

from hologram.backends.cpu.executable import profile_bound_calls
from hologram.settings import settings

_lock = threading.RLock()
_owners: list[Any] = []
_before: list[bool] = []  # settings.profile, before the first of them


def on(owner: Any) -> None:
    """``owner`` wants programs to count."""
    with _lock:
        _owners.append(owner)
        if len(_owners) == 1:
            _before[:] = [settings.profile]
            settings.profile = True
            profile_bound_calls(True)


def off(owner: Any) -> None:
    """``owner`` wants it no more; nothing where it did not."""
    with _lock:
        if not any(x is owner for x in _owners):
            return
        _owners[:] = [x for x in _owners if x is not owner]
        if not _owners:
            settings.profile = _before.pop()
            profile_bound_calls(settings.profile)


def is_on() -> bool:
    """Whether anybody wants programs to count."""
    return bool(_owners)
