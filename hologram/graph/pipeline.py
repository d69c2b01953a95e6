"""The compiler's pipeline: every pass from the traced graph to the execution plan, in order, for every target.

========== =============================== =======================================================================================
stage      passes                          value after it
========== =============================== =======================================================================================
canonical  arguments … sink                the canonical graph: equal programs are equal graphs, movements are near the leaves
legalized  replace_elements … loop_bodies   the graph in ops that have a kernel on the target, bodies of loops and branches too
folded     fold_constants                  the graph, and the initializer that computes what depends on constants alone
groups     fuse                            fusion groups: which values are computed together in one kernel
kernels    lower                           a kernel for each group: loops, scalar instructions, tiles
plan       overlap … plan                  steps in order, which arrays share a buffer, lifetimes and slots: what backends generate code from
========== =============================== =======================================================================================

The graphs inside of loops and branches run through the same passes: canonical reduction by ``bodies``, legalization by ``loop_bodies``, and the rest
by ``lower``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from hologram.errors import ArgumentError, CompileError
from hologram.graph.blocking.blocked_loops import DEVICE_BLOCK_BYTES, block_regions
from hologram.graph.canonical.arguments import normalise_arguments
from hologram.graph.canonical.complex_split import split_complex
from hologram.graph.canonical.constant_windows import select_windows
from hologram.graph.canonical.control_flow import canonical_body, simplify_control
from hologram.graph.canonical.integer_ranges import Ranges
from hologram.graph.canonical.loop_layout import arrange_windows
from hologram.graph.canonical.loop_ranges import ranges_in, refine_ranges
from hologram.graph.canonical.normal_form import is_normal
from hologram.graph.canonical.view_updates import update_bases
from hologram.graph.constants.fold import fold_constants
from hologram.graph.constants.loop_prepack import pack_before_loops
from hologram.graph.early_casts import round_before_moving
from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.fusion.fused_graph import FusedGraph, fuse_graph
from hologram.graph.initialized import Initialized
from hologram.graph.kernel.printer import print_kernel
from hologram.graph.kernel.verify import verify_kernel
from hologram.graph.legalize.demand_masks import mask_demanded
from hologram.graph.legalize.gram_products import halve_gram_products
from hologram.graph.legalize.late_products import put_late_products_first
from hologram.graph.legalize.legalize import legalize
from hologram.graph.legalize.loop_recurrences import shorten_recurrences
from hologram.graph.legalize.scalar_replacement import replace_elements
from hologram.graph.library.attention.device_kernel import MAX_VALUE_ROW_BYTES
from hologram.graph.library.attention.exchanged_sums import exchange_sums
from hologram.graph.library.attention.match import join_attention
from hologram.graph.library.attention.region_tiles import reduce_in_tiles
from hologram.graph.lower.overlap import overlap_collectives
from hologram.graph.lower.steps import LoweredGraph, lower_groups
from hologram.graph.multiply_add import fuse_products
from hologram.graph.ownership import Ownership, verify_ownership
from hologram.graph.pass_manager import Context, Pass, Repeat, run_passes
from hologram.graph.rewrite.engine import rewrite_bottom_up, rewrite_top_down
from hologram.graph.rewrite.rules import SIMPLIFY, SINK
from hologram.graph.schedule.tiles import CpuTileConfig, GpuTileConfig, TileConfig
from hologram.graph.shared_divisors import share_divisors
from hologram.graph.size_conditions import SizeConditions
from hologram.graph.verify_graph import verify_graph
from hologram.ir.graph import Carries, Graph
from hologram.settings import settings
from hologram.support.world import current_world

# --- canonical reduction: the same for all targets --------------------------------------------------------------------


def _verify(graph: Graph, when: str) -> None:
    verify_graph(graph, when, around=None)


def _arguments(graph: Graph, context: Context) -> Graph:
    return normalise_arguments(graph)


def _complexes(graph: Graph, context: Context) -> Graph:
    return split_complex(graph)


def _simplify(graph: Graph, context: Context) -> Graph:
    return rewrite_bottom_up(graph, SIMPLIFY, context.precision, context.count, context.watch)


def _view_updates(graph: Graph, context: Context) -> Graph:
    return update_bases(graph, context.count)


def _constant_windows(graph: Graph, context: Context) -> Graph:
    return select_windows(graph, context.count)


def _bodies(graph: Graph, context: Context) -> Graph:
    """Control flow, and the graphs inside of it."""
    watched = None if context.watch is None else id(context.watch)  # who is shown rules sees those of bodies that other programs have, too
    key, inside = (context.precision, settings.disabled_passes, watched), context.nested()
    out = simplify_control(graph, lambda body: canonical_body(body, partial(_canonical, inside), key), context.count, not context.exact)
    context.count.update(inside.rules())
    return out


def _loop_ranges(graph: Graph, context: Context) -> Graph:
    return refine_ranges(graph, context.count)


def _loop_layout(graph: Graph, context: Context) -> Graph:
    return arrange_windows(graph, context.count)


def _canonical(context: Context, graph: Graph) -> Graph:
    return run_passes(graph, CANONICAL, context)


def _sink(graph: Graph, context: Context) -> Graph:
    return rewrite_top_down(graph, SINK, context.precision, context.count, context.watch)


ARGUMENTS = Pass("arguments", _arguments, _verify)
COMPLEXES = Pass("complexes", _complexes, _verify, required=True)
SIMPLIFICATION = Pass("simplify", _simplify, _verify)
VIEW_UPDATES = Pass("view_updates", _view_updates, _verify, kind="scatter")
CONSTANT_WINDOWS = Pass("constant_windows", _constant_windows, _verify, kind="scatter")
BODIES = Pass("bodies", _bodies, _verify, kind="control")
LOOP_RANGES = Pass("loop_ranges", _loop_ranges, _verify, kind="control")
LOOP_LAYOUT = Pass("loop_layout", _loop_layout, _verify, kind="control")
SINKING = Pass("sink", _sink, _verify)

CANONICAL: tuple[Pass | Repeat, ...] = (
    ARGUMENTS,
    COMPLEXES,
    SIMPLIFICATION,
    Repeat((VIEW_UPDATES, SIMPLIFICATION)),
    Repeat((CONSTANT_WINDOWS, SIMPLIFICATION)),
    Repeat((BODIES, SIMPLIFICATION)),
    Repeat((LOOP_RANGES, BODIES, SIMPLIFICATION)),
    Repeat((CONSTANT_WINDOWS, SIMPLIFICATION)),
    Repeat((LOOP_LAYOUT, SIMPLIFICATION)),
    Repeat((SINKING, SIMPLIFICATION)),
)

# --- legalization: for a target and its tiles -------------------------------------------------------------------------


def _reorders(context: Context) -> bool:
    """Whether sums may be blocked, in another order than the canonical one: on a target with tiles."""
    return context.tile is not None and not context.exact


def _has_matrix_units(context: Context) -> bool:
    return _reorders(context) and isinstance(context.tile, GpuTileConfig) and context.tile.tile_16_bit is not None


def _keeps_registers(context: Context) -> bool:
    """Whether small carries of loops are in registers."""
    return isinstance(context.tile, CpuTileConfig)


def _is_device(context: Context) -> bool:
    return isinstance(context.tile, GpuTileConfig)


def _is_host(context: Context) -> bool:
    """Whether routines of the host read and write the program's own memory."""
    return not _is_device(context)


