"""The programs of lazily recorded expressions that are kept: the latest, within ``settings.program_limit`` bytes."""

from __future__ import annotations

from typing import Any

from hologram.settings import settings
from hologram.support.lru_cache import Recent

PROGRAM_LIMIT = 1024

programs = Recent(PROGRAM_LIMIT, lambda: settings.program_limit)


def keep(key: Any, executable: Any) -> None:
    """Remembers the program for ``key``."""
    programs.put(key, executable, executable.nbytes)
