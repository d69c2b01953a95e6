"""What a block launches, with slots of the call in the place of addresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from hologram.backends.c.dialects import CUDA, SLOT_BIT
from hologram.backends.cuda.library import Gemm
from hologram.backends.device.driver import Launch, Place
from hologram.backends.device.steps import Call, Slots, Steps

MAX_LAUNCHES = 4096  # of a captured call
MAX_SLOTS = 1 << (63 - SLOT_BIT)
COPY = "hg_copy"
COPY_ITEMS = 256
COPY_TEXT = f"""\
{CUDA.prelude}
extern "C" __global__ void __launch_bounds__({COPY_ITEMS}, 1) {COPY}(const u64 *hg_table, u8 *to, const u8 *from, i64 nbytes) {{
  if (hg_table) {{
    to = (u8 *)hg_in_slot(to);
    from = (const u8 *)hg_in_slot(from);
  }}
  const i64 first = (i64)blockIdx.x * {COPY_ITEMS} + threadIdx.x, step = (i64)gridDim.x * {COPY_ITEMS};
  if (((u64)to | (u64)from | (u64)nbytes) % 4 == 0) {{
    for (i64 i = first; i < nbytes / 4; i += step) ((u32 *)to)[i] = ((const u32 *)from)[i];
  }} else {{
    for (i64 i = first; i < nbytes; i += step) to[i] = from[i];
  }}
}}
"""  # captured copies have other addresses in each call, as kernels have, and so are one


class NotRecordable(Exception):
    """A call does other things than launches and copies within the device, or too many of them."""


class Launched(NamedTuple):
    """A launch: ``arguments`` are its operands, each a slot and an offset as ``hg_in_slot`` reads them, and integers."""

    kernel: Any
    groups: int
    items: int
    arguments: list[int]


class Recording(NamedTuple):
    """``launches`` in order; ``memories``: bytes of what the call takes on its way. Slots are those that the call is given, then its workspace, then
    these."""

    launches: list[Launched]
    memories: list[int]


class _Slot(NamedTuple):
    number: int


class _Recorder:
    """In the place of a call's queue, and of its work: notes launches and refuses what else there is. Handles are numbers of slots."""

    def __init__(self, copy: Callable[[], Any], slots: int) -> None:
        self.kernel, self.workspace = copy, _Slot(slots)
        self.made = Recording([], [])

    @property
    def queue(self) -> _Recorder:
        return self

    def memory(self, nbytes: int, what: Any) -> Any:
        self.made.memories.append(nbytes)
        return _Memory(_Slot(self.workspace.number + len(self.made.memories)))

    def launch(self, launch: Launch, slots: Sequence[Place], workspace: _Slot) -> None:
        if isinstance(launch.kernel, Gemm):
            raise NotRecordable("a library has the addresses of its operands at once")
        places = [*launch.at(slots), *([(workspace, 0)] if launch.workspace else [])]
        given = [_place(p) for p in places]
        self._add(launch.kernel, launch.groups, launch.items, [*given[: len(launch.operands)], *launch.integers, *given[len(launch.operands) :]])

    def launch_all(self, launches: Sequence[Launch], slots: Sequence[Place], workspace: _Slot) -> None:
        for x in launches:
            self.launch(x, slots, workspace)

    def copy(self, to: Place, source: Place, nbytes: int) -> None:
        groups = max(1, min(1024, nbytes // (16 * COPY_ITEMS)))
        self._add(self.kernel(), groups, COPY_ITEMS, [_place(to), _place(source), nbytes])

    def _add(self, kernel: Any, groups: int, items: int, arguments: list[int]) -> None:
        if len(self.made.launches) == MAX_LAUNCHES:
            raise NotRecordable(f"more than {MAX_LAUNCHES:,} launches")
        self.made.launches.append(Launched(kernel, groups, items, arguments))

    def __getattr__(self, name: str) -> NoReturn:
        raise NotRecordable(name)


class _Memory(NamedTuple):
    """In the place of :class:`hologram.backends.device.memory.Memory`."""

    handle: _Slot


def _place(place: Place) -> int:
    slot, offset = place
    return int(slot.number) << SLOT_BIT | offset


def _inline(steps: Steps, call: Call, slots: Slots) -> None:
    steps.run(call, slots)


def recorded(steps: Steps, slots: int, copy: Callable[[], Any]) -> Recording:
    """What steps launch, of ``slots`` slots; ``copy`` gives the kernel of :data:`COPY_TEXT`, where there are copies. Raises NotRecordable."""
    recorder: Any = _Recorder(copy, slots)
    steps.run(Call(recorder, recorder.workspace, _inline), [(_Slot(i), 0) for i in range(slots)])
    if slots + 1 + len(recorder.made.memories) > MAX_SLOTS:
        raise NotRecordable(f"more than {MAX_SLOTS:,} slots")
    made: Recording = recorder.made
    return made
