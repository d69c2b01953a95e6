"""Lowering: a group of fused values becomes one kernel.

Three steps. *Values* (:mod:`hologram.graph.lower.scalarize`): every element that a value is made of becomes a scalar instruction. *Loops*
(:mod:`hologram.graph.schedule.choose`): axes that every access walks alike merge into one, and the merged axes become a parallel loop and an
inner loop of lanes. *Sweeps* (:mod:`hologram.graph.lower.code_placement`): what depends on a reduction's result runs in a later sweep over the row;
expensive values that a later sweep needs again are kept in the thread's scratch memory, cheap ones are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from hologram.graph.fusion.groups import KERNEL_COST, Group
from hologram.graph.kernel.build import uniquify_names
from hologram.graph.kernel.ir import float16_factors
from hologram.graph.legalize.paged_scans import unpaged
from hologram.graph.lower.canonical_order import order_canonically
from hologram.graph.lower.code_placement import CodePlacement
from hologram.graph.lower.lowered import Lowered, in_place_in_all
from hologram.graph.lower.scalarize import PendingStore, ScalarProgram
from hologram.graph.memory.overwritten import NOTHING_UNREAD, Unread
from hologram.graph.schedule.choose import choose_nest
from hologram.graph.schedule.index_split import Box, is_short_inner, join_kernels, residue_boxes, share_scratch, split_index_set, whole_box
from hologram.graph.schedule.nest import merge
from hologram.graph.schedule.row_blocked_reduce import can_be_row_blocked
from hologram.graph.schedule.row_interleave import interleaved_rows
from hologram.graph.schedule.streamed import MIN_PREFETCHED_BYTES
from hologram.graph.schedule.tiles import CpuTileConfig, GpuTileConfig, TileConfig
from hologram.ir.instruction import Ins
from hologram.ir.node import Node
from hologram.ir.op import Shape
from hologram.ir.symbolic import Int, prod, typical

NEST_COST = 4  # instructions that loops around a box are like
MAX_SPLIT_WORK_RATIO = 0.8  # how much of a space's work may be left for cutting it in boxes to pay


def lower(
    group: Group,
    materialized: set[Node],
    stored: set[Node],
    precision: str = "exact",
    tile: TileConfig | None = None,
    prefetched: int = MIN_PREFETCHED_BYTES,
    unread: Mapping[Node, Unread] = NOTHING_UNREAD,
) -> list[Lowered]:
    """The kernels of ``group``. Inputs of ``prefetched`` bytes or more are worth hints. Boxes of what is ``unread`` are not written.

    Those of its values that are in ``stored`` are written to memory; ``materialized`` values of other groups are read from it. There is one kernel,
    unless the group is cut in more boxes than one kernel should hold.
    """
    whole = ScalarProgram(group, materialized)
    whole.unread = unread
    writes = whole.define_nodes(stored)
    cut = _split_index_set(group, materialized, stored, whole, writes)
    if not cut:
        return [_emitted(group, whole, writes, precision, tile, partial(_program, group, materialized, stored, whole), prefetched)]
    batches: list[list[Lowered]] = []
    length = KERNEL_COST
    for boxes, values, writes in cut:
        if not writes:
            continue
        own = len(values.order) + NEST_COST
        length += own
        if length > KERNEL_COST:
            batches.append([])
            length = own
        again = partial(_program, group, materialized, stored, whole, boxes)
        batches[-1].append(_emitted(group, values, writes, precision, None, again, prefetched))
    return [_together(batch, len(batches) == 1) for batch in batches]


def _split_index_set(
    group: Group, materialized: set[Node], stored: set[Node], whole: ScalarProgram, writes: list[PendingStore]
) -> list[tuple[Sequence[Box], ScalarProgram, list[PendingStore]]]:
    """Nests of boxes, the values of each and how they are written, where that saves work or divisions; else none."""
    if group.axes is not None or any(unpaged(r) for r in group.nodes):
        return []
    nests = split_index_set(group.shape, whole.order)
    narrow = not nests and _narrow_axes(group.shape, whole, writes)
    if narrow:
        nests = [residue_boxes(whole_box(group.shape), {axis: group.shape[axis] for axis in narrow})]
    cut: list[tuple[Sequence[Box], ScalarProgram, list[PendingStore]]] = [
        (boxes, *_program(group, materialized, stored, whole, boxes)) for boxes in nests
    ]
    work, all_of_it = sum(_work(values) for _, values, _ in cut), _work(whole)
    return cut if narrow or typical(work) <= MAX_SPLIT_WORK_RATIO * typical(all_of_it) else []


def _narrow_axes(shape: Shape, whole: ScalarProgram, writes: list[PendingStore]) -> list[int]:
    """The last axes, where they are too short for a loop of their own and some access does not walk them and those before as one."""
    blocks = merge(range(len(shape)), shape, _expressions(whole, writes))
    fits = len(blocks) > 1 and is_short_inner(shape, blocks[-1].axes)
    return blocks[-1].axes if fits and len(whole.order) * blocks[-1].size <= KERNEL_COST else []  # type: ignore[operator]


def _work(values: ScalarProgram) -> Any:
    """What its elements cost."""
    return prod(values.shape) * sum(v.op.cost if isinstance(v, Ins) and not isinstance(v.op, str) else 1 for v in values.order)


def _program(
    group: Group, materialized: set[Node], stored: set[Node], whole: ScalarProgram, boxes: Sequence[Box | None] = (None,)
) -> tuple[ScalarProgram, list[PendingStore]]:
    """The values of one nest, of all elements or those of ``boxes``, and how they are written."""
    values = ScalarProgram(group, materialized, boxes, whole)
    return values, values.define_nodes(stored)


def _emitted(
    group: Group,
    values: ScalarProgram,
    stores: list[PendingStore],
    precision: str,
    tile: TileConfig | None,
    again: Callable[[], tuple[ScalarProgram, list[PendingStore]]],
    prefetched: int,
) -> Lowered:
    """The kernel of ``values``. Where it has several nests, the others are of values that ``again`` gives."""
    if values.box is None:
        order_canonically(values, stores)
    scans = any(isinstance(v, Ins) and v.op == "scan" for v in values.order)
    plain = tile if not values.taken and not scans else None
    loads = [v.attrs[1] for v in values.order if isinstance(v, Ins) and v.op == "load"]
    itemsize = max((v.dtype.itemsize for v in values.accumulates), default=4)
    if isinstance(plain, GpuTileConfig) and plain.tile_16_bit is not None and precision != "exact" and _sums_16_bit(values):
        plain = GpuTileConfig(*plain.tile_16_bit)
    together = interleaved_rows(values, stores, group.axes, tile) if isinstance(tile, CpuTileConfig) and not scans else 1
    row_blocked = isinstance(plain, CpuTileConfig) and precision != "exact" and can_be_row_blocked(values, stores)
    nest, *others = choose_nest(values.shape, group.axes, _expressions(values, stores), loads, plain, itemsize, together, row_blocked, prefetched)
    parts = [CodePlacement(group, values, stores, nest, precision, prefetched).lowered()]
    for other in others:
        values, stores = again()
        if values.box is None:
            order_canonically(values, stores)
        parts.append(CodePlacement(group, values, stores, other, precision, prefetched).lowered())
    share_scratch([p.kernel for p in parts])
    for p in parts[1:]:
        p.kernel.work = 0  # each nest does it all
    return _together(parts, True) if others else parts[0]


def _sums_16_bit(values: ScalarProgram) -> bool:
    """Whether all that is reduced is one sum of products of 16-bit floats."""
    summed = list(values.accumulates.items())
    return len(summed) == 1 and summed[0][0].op.name == "reduce_sum" and float16_factors(summed[0][1][0]) is not None


def _together(parts: list[Lowered], alone: bool) -> Lowered:
    """One kernel for several boxes. A result may stand where an input stood if this holds in every box, and no other kernel writes it."""
    in_place = in_place_in_all([(p.kernel, p.in_place) for p in parts]) if alone else []
    out = Lowered(join_kernels([p.kernel for p in parts]), parts[0].bindings, parts[0].group)
    out.in_place = in_place
    uniquify_names(out.kernel.body, {}, set())
    return out


def _expressions(values: ScalarProgram, stores: list[PendingStore]) -> list[Int]:
    out = [w.index for w in stores]
    for ins in values.order:
        if isinstance(ins, Ins):
            if ins.op == "load":
                out.append(ins.attrs[1])
            elif ins.op in ("index", "inside"):
                out.append(ins.attrs[0])
    return out
