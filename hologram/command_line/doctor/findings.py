"""What a check finds."""

from __future__ import annotations

import enum
from dataclasses import asdict, dataclass
from typing import Any


class Level(enum.IntEnum):
    """How bad it is, worse levels being greater."""

    OK = 0
    UNKNOWN = 1  # this system does not tell
    NOTE = 2  # worth knowing; may be as it should be
    WARNING = 3  # makes programs slow
    PROBLEM = 4  # does not work

    def __str__(self) -> str:
        return self.name.lower()

    def counted(self, n: int) -> str:
        """The name, in the plural where there are several."""
        return f"{self}s" if n > 1 and self >= Level.NOTE else str(self)

    @property
    def status(self) -> int:
        """The exit status of a process that found this as the worst."""
        return max(0, self - Level.NOTE)


@dataclass(frozen=True)
class Finding:
    """What was ``seen``, ``why`` it matters, and what to do. ``check`` is the name of the check, which the examination fills in."""

    level: Level
    seen: str
    why: str = ""
    advice: str = ""
    check: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"level": str(self.level)}


def ok(seen: str) -> Finding:
    return Finding(Level.OK, seen)


def unknown(seen: str) -> Finding:
    return Finding(Level.UNKNOWN, seen)


def note(seen: str, why: str = "", advice: str = "") -> Finding:
    return Finding(Level.NOTE, seen, why, advice)


def warning(seen: str, why: str, advice: str = "") -> Finding:
    return Finding(Level.WARNING, seen, why, advice)


def problem(seen: str, why: str, advice: str = "") -> Finding:
    return Finding(Level.PROBLEM, seen, why, advice)
