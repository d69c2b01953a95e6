"""What an executor is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .run import Run


@dataclass(frozen=True)
class Executor:
    name: str
    share: float  # of the cases that it runs
    run: Callable[[Run], None]


def executor(share: float) -> Callable[[Callable[[Run], None]], Executor]:
    return lambda f: Executor(f.__name__.replace("_", " "), share, f)