def _replace_elements(graph: Graph, context: Context) -> Graph:
    return replace_elements(graph)


def _shorten_recurrences(graph: Graph, context: Context) -> Graph:
    return shorten_recurrences(graph)


def _late_products(graph: Graph, context: Context) -> Graph:
    return put_late_products_first(graph)


def _exchange_sums(graph: Graph, context: Context) -> Graph:
    return exchange_sums(graph)


def _reduce_in_tiles(graph: Graph, context: Context) -> Graph:
    return reduce_in_tiles(graph)


def _block(first_level: int, graph: Graph, context: Context) -> Graph:
    nbytes = DEVICE_BLOCK_BYTES if isinstance(context.tile, GpuTileConfig) else None
    return block_regions(graph, partial(_canonical, context.nested()), first_level, nbytes, context.conditions)


def _join_attention(graph: Graph, context: Context) -> Graph:
    return join_attention(graph, MAX_VALUE_ROW_BYTES if isinstance(context.tile, GpuTileConfig) else None, context.conditions)


def _gram_products(graph: Graph, context: Context) -> Graph:
    halved = halve_gram_products(graph)
    return graph if halved is graph else _canonical(context.nested(), halved)


def _tiles_on_cpu(context: Context) -> bool:
    return isinstance(context.tile, CpuTileConfig) and not context.exact


def _legalize(graph: Graph, context: Context) -> Graph:
    tile = context.tile
    shared = tile.shared_bytes if isinstance(tile, GpuTileConfig) else None
    return legalize(graph, context.precision, isinstance(tile, CpuTileConfig) and tile.pairs, shared is None, shared, context.conditions)


