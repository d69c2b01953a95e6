"""A display of progress bars that notes what it is told."""

from __future__ import annotations

from typing import Any

from hologram.support.progress.meter import Progress


class Recorder:
    """A display that notes what it is told."""

    def __init__(self) -> None:
        self.drawn: list[Progress] = []
        self.ended: list[Progress] = []

    def draw(self, shown: Any) -> None:
        self.drawn += shown

    def end(self, bar: Progress) -> None:
        self.ended.append(bar)

    def counts(self, label: str) -> list[int]:
        return [b.done for b in self.drawn if b.label == label]

    @property
    def ends(self) -> list[tuple[str, int, int | None]]:
        return [(b.label, b.done, b.total) for b in self.ended]
