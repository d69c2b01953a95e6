"""What a block launches, with slots of the call in the place of addresses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from hologram.backends.c.dialects import CUDA
from hologram.backends.common.driver import Place
from hologram.backends.common.steps import Block, Call
from hologram.backends.cuda.library import Gemm

WORKSPACE = -2  # the slot of the workspace, before that of 0


COPY = "hg_copy"
COPY_ITEMS = 256
COPY_TEXT = f"""\
{CUDA.prelude}
extern "C" __global__ void __launch_bounds__({COPY_ITEMS}, 1) {COPY}(const u64 *hg_table, u8 *to, const u8 *from, i64 nbytes) {{
  if (hg_table) {{
    to = (u8 *)hg_table[0];
    from = (const u8 *)hg_table[1];
    nbytes = (i64)hg_table[2];
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
    """A call does other things than launches and copies within the device."""


class Launched(NamedTuple):
    """A launch: ``places`` are slots and offsets in bytes; ``workspace``: whether the kernel takes one."""

    kernel: Any
    groups: int
    items: int
    places: list[tuple[int, int]]
    integers: list[int]
    workspace: bool = False


class Recording(NamedTuple):
    """``launches`` in order; ``memories``: bytes of what the call takes on its way, whose slots follow those that it is given."""

    launches: list[Launched]
    memories: list[int]


class _Slot(NamedTuple):
    handle: int


class _Recorder:
    """In the place of a call's queue, and of its work: notes launches and refuses what else there is. Handles are numbers of slots."""

    def __init__(self, copy: Any, slots: int) -> None:
        self.kernel, self.slots = copy, slots
        self.made = Recording([], [])

    @property
    def queue(self) -> _Recorder:
        return self

    def memory(self, nbytes: int, what: Any) -> _Slot:
        self.made.memories.append(nbytes)
        return _Slot(self.slots + len(self.made.memories) - 1)

    def launch(self, kernel: Any, groups: int, items: int, places: Sequence[tuple[Any, int, int]], integers: Sequence[int], workspace: Any) -> None:
        if isinstance(kernel, Gemm):
            raise NotRecordable("a library has the addresses of its operands at once")
        where = [(handle, offset) for handle, offset, _ in places]
        self.made.launches.append(Launched(kernel, groups, items, where, list(integers), workspace is not None))

    def copy(self, to: Place, source: Place, nbytes: int) -> None:
        groups = max(1, min(1024, nbytes // (16 * COPY_ITEMS)))
        self.made.launches.append(Launched(self.kernel, groups, COPY_ITEMS, [to, source], [nbytes]))

    def __getattr__(self, name: str) -> NoReturn:
        raise NotRecordable(name)


def recorded(block: Block, slots: int, copy: Any) -> Recording:
    """What a block of ``slots`` slots launches; ``copy`` is the kernel of :data:`COPY_TEXT`. Raises NotRecordable where it does anything else."""
    recorder: Any = _Recorder(copy, slots)
    block.run(Call(recorder, WORKSPACE), [(i, 0) for i in range(slots)])
    return recorder.made
