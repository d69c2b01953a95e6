"""How a kernel is laid on work-groups and work-items.

- A *group kernel* runs an iteration of its parallel loop by a work-group: statements outside of lanes are run by every item alike, stores there by
  the first alone, iterations of lanes are dealt out to the items in turn, several neighbours at a time where memory allows
  (:mod:`.analysis.vectors`).
- An *element kernel* has lanes that reduce nothing and wait for nobody. Where a row has work for fewer items than a group has, a group has several
  parallel iterations, each by as many items as it has work for.
- A *subgroup kernel* has rows of a page at most, which 32 items reduce. On devices whose subgroups (warps) of 32 run as one, a parallel iteration is
  a subgroup's, and a group has several: they need no barrier of the group.
  Rows of kernels whose loops share a copy of the row are *staged* (:mod:`.analysis.staged_rows`): a group takes one, with as many items as its
  elements want, unless memory has room for several subgroups' rows.
- A *product* has rows and columns for lanes: see :mod:`.shared_memory_gemm`.
- A *kernel of tiles* has scratch, and products or other nests of lanes among its statements: see :mod:`.analysis.tiles`.
- An *item kernel*, which has no lanes and no scratch, runs a parallel iteration by one item.

Groups, subgroups or items take iterations a whole grid apart, so any number of them will do.

Scratch that fits is memory that the group shares, else a part of a workspace, one for each parallel iteration under way.
"""

from __future__ import annotations

from hologram.backends.c.accumulators import Monoid
from hologram.backends.c.analysis.accesses import in_place, loaded, stored
from hologram.backends.c.analysis.block_prefetch import block_prefetch_of
from hologram.backends.c.analysis.gemm import ITEMS, Product, in_shared_memory, product_of, resident
from hologram.backends.c.analysis.matrix_units import f16_panel_bytes, is_f16, mma_tiles_of, on_matrix_units, products_of
from hologram.backends.c.analysis.scans import find_turns, neighbours
from hologram.backends.c.analysis.tiles import shared_bytes, tiles_of
from hologram.backends.c.analysis.vectors import ACCESS_BYTES, vectors
from hologram.backends.c.scalars import Scalars
from hologram.graph.kernel.ir import Buffer, Kernel, Loop
from hologram.ir.instruction import Ins
from hologram.primitives.reductions import GROUP, LANES, PAGE
from hologram.settings import settings
from hologram.support.precision import TF32

ITEM_KERNEL = 64  # items of a group where each has a parallel iteration of its own
MAX_ITEMS = 256
MAX_PAGES = 8  # that a group reduces at one time
MIN_ROWS = 4  # staged rows that a group of subgroups has; where memory holds fewer, a group takes a row


