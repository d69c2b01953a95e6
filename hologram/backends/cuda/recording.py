"""What a block launches, with slots of the call in the place of addresses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from hologram.backends.common.steps import Block, Call

WORKSPACE = -2  # the slot of the workspace, before that of 0


class NotRecordable(Exception):
    """A call does other things than launches."""


class Launched(NamedTuple):
    """A launch: ``places`` are slots and offsets in bytes; ``workspace``: whether the kernel takes one."""

    kernel: Any
    groups: int
    items: int
    places: list[tuple[int, int]]
    integers: list[int]
    workspace: bool


class _Recorder:
    """In the place of a call's queue, and of its work: notes launches and refuses the rest. Handles are numbers of slots."""

    def __init__(self) -> None:
        self.launches: list[Launched] = []

    @property
    def queue(self) -> _Recorder:
        return self

    def launch(self, kernel: Any, groups: int, items: int, places: Sequence[tuple[Any, int, int]], integers: Sequence[int], workspace: Any) -> None:
        where = [(handle, offset) for handle, offset, _ in places]
        self.launches.append(Launched(kernel, groups, items, where, list(integers), workspace is not None))

    def __getattr__(self, name: str) -> NoReturn:
        raise NotRecordable(name)


def recorded(block: Block, slots: int) -> list[Launched]:
    """The launches of a block of ``slots`` slots. Raises NotRecordable where it does anything else, or reads what is computed."""
    recorder: Any = _Recorder()
    block.run(Call(recorder, WORKSPACE), [(i, 0) for i in range(slots)])
    return recorder.launches