def _demand_masks(graph: Graph, context: Context) -> Graph:
    return mask_demanded(graph)


def _multiply_add(graph: Graph, context: Context) -> Graph:
    return fuse_products(graph)


def _shared_divisors(graph: Graph, context: Context) -> Graph:
    return share_divisors(graph)


def _early_casts(graph: Graph, context: Context) -> Graph:
    return round_before_moving(graph)


def _is_inexact(context: Context) -> bool:
    return not context.exact


def _loop_bodies(graph: Graph, context: Context) -> Graph:
    def legalized(body: Graph, constants: Any) -> Graph:
        return run_passes(body, LEGALIZE, context.nested(constants))

    return pack_before_loops(graph, context.constants, legalized, context.tile, context.exact)


LEGALIZE = (
    Pass("replace_elements", _replace_elements, _verify, when=_keeps_registers, kind="control"),
    Pass("shorten_recurrences", _shorten_recurrences, _verify, when=_keeps_registers, kind="control"),
    Pass("late_products", _late_products, _verify, when=_is_inexact, kind="control"),
    Pass("exchange_sums", _exchange_sums, _verify, when=_has_matrix_units, kind="reduce"),  # elsewhere rows of scores are in caches
    Pass("join_whole_attention", _join_attention, _verify, when=_has_matrix_units, kind="reduce"),  # of which nothing but the result is read
    Pass("reduce_in_tiles", _reduce_in_tiles, _verify, when=_has_matrix_units, kind="reduce"),
    Pass("block_inner", partial(_block, 1), _verify, when=_reorders, kind="reduce"),  # what attention leaves to derivatives
    Pass("join_attention", _join_attention, _verify, when=_reorders, kind="reduce"),
    Pass("block_regions", partial(_block, 0), _verify, when=_reorders, kind="reduce"),  # what is not one kernel
    Pass("gram_products", _gram_products, _verify, when=_tiles_on_cpu, kind="reduce"),
    Pass("legalize", _legalize, _verify, required=True),
    Pass("demand_masks", _demand_masks, _verify, kind="reduce"),
    Pass("multiply_add", _multiply_add, _verify, when=_is_inexact),
    Pass("shared_divisors", _shared_divisors, _verify, when=_is_inexact),
    Pass("early_casts", _early_casts, _verify, when=_is_device, kind="reduce"),
    Pass("loop_bodies", _loop_bodies, _verify, required=True, kind="control"),
)

# --- scheduling: from a legalized graph to the plan -------------------------------------------------------------------


def _fold_constants(graph: Graph, context: Context) -> Graph | Initialized[Graph]:
    found = fold_constants(graph, context.hold, context.tile, context.exact) if context.hold else None
    return graph if found is None else Initialized(found.graph, found.values)


def _fuse(program: Graph | Initialized[Graph], context: Context) -> Initialized[FusedGraph]:
    both = program if isinstance(program, Initialized) else Initialized(program)
    tile = context.tile if isinstance(context.tile, GpuTileConfig) else None
    library_flops = math.inf if tile is None or context.exact else tile.library_flops
    return both.map(lambda graph: fuse_graph(graph, tile is not None, library_flops, context.carries))


def _lower(program: Initialized[FusedGraph], context: Context) -> Initialized[LoweredGraph]:
    def plan_of(body: Graph, given: Ranges | None, carries: Carries) -> ExecutionPlan:
        plan: ExecutionPlan = run_passes(body, (FUSE, LOWER, OVERLAP, SHARE_BUFFERS, PLAN), context.nested(ranges=given, carries=carries))
        return plan

    def lowered(fused: FusedGraph) -> LoweredGraph:
        given = context.ranges if fused is program.main else None
        return lower_groups(fused, context.precision, context.tile, plan_of, ranges_in(fused.graph, given))

    return program.map(lowered)


def _overlap(program: Initialized[LoweredGraph], context: Context) -> Initialized[LoweredGraph]:
    network = current_world().network
    return program.map(lambda lowered: overlap_collectives(lowered, network))


def _share_buffers(program: Initialized[LoweredGraph], context: Context) -> Initialized[Ownership]:
    return program.map(Ownership)


def _plan(program: Initialized[LoweredGraph] | Initialized[Ownership], context: Context) -> ExecutionPlan:
    def owned(part: Any) -> Ownership:
        return part if isinstance(part, Ownership) else Ownership(part, share=False)

    return ExecutionPlan(owned(program.main), None if program.initializer is None else ExecutionPlan(owned(program.initializer)))