class Mapping:
    """``items`` of a group, ``iterations`` that a group has under way at one time, and ``width``, the items that share a parallel iteration.

    ``by_item``: a parallel iteration is an item's; ``by_subgroup``: it is a subgroup's. ``local``: bytes of memory that a group shares, at most.
    ``workspace``: bytes of a group's workspace, 0 where scratch is shared memory. ``product``: the one that the kernel is, ``on_matrix_units`` or
    not. ``tiles``: the nests of lanes in lanes, if the kernel has scratch and such; ``prefetch``: which of their factors are brought a block ahead.
    ``resident``: groups that a unit should have registers for. ``dynamic``: bytes of shared memory that the launch has to supply. ``staged``:
    :mod:`.analysis.staged_rows` has rewritten the kernel, so that its group has as many items as its elements want, not as reduce.
    """

    __slots__ = (
        "items", "width", "iterations", "by_item", "by_subgroup", "in_workspace", "workspace", "local", "product", "on_matrix_units", "resident",
        "dynamic", "tiles", "prefetch",
    )  # fmt: skip

    def __init__(self, kernel: Kernel, scalars: Scalars, precision: str = "exact", staged: bool = False) -> None:
        lanes = [s for s in kernel.walk() if isinstance(s, Loop) and s.kind == "lanes"]
        self.resident, self.dynamic, most = 1, 0, scalars.dialect.local_bytes
        product = product_of(kernel)
        units, tf32 = scalars.dialect.matrix_units and precision != "exact", precision == TF32 or settings.tf32
        by_units = on_matrix_units(product, tf32) if product is not None and units else None
        self.on_matrix_units = by_units is not None
        self.product: Product | None = by_units or (in_shared_memory(product, most) if product is not None else None)
        self.tiles = (mma_tiles_of(kernel) if units else None) or tiles_of(kernel, most, scalars.dialect.subgroup_barrier is not None)
        if self.tiles is None and product is None:
            self.tiles = products_of(kernel, most, units, tf32)
        self.prefetch = block_prefetch_of(kernel, self.tiles) if self.tiles is not None else None
        self.by_item = not lanes and not kernel.scratch
        scratch = sum(shared_bytes(b) for b in kernel.scratch)
        self.by_subgroup = scalars.dialect.subgroup_barrier is not None and self.tiles is None and _of_subgroups(lanes)
        if staged and scratch * MIN_ROWS > most:
            self.by_subgroup = False
        in_registers = scalars.dialect.subgroup_barrier is not None
        reducing = [_items(s, in_registers) for s in lanes if s.accs and not staged]
        self.width = 1 if self.by_item else LANES if self.by_subgroup else max(reducing or [_items(s, in_registers) for s in lanes] or [LANES])
        of_elements = bool(lanes) and self.tiles is None and product is None and _of_elements(kernel, lanes)
        if of_elements:
            self.width = min(MAX_ITEMS, max(map(_element_items, lanes)))
        partials = 0 if self.by_subgroup else sum(_partials(s, self.width, scalars) for s in lanes)
        self.in_workspace = self.tiles is None and scratch + partials > most
        own = partials + (0 if self.in_workspace else scratch)  # of a parallel iteration
        self.iterations = ITEM_KERNEL if self.by_item else MAX_ITEMS // self.width if of_elements else 1
        if self.by_subgroup:
            self.iterations = min(MAX_ITEMS // LANES, most // own if own else MAX_ITEMS)
        self.items = self.width * self.iterations
        self.workspace = scratch * self.iterations if self.in_workspace else 0
        self.local = own * self.iterations
        if self.product is not None:
            self.items = self.width = ITEMS
            self.local = self.product.local
            self.resident = resident(self.product.sums if self.on_matrix_units else self.product.registers)
            if self.on_matrix_units and is_f16(self.product):
                self.local = self.dynamic = f16_panel_bytes(self.product)
        if self.tiles is not None:
            self.items = self.width = ITEMS
            self.local, self.dynamic = self.tiles.local, self.tiles.dynamic
            if self.prefetch is not None:
                self.local = self.dynamic = self.prefetch.nbytes
            self.resident = self.prefetch.resident if self.prefetch is not None else resident(self.tiles.registers)

    @property
    def register_scratch(self) -> dict[Buffer, tuple[int, ...]]:
        """Scratch that items have in registers: how many, of each row and column of theirs."""
        return self.tiles.register_scratch if self.tiles is not None else {}

    @property
    def fragments(self) -> frozenset[Buffer]:
        """Of these, factors of products on matrix units."""
        return self.tiles.fragments if self.tiles is not None else frozenset()

    def groups(self, iterations: int) -> int:
        """Groups that take every one of ``iterations`` at once."""
        return -(-iterations // self.iterations)


def scans(loop: Loop) -> bool:
    return any(isinstance(s, Ins) and s.op == "scan" for s in loop.body)


def _of_subgroups(lanes: list[Loop]) -> bool:
    """Whether rows are reduced by 32 items, and nothing else wants more."""
    reduced = [s for s in lanes if s.accs]
    return bool(reduced) and all(isinstance(s.extent, int) and s.extent <= PAGE and not scans(s) for s in reduced)


def _of_elements(kernel: Kernel, lanes: list[Loop]) -> bool:
    """Whether all that items do is elements, and none waits for another: no reductions, no scratch, and no memory that is both read and written."""
    waits = (loaded(kernel.body) & stored(kernel.body)) | in_place(kernel.body)
    loops = [s for s in kernel.walk() if isinstance(s, Loop)]
    plain = all(s.kind == "parallel" or (s in lanes and not any(isinstance(x, Loop) for x in s.body)) for s in loops)
    return plain and not kernel.scratch and not waits and not any(s.accs or scans(s) for s in lanes)


def _element_items(loop: Loop, in_registers: bool = False) -> int:
    """Items that a loop of lanes without reductions has use for: a power of two."""
    if not isinstance(loop.extent, int):
        return MAX_ITEMS
    taken = vectors(loop)
    width = taken.width if taken else neighbours(loop) if in_registers and scans(loop) else 1
    return _power_of_two(-(-loop.extent // width))


def _items(loop: Loop, in_registers: bool) -> int:
    """Items that a loop of lanes has use for: in a horizontal reduction 32 a page. ``in_registers``: where subgroups exchange values."""
    extent = loop.extent
    if loop.accs and not scans(loop):
        pages = -(-extent // PAGE) if isinstance(extent, int) else MAX_PAGES
        return LANES * min(MAX_PAGES, _power_of_two(pages))
    return min(MAX_ITEMS, max(LANES, _element_items(loop, in_registers)))


def _power_of_two(n: int) -> int:
    """The least one that is not below ``n``."""
    return 1 << max(0, n - 1).bit_length()


def _partials(loop: Loop, items: int, scalars: Scalars) -> int:
    """Bytes of shared memory in which partial results of a loop are combined, at most."""
    sizes = [d.itemsize for a in loop.accs for d in Monoid(a, scalars).types]
    turns = find_turns(loop, items) if scans(loop) and scalars.dialect.subgroup_barrier is not None else None
    if turns is not None:  # the totals of groups, what stands before each, and the carry, each a whole number of the widest accesses
        return sum(2 * size * (items * turns.elements // GROUP) + 2 * ACCESS_BYTES for size in sizes)
    return sum(sizes) * (items + 2 * LANES)
