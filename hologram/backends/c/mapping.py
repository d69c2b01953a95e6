"""How a kernel is laid on work-groups and work-items.

A *group kernel* runs a chunk of its parallel loop by a work-group: statements outside of lanes are run by every item alike, stores there by the first
alone, iterations of lanes are dealt out to the items in turn. An *item kernel*, which has no lanes and no scratch, runs a chunk by one item.
Groups, or items, take chunks a whole grid apart, so any number of them will do.

Scratch that fits is memory that the group shares, else a part of a workspace, one for each group.
"""

from __future__ import annotations

from hologram.backends.c.accumulate import Monoid
from hologram.backends.c.scalars import Scalars
from hologram.graph.kernel_ir import Ins, Kernel, Loop
from hologram.primitives.reductions import LANES, PAGE

ITEM_KERNEL = 64  # items of a group where each has a chunk of its own
MOST_ITEMS = 256
MOST_PAGES = 8  # that a group reduces at one time
LOCAL_BYTES = 32 * 1024  # every device has as much memory to share


class Mapping:
    """``items`` of a group; ``by_item`` for item kernels; bytes of shared scratch, and of a group's workspace."""

    __slots__ = ("items", "by_item", "in_workspace", "workspace", "local")

    def __init__(self, kernel: Kernel, scalars: Scalars) -> None:
        lanes = [s for s in kernel.walk() if isinstance(s, Loop) and s.kind == "lanes"]
        self.by_item = not lanes and not kernel.scratch
        self.items = ITEM_KERNEL if self.by_item else max([_items(s) for s in lanes] or [LANES])
        scratch = sum(-(-int(b.size) * b.dtype.itemsize // 64) * 64 for b in kernel.scratch)
        self.local = sum(_partials(s, self.items, scalars) for s in lanes)
        self.in_workspace = scratch + self.local > LOCAL_BYTES
        self.workspace = scratch if self.in_workspace else 0
        self.local += 0 if self.in_workspace else scratch


def scans(loop: Loop) -> bool:
    return any(isinstance(s, Ins) and s.op == "scan" for s in loop.body)


def _items(loop: Loop) -> int:
    """Items that a loop of lanes has use for: in row form 32 a page."""
    extent = loop.extent
    if loop.accs and not scans(loop):
        pages = -(-extent // PAGE) if isinstance(extent, int) else MOST_PAGES
        return LANES * min(MOST_PAGES, _power_of_two(pages))
    return min(MOST_ITEMS, max(LANES, _power_of_two(extent))) if isinstance(extent, int) else MOST_ITEMS


def _power_of_two(n: int) -> int:
    """The least one that is not below ``n``."""
    return 1 << max(0, n - 1).bit_length()


def _partials(loop: Loop, items: int, scalars: Scalars) -> int:
    """Bytes of shared memory in which partial results of a loop are combined, at most."""
    sizes = [d.itemsize for a in loop.accs for d in Monoid(a, scalars).types]
    return sum(sizes) * (items + 2 * LANES)