def _verify_parts(program: Initialized[Graph], when: str) -> None:
    for graph in program.parts:
        verify_graph(graph, when, around=None)


def _verify_kernels(program: Initialized[LoweredGraph], when: str) -> None:
    for lowered in program.parts:
        symbols = set(lowered.fused.graph.symbols())  # those that a call, or the step around, gives
        for k in lowered.own_kernels:
            verify_kernel(k.kernel)
            if unknown := set(k.kernel.symbols) - symbols:
                raise CompileError(f"{when}: a kernel reads {', '.join(sorted(unknown))}, which it does not compute\n{print_kernel(k.kernel)}")


def _verify_buffers(program: Initialized[Ownership], when: str) -> None:
    for owned in program.parts:
        verify_ownership(owned)


FOLD_CONSTANTS = Pass("fold_constants", _fold_constants, _verify_parts)
FUSE = Pass("fuse", _fuse, required=True)
LOWER = Pass("lower", _lower, _verify_kernels, required=True)
OVERLAP = Pass("overlap", _overlap, _verify_kernels, when=_is_host)
SHARE_BUFFERS = Pass("share_buffers", _share_buffers, _verify_buffers)
PLAN = Pass("plan", _plan, required=True)  # a plan verifies the addresses that it gives out, for each size

# --- the whole -------------------------------------------------------------------------------------------------------


class Stage(NamedTuple):
    """What ``as_text(name)`` shows: the value after ``passes``."""

    name: str
    passes: tuple[Pass | Repeat, ...]


PIPELINE = (
    Stage("canonical", CANONICAL),
    Stage("legalized", LEGALIZE),
    Stage("folded", (FOLD_CONSTANTS,)),
    Stage("groups", (FUSE,)),
    Stage("kernels", (LOWER,)),
    Stage("plan", (OVERLAP, SHARE_BUFFERS, PLAN)),
)


def passes() -> Iterator[Pass]:
    """All passes, in order; those that repeat once for each place where they stand."""
    for stage in PIPELINE:
        for p in stage.passes:
            yield from p.passes if isinstance(p, Repeat) else (p,)


def check_disabled() -> None:
    """Raises ArgumentError where ``HOLOGRAM_DISABLE_PASSES`` names a pass that is not there."""
    known = dict.fromkeys(p.name for p in passes())
    if unknown := [name for name in settings.disabled_passes if name not in known]:
        optional = ", ".join(dict.fromkeys(p.name for p in passes() if not p.required))
        raise ArgumentError(f"there is no pass {unknown[0]!r} to disable: those that can be left out are {optional}")


def canonicalise(graph: Graph, precision: str, context: Context | None = None) -> Graph:
    """``graph`` in canonical form at ``precision``; the same as that of its canonical form. ``context`` is filled with the rules that fired.

    Inputs stay as they are in number and order, used or not. Raises :class:`hologram.errors.RewriteError` for a defective rule.
    """
    if settings.verify:
        verify_graph(graph, "after tracing", interned=False)
    return _canonical(context or Context(precision), graph)


def canonicalise_but_for_order(graph: Graph, precision: str) -> Graph:
    """As :func:`canonicalise`, for a graph that runs once: operands of commutative ops keep their order where nothing else would change. The bits of
    results are the same. Raises CompileError where a rewrite rule would have fired after all, if graphs are verified."""
    if not is_normal(graph, precision):
        return canonicalise(graph, precision)
    if settings.verify:
        context = Context(precision)
        canonicalise(graph, precision, context)
        if others := set(context.rules()) - {"commute"}:
            raise CompileError(f"a graph was said to be in normal form, but the rules {', '.join(sorted(others))} fire:\n{graph}")
    return graph


def size_conditions(graph: Graph, precision: str, tile: TileConfig | None) -> SizeConditions:
    """For which values of its symbols static programs of ``graph`` sum in the order in which its own program does."""
    context = Context(precision, tile)
    run_passes(canonicalise_but_for_order(graph, precision), LEGALIZE, context)
    return context.conditions


def compile_to_plan(
    graph: Graph, precision: str = "exact", tile: TileConfig | None = None, hold: int = 0, context: Context | None = None
) -> ExecutionPlan:
    """The execution plan of a canonical graph: all passes after canonical reduction."""
    context = context or Context(precision, tile, hold)
    plan: ExecutionPlan = run_passes(graph, [p for stage in PIPELINE[1:] for p in stage.passes], context)
    return plan
