"""Reductions over a short last axis (the coordinates of points, the channels of pixels): unrolled, one op for each element.

A loop of lanes along three elements leaves most of a register empty. Unrolled, lanes go across the rows. The order is that of horizontal
reductions: lane l combines with lane l + h for h = 4, 2, 1. Products are rounded before they are added, as each is in a lane of its own. So results
are those of the loop of lanes, which an axis takes whose extent is known in a call alone.
"""

from __future__ import annotations

from collections.abc import Set

from hologram.graph.bounded import Worklist
from hologram.graph.multiply_add import product_of
from hologram.graph.schedule.index_split import is_short_inner
from hologram.ir.node import Builder, Node, const_value
from hologram.ir.op import TABLE, Op
from hologram.ir.symbolic import prod
from hologram.ir.traversal import users_of
from hologram.primitives.reductions import LANES, REDUCED_BY


def is_short_horizontal(x: Node, axes: tuple[int, ...]) -> bool:
    """Whether the last ``axes`` of ``x`` are so short, no longer than the lanes, and the rows so many, that their reduction is better unrolled."""
    n = prod(x.shape[a] for a in axes)
    return axes[-1] == x.ndim - 1 and isinstance(n, int) and n <= LANES and is_short_inner(x.shape, axes)


def unroll_horizontal_reduction(b: Builder, monoid: Op, x: Node, axes: tuple[int, ...]) -> Node:
    """``x`` reduced over its last ``axes`` horizontally."""
    rows, n = x.shape[: axes[0]], prod(x.shape[a] for a in axes)
    assert isinstance(n, int)
    if len(axes) > 1:
        x = b(TABLE["reshape"], (x,), ((*rows, n),))
    zeros, ones = (0,) * len(rows), (1,) * len(rows)
    lanes = [b(TABLE["slice"], (x,), ((*zeros, i), (*rows, i + 1), (*ones, 1))) for i in range(n)]
    if monoid.name == "add" and product_of(x) is not None:
        lanes = [_rounded(b, lane) for lane in lanes]
    h = LANES
    while h > 1:
        h //= 2
        for i in range(max(0, min(h, len(lanes) - h))):
            lanes[i] = b(monoid, (lanes[i], lanes[i + h]))
        del lanes[h:]
    return b(TABLE["reshape"], (lanes[0],), (rows,))


def _rounded(b: Builder, product: Node) -> Node:
    """A product that no sum takes unrounded: it is added to the neutral element, and that together is one rounding."""
    return b(TABLE["add"], (product, b.fit(b.const(-0.0, product.dtype), product.shape)))


def unrolled_terms(x: Node) -> list[Node]:
    """The elements of rows that ``x`` combines, where it is the result of :func:`unroll_horizontal_reduction`, or the like; else none. Products are
    ``mad`` nodes."""
    if x.op not in REDUCED_BY or not x.ndim:
        return []
    terms: list[Node] = []
    stack = [x]
    while stack:
        n = stack.pop()
        if n.op is x.op:
            stack += n.inputs
        elif _is_one_of_row(n) or (n.op.name == "mad" and all(map(_is_one_of_row, n.inputs[:2])) and _is_nothing(n.inputs[2])):
            terms.append(n)
        else:
            return []
    return terms


def _is_one_of_row(x: Node) -> bool:
    """Whether ``x`` is one element of each row."""
    return x.op.name == "slice" and x.shape[-1] == 1


def _is_nothing(x: Node) -> bool:
    """Whether ``x`` adds nothing."""
    while x.op.name in ("broadcast", "reshape"):
        (x,) = x.inputs
    return x.op.name == "const" and bool(const_value(x) == 0)


def unrolled_row_values(nodes: list[Node], materialized: Set[Node]) -> set[Node]:
    """Values that need not be kept, since one kernel across short rows computes each once for all who read it: those of a row that are spread
    along it, and those of an element that are read at their reader's own element, or one element of a row at a time. Where a reduction follows,
    kernels go another way; and what several of ``materialized`` are made of, these being all that would be kept otherwise, each would make for
    itself."""
    users = users_of(nodes)
    out: set[Node] = set()
    makes: dict[Node, set[Node]] = {}  # the materialized whose kernels make the value
    for n in reversed(nodes):
        readers = users.get(n, [])
        makes[n] = set().union(*({r} if r in materialized and r not in out else makes[r] for r in readers))
        if n.op.kind == "elementwise" and len(makes[n]) == 1 and (_is_broadcast_along_rows(n, users) or _read_by_element(n, readers, users)):
            out.add(n)
    return out


def _read_by_element(n: Node, readers: list[Node], users: dict[Node, list[Node]]) -> bool:
    if not n.ndim or not is_short_inner(n.shape, (n.ndim - 1,)):
        return False
    return any(_is_element_slice(r, n) for r in readers) and _stays_in_rows(n, users)


def _is_element_slice(r: Node, n: Node) -> bool:
    return r.op.name == "slice" and r.shape == (*n.shape[:-1], 1)


def _stays_in_rows(n: Node, users: dict[Node, list[Node]]) -> bool:
    """Whether all that is made of a value is elementwise, until one element of a row is taken."""
    made = Worklist("short_rows", [n])
    for x in made:
        for r in users.get(x, ()):
            if r.op.kind == "elementwise" and r.shape == n.shape:
                made.add([r])
            elif not _is_element_slice(r, x):
                return False
    return True


def _is_broadcast_along_rows(n: Node, users: dict[Node, list[Node]]) -> bool:
    """Whether all readers of a row's value, reshapes passed by, broadcast it along a short last axis."""
    readers = Worklist("short_rows", users[n])
    for r in readers:
        if r.op.name == "reshape" and r in users:
            readers.add(users[r])
        elif r.op.name != "broadcast" or not r.ndim or not is_short_inner(r.shape, (r.ndim - 1,)) or r.inputs[0].size * r.shape[-1] != r.size:
            return False
        elif not _stays_in_rows(r, users):
            return False
    return True
