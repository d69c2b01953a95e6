"""What a block launches, with slots of the call in the place of addresses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from hologram.backends.common.driver import Queue
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


class _Recorder(Queue):
    """A queue that notes launches. Handles are numbers of slots."""

    def __init__(self, like: Queue) -> None:
        super().__init__(like.device)
        self.launches: list[Launched] = []

    def launch(self, kernel: Any, groups: int, items: int, places: Sequence[tuple[Any, int, int]], integers: Sequence[int], workspace: Any) -> None:
        where = [(handle, offset) for handle, offset, _ in places]
        self.launches.append(Launched(kernel, groups, items, where, list(integers), workspace is not None))

    def _refuse(self, *of: Any) -> NoReturn:
        raise NotRecordable

    _launch = _write = _read = _copy = write = read = copy = record = wait_for = finish = _refuse


class _Work:
    """In the place of the work of a call."""

    def __init__(self, queue: _Recorder) -> None:
        self.queue = queue

    def memory(self, *of: Any) -> NoReturn:
        raise NotRecordable

    write_array = memory


def recorded(block: Block, queue: Queue, slots: int) -> list[Launched]:
    """The launches of a block of ``slots`` slots. Raises NotRecordable where it does anything else, or reads what is computed."""
    recorder = _Recorder(queue)
    block.run(Call(_Work(recorder), WORKSPACE), [(i, 0) for i in range(slots)])  # type: ignore[arg-type]
    return recorder.launches
