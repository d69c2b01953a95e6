"""Which reads in a loop find what an earlier step wrote or read: distances between accesses of the arrays that the steps update.

The steps of a loop update a carry by a chain of scatters. Where an access is, is a linear form in the loop's counters and in what no step changes.
Forms are compared modulo 2**bits, as the program computes them: two accesses are at the same place, so many steps apart, or so far from each other,
or it is not known. Reads are in range by construction. So an update of the same place is, too, and one that is out of range, which does nothing, is
elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from hologram.graph.canonical.licm import MOVABLE
from hologram.graph.canonical.loop_ranges import counter_step
from hologram.ir.graph import Graph
from hologram.ir.node import Node, const_value
from hologram.primitives.control import scan
from hologram.primitives.indexing import gather, scatter_set, window_sizes

MAX_SUMS = 8  # one in the other, that a linear form is taken out of


class Form(NamedTuple):
    """An integer as a sum of ``terms`` with factors and of a number."""

    terms: Mapping[Node, int]
    number: int

    def plus(self, other: Form, factor: int) -> Form:
        terms = dict(self.terms)
        for n, c in other.terms.items():
            terms[n] = terms.get(n, 0) + factor * c
        return Form({n: c for n, c in terms.items() if c}, self.number + factor * other.number)


class Access:
    """A gather, or a scatter, of one window of an array, or of one for each element of a batch. ``forms``: where it begins, by axis."""

    def __init__(self, node: Node, forms: Sequence[Form]) -> None:
        self.node = node
        self.is_read = node.op is gather
        self.starts = node.inputs[1 if self.is_read else 2 :]
        self.axes, self.batch = node.attrs[0], node.attrs[-1]
        self.windows = node if self.is_read else node.inputs[1]
        self.forms = dict(zip(self.axes, forms, strict=True))
        sizes = window_sizes(self.windows.shape, self.starts[0].shape, self.axes, self.batch)
        self.sizes = dict(zip(self.axes, sizes, strict=True))
        self.types = {a: s.dtype for a, s in zip(self.axes, self.starts, strict=True)}

    @property
    def layout(self) -> tuple[object, ...]:
        """The same for accesses whose windows are alike."""
        return self.axes, self.batch, self.starts[0].shape, self.windows.shape


class LoopAccesses:
    """Reads and updates of the arrays that a scan or while loop changes."""

    def __init__(self, node: Node) -> None:
        self.node, self.is_scan = node, node.op is scan
        self.graph: Graph = node.attrs[0 if self.is_scan else 1].graph
        self.consts: int = node.attrs[1] if self.is_scan else node.attrs[2]
        self.carries: int = node.attrs[2] if self.is_scan else len(self.graph.outputs)
        self.arguments = self.graph.inputs[self.consts : self.consts + self.carries]
        by = {x: counter_step(self.graph, self.consts, k) for k, x in enumerate(self.arguments)}
        self.counters: dict[Node, int] = {x: step for x, step in by.items() if step is not None}
        self._outer = dict(zip(self.graph.inputs[: self.consts], node.inputs, strict=False))
        self._invariant = set(self._outer)
        self._reads: dict[Node, list[Node]] = {}
        self._accesses: dict[Node, Access | None] = {}
        for n in self.graph.nodes():
            if n.op is gather:
                self._reads.setdefault(n.inputs[0], []).append(n)
            if n.op.kind in MOVABLE and self._invariant.issuperset(n.inputs) or n.op.name in ("const", "iota"):
                self._invariant.add(n)

    def states(self, k: int) -> list[Node]:
        """Carry ``k`` as a step finds it and after each of its updates; empty where the step does anything else with it."""
        states = [self.graph.outputs[k]]
        while states[-1].op.kind == "scatter":
            states.append(states[-1].inputs[0])
        return states[::-1] if states[-1] is self.arguments[k] else []

    def reads(self, state: Node) -> Sequence[Node]:
        """The gathers from an array."""
        return self._reads.get(state, ())

    def source(self, states: Sequence[Node], at: int, read: Node, most: int) -> tuple[Node, int] | None:
        """What ``read``, of the state number ``at``, finds: a value that an earlier step wrote or read, and how many steps earlier, up to ``most``.

        Goes back through all accesses to the first of the same place; each update on the way must be apart from it. None where it is not."""
        one = self._access(read)
        if one is None:
            return None
        for steps in range(most + 1):
            for node in self._backwards(states, at if steps == 0 else len(states) - 1, steps > 0):
                other = self._access(node)
                distances = {} if other is None else self._distances(one, other, steps)
                if other is not None and other.layout == one.layout and len(distances) == len(one.axes) and not any(distances.values()):
                    return (other.windows, steps) if steps and node.op in (gather, scatter_set) else None
                if node.op is not gather and (other is None or not _apart(one, other, distances)):
                    return None
        return None

    def _backwards(self, states: Sequence[Node], at: int, with_reads: bool) -> Iterator[Node]:
        """The accesses of a step that come before an access of its state number ``at``, the last first."""
        for k in range(at, -1, -1):
            if with_reads:
                yield from self.reads(states[k])
            if k:
                yield states[k]

    def _access(self, node: Node) -> Access | None:
        """A gather or scatter by its place; None where it has several, or some start is no linear form."""
        if node not in self._accesses:
            starts = node.inputs[1 if node.op is gather else 2 :]
            forms = [self._form(s) for s in starts]
            known = [f for f in forms if f is not None]
            is_one = all(n == 1 for n in starts[0].shape[node.attrs[-1] :])
            self._accesses[node] = Access(node, known) if is_one and len(known) == len(forms) else None
        return self._accesses[node]

    def _distances(self, one: Access, other: Access, steps: int) -> dict[int, int]:
        """How far ``one`` begins from where ``other`` began so many steps before, by axis, where that is a number."""
        found = {}
        for a in one.forms.keys() & other.forms.keys():
            apart = one.forms[a].plus(other.forms[a], -1)
            if not apart.terms and one.types[a] is other.types[a]:
                moved = sum(c * self.counters.get(n, 0) for n, c in other.forms[a].terms.items())
                half = 2 ** (one.types[a].bits - 1)
                found[a] = (apart.number + steps * moved + half) % (2 * half) - half
        return found

    def _form(self, n: Node) -> Form | None:
        """An integer of the body as a linear form, which what the loop takes from around it has there; None where steps change it otherwise."""

        def known(x: Node) -> Form | None:
            if x in self._outer:
                return linear_form(self._outer[x], _itself)
            return _itself(x) if x in self.counters or x in self._invariant else None

        return linear_form(n, known)


def linear_form(n: Node, known: Callable[[Node], Form | None], deep: int = MAX_SUMS) -> Form | None:
    """An integer, or an array of equal ones, as a linear form in what is no sum, of which ``known`` gives the forms."""
    if n.op.name == "const":
        return Form({}, int(const_value(n)))
    if deep and n.op.name in ("reshape", "broadcast") and n.inputs[0].size == 1:
        return linear_form(n.inputs[0], known, deep - 1)
    if deep and n.op.name in ("add", "sub"):
        x, y = (linear_form(v, known, deep - 1) for v in n.inputs)
        if x is not None and y is not None:
            return x.plus(y, 1 if n.op.name == "add" else -1)
    return known(n)


def _itself(n: Node) -> Form:
    return Form({n: 1}, 0)


def _apart(one: Access, other: Access, distances: Mapping[int, int]) -> bool:
    """Whether two windows do not meet."""
    return any(abs(d) >= max(one.sizes[a], other.sizes[a]) for a, d in distances.items())
