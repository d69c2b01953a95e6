"""Materialization: which values are kept in memory, each computed by a group. All others are computed again where they are used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from functools import partial
from types import MappingProxyType

from hologram.graph.fusion.groups import KERNEL_COST, MIN_EXPANDING_BYTES, expanding_values, is_unfusible, narrowest, operands
from hologram.graph.fusion.library_products import LibraryProduct
from hologram.graph.fusion.transposed_factors import transposed_factors
from hologram.graph.fusion.update_windows import materialized_for_updates
from hologram.graph.legalize.paged_scans import unpaged
from hologram.graph.legalize.short_reductions import unrolled_row_values
from hologram.graph.library.attention.nodes import attention_operands, rematerialized_by_attention, score_nodes
from hologram.graph.schedule.index_split import is_large_concatenate
from hologram.graph.shared_divisors import is_part_of_quotient, is_scale
from hologram.ir.graph import Carries
from hologram.ir.leaves import FoldedConstant
from hologram.ir.node import Node
from hologram.ir.op import MULTI_RESULT
from hologram.ir.symbolic import typical
from hologram.ir.traversal import reachable
from hologram.primitives.scalar.elementwise import PRODUCTS, fused_mul

MATERIALIZE_COST = 12  # cost from which a value is kept rather than computed twice
SPREAD = 8  # uses that a broadcast along a new axis stands for
EXPANDING_MATERIALIZE_COST = 10 * MATERIALIZE_COST  # cost from which even such a value is kept
RESHAPES = 8  # how many compose in one index: one that mixes axes may double it
_IN_MEMORY = ("leaf", "project", *MULTI_RESULT)


def is_fused_term(n: Node) -> bool:
    """Whether ``n`` is computed where a sum takes it, and nowhere else: it is never in memory, where it would be rounded."""
    return n.op is fused_mul


def own_cost(node: Node) -> int:
    return node.op.cost if node.op.kind not in _IN_MEMORY else 0


def choose_materialized(
    nodes: list[Node],
    outputs: Iterable[Node],
    keep_narrow: bool = False,
    products: Mapping[Node, LibraryProduct] = MappingProxyType({}),
    carries: Carries = (),
) -> set[Node]:
    """Values that are computed as such; ``products``: those of a library, whose factors are among them; ``carries`` of the body of a loop."""
    materialized = {n for n in nodes if n.op.kind in ("reduce", "scan") or is_unfusible(n) or unpaged(n) is not None or is_large_concatenate(n)}
    materialized.update(n for n in outputs if n.op.kind != "leaf" or n.op.name in ("const", "iota"))
    expanding = {n for n in expanding_values(nodes) if isinstance(n.size, int) and n.size * n.dtype.itemsize >= MIN_EXPANDING_BYTES}
    boundaries = (_segment_boundaries(nodes) - expanding) | _window_factors(nodes) | _gathered_twice(nodes)
    materialized |= ({narrowest(n) for n in boundaries} - {n for n in nodes if n.op.kind == "leaf"}) if keep_narrow else boundaries
    materialized |= _control_operands(nodes) | attention_operands(nodes, keep_narrow)
    materialized |= {x for p in products.values() for x in (*p.factors, p.rounded) if x is not None and x.op.kind != "leaf"}
    materialized |= materialized_for_updates(nodes, materialized, carries)
    materialized |= transposed_factors(nodes, materialized) if not keep_narrow else set()
    inside = score_nodes(nodes) | rematerialized_by_attention(nodes, keep_narrow) | {n for n in nodes if is_fused_term(n)}
    materialized = {n for n in materialized - inside if n.size != 0} | {n for n in outputs if n in inside}
    shared = partial(_expensive, nodes, materialized, expanding, inside, keep_narrow)
    kept = materialized | shared()
    unrolled = unrolled_row_values(nodes, kept)
    return materialized | shared(unrolled) if unrolled else kept


def _expensive(
    nodes: list[Node], base: set[Node], expanding: set[Node], never: set[Node], keep_narrow: bool, unrolled: Set[Node] = frozenset()
) -> set[Node]:
    """What is kept because several read it and it would cost much to compute again, unless kernels compute what is ``unrolled`` once anyway; and
    what lies behind so many reshapes that its index is expensive. Nothing is computed again at any cost: that doubles with every step that reads the
    one before it twice, as do the pieces that an element of concatenations of concatenations looks through."""
    uses, materialized, moved = _uses(nodes, base), set(base), _moved_gathers(nodes)
    as_moved = set(moved.values())
    cost: dict[Node, int] = {}
    mixed: dict[Node, int] = {}  # reshapes on the way from what is in memory
    joined: dict[Node, int] = {}  # concatenations on that way: each element looks through the pieces of all of them
    for n in nodes:
        if n.op.kind in _IN_MEMORY:
            cost[n] = mixed[n] = joined[n] = 0
            continue
        total = _cost_of_quotient_part(n) + sum(0 if x in materialized or is_scale(x) else cost[x] for x in n.inputs)
        cost[n] = min(total, max(EXPANDING_MATERIALIZE_COST, 10 * MATERIALIZE_COST))
        is_moved = n.op.kind == "movement" and n not in as_moved
        threshold = MATERIALIZE_COST if uses[n] < SPREAD or is_moved else 2
        threshold = EXPANDING_MATERIALIZE_COST if n in expanding else threshold
        shared = uses[n] >= 2 and total >= threshold and (not is_moved or n.op.cost > 0) and n not in moved
        mixed[n] = (n.op.name == "reshape") + max((0 if x in materialized else mixed[x] for x in n.inputs), default=0)
        joined[n] = (n.op.name == "concatenate") + max((0 if x in materialized else joined[x] for x in n.inputs), default=0)
        behind = (mixed[n] > RESHAPES and n not in expanding) or (n.op.name == "concatenate" and joined[n] > 1 and uses[n] >= 2)
        if n not in never and ((shared and n not in unrolled) or behind):
            materialized.add(narrowest(n) if keep_narrow and not behind else n)
            cost[n] = own_cost(n)
    return materialized


def _cost_of_quotient_part(n: Node) -> int:
    """The cost of a node, where a quotient with a shared divisor costs what its one division does."""
    return 0 if is_part_of_quotient(n) else own_cost(n)


def _moved_gathers(nodes: list[Node]) -> dict[Node, Node]:
    """For a gather whose windows only a reshape or transpose reads, what at last becomes of them: that is kept in its place, in the shape in which it
    is read."""
    readers: dict[Node, list[Node]] = {}
    for n in nodes:
        for x in n.inputs:
            readers.setdefault(x, []).append(n)
    found: dict[Node, Node] = {}
    for n in nodes:
        own = readers.get(n, [])
        while n.op.kind == "gather" and len(own) == 1 and own[0].op.name in ("reshape", "transpose"):
            found[n] = own[0]
            own = readers.get(own[0], [])
    return found


def _segment_boundaries(nodes: list[Node]) -> set[Node]:
    """Long programs are cut into segments of bounded cost; what crosses a cut is kept, unless it is cheaply made of what crosses it anyway."""
    segment: dict[Node, int] = {}
    running, current = 0, 0
    reach: dict[Node, int] = {}  # the last segment that wants a value
    crossing: set[Node] = set()
    for n in nodes:
        if n.op.kind == "leaf":
            continue
        if is_fused_term(n):
            continue  # its reader stands for it
        running += max(1, own_cost(n))
        if running > KERNEL_COST:
            running, current = 0, current + 1
        segment[n] = current
        for x in _sources(n):
            reach[x] = current
            if segment.get(x, current) != current:
                crossing.add(x)
    return {n for n in crossing if n.op.kind not in ("leaf", *MULTI_RESULT)} - _rematerialized(nodes, crossing, reach)


def _rematerialized(nodes: list[Node], crossing: set[Node], reach: dict[Node, int]) -> set[Node]:
    """What need not be kept for the segments that want it: a few operations on one value that stands in memory as long, or on two."""
    made_of: dict[Node, tuple[frozenset[Node], int]] = {}
    out: set[Node] = set()
    for n in nodes:
        if n.op.kind == "leaf":
            made_of[n] = frozenset(), 0
        elif n.op.kind not in ("elementwise", "movement") or any(x not in made_of for x in n.inputs):
            made_of[n] = frozenset([n]), 0
        else:
            sources = frozenset[Node]().union(*(made_of[x][0] for x in n.inputs))
            cost = own_cost(n) + sum(made_of[x][1] for x in n.inputs)
            made_of[n] = sources, cost
            stays = len(sources) <= 2 and cost < MATERIALIZE_COST and all(reach.get(s, 0) >= reach.get(n, 0) for s in sources)
            if n in crossing and sources and stays:
                out.add(n)
            elif n in crossing or cost >= MATERIALIZE_COST:
                made_of[n] = frozenset([n]), 0
    return out


def _control_operands(nodes: list[Node]) -> set[Node]:
    """What nodes of several results read and give, what kernels that a backend has ready read, and pairs that runs are of: it stands in memory."""
    materialized = {n for n in nodes if n.op.kind == "project"}
    for n in nodes:
        if n.op.kind in ("native", *MULTI_RESULT):
            read = operands(n) if n.op.kind == "control" else n.inputs
            materialized.update(x for x in read if x.op.name not in ("input", "leaf"))
        elif n.op.kind == "runs":
            materialized.add(n.inputs[-2])
    return materialized


def _gathered_twice(nodes: list[Node]) -> set[Node]:
    """What passes of radix sorts would gather both where they count and where they move it."""
    return {n.inputs[0] for n in nodes if n.op.kind == "digits" and _gathers(n.inputs[0])}


def _gathers(node: Node) -> bool:
    """Whether there is a gather among what makes ``node``, as far as that is computed element by element."""
    made_of = reachable([node], lambda n: n.inputs if n.op.kind in ("elementwise", "movement") else ())
    return any(n.op.kind == "gather" for n in made_of)


def _window_factors(nodes: list[Node]) -> set[Node]:
    """The factors of products of windows: read so often that none is computed, guarded at an edge or fetched from afar again."""
    out: set[Node] = set()
    for n in nodes:
        if n.op not in PRODUCTS or n.inputs[0].op.name != "broadcast" or n.inputs[1].op.name != "broadcast":
            continue
        sources = [_windowed(f.inputs[0]) for f in n.inputs]
        for f, source, other in zip(n.inputs, sources, sources[::-1], strict=True):
            often = typical(n.size) >= SPREAD * typical(f.inputs[0].size)
            if often and source is not None and source.op.cost and source.op.kind not in _IN_MEMORY:
                out.add(source)
            elif often and source is None and other is not None and _is_moved(f.inputs[0]):
                out.add(f.inputs[0])
    return out


def _is_moved(n: Node) -> bool:
    """Whether ``n`` reads memory in another order than its own, or parts of it; what is prepacked is in the order in which it is read."""
    if any(isinstance(a, FoldedConstant) for a in _source(n).attrs):
        return False
    while n.op.name == "reshape":
        n = n.inputs[0]
    return n.op.kind == "movement"


def _windowed(n: Node) -> Node | None:
    """What ``n`` has windows of, None if it is no such thing."""
    found = False
    while n.op.kind == "movement" and not n.op.cost:
        found = found or n.op.name == "windows"
        n = n.inputs[0]
    return n if found else None


def _source(n: Node) -> Node:
    """What a movement moves or pads: that is kept, and read by index, rather than moved."""
    while n.op.kind == "movement" and (not n.op.cost or n.op.name == "pad"):
        n = n.inputs[0]
    return n


def _sources(n: Node) -> list[Node]:
    """What ``n`` reads, movements passed by; of a term of a sum, its factors."""
    read = [_source(x) for x in n.inputs]
    return [s for x in read for s in (map(_source, x.inputs) if is_fused_term(x) else (x,))]


def _uses(nodes: list[Node], materialized: set[Node]) -> dict[Node, int]:
    """How often a value is wanted: once a reader, but a movement passes on what its own readers want, and so does the term of a
    sum."""
    uses = dict.fromkeys(nodes, 0)
    for n in reversed(nodes):
        times = 1
        if (n.op.kind == "movement" or is_fused_term(n)) and n not in materialized:
            times = max(1, uses[n])
            if n.op.name == "broadcast" and n.inputs[0].size != n.size:
                times = max(times, SPREAD)
        for x in set(n.inputs):
            uses[x] = min(uses[x] + times, SPREAD)  # more makes no difference, and doubles with every roll
    return uses
