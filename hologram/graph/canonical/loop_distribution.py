"""Loop distribution: moves work that does not depend on the carry out of a scan, and does it for all steps at once.

What a body computes falls into three parts: what needs no carry, what carries need, and what only the stacked results need. The first may be done
before the loop, of whole sequences, the last after it, of whole stacks: loop distribution (Kennedy and McKinley 1990). It pays for products with a
factor that no step changes: one product of all rows in the place of one a step, each of which reads the whole factor for few rows. The canonical
reduction order of sums stays, since the steps become an axis in front.

A carry to which each step adds a sum, and which nothing else reads, is the sum over the steps and over what each of them sums: again one product, as
in the gradient of a weight, in the place of one a step and as many additions of the whole. The order of additions changes, so this is not for floats
in ``exact``.

Memory is needed for what is given from one part to another, at most :data:`MAX_STACKED_RATIO` what the loop's sequences take, and at most
:data:`MAX_STACKED_BYTES`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hologram.graph.bounded import rounds
from hologram.graph.canonical.licm import MOVABLE, elements
from hologram.ir.graph import Graph, close, inlined
from hologram.ir.node import Builder, Node, nbytes
from hologram.ir.op import TABLE, load_transforms
from hologram.ir.symbolic import Int, is_static, typical
from hologram.ir.traversal import reachable, topological

MAX_STACKED_RATIO = 4  # LSTM cells make four values of each that they are given
MAX_STACKED_BYTES = 2**28
MIN_STEPS = 4
MIN_PRODUCT_ELEMENTS = 4096  # of a product in all steps


class Steps(NamedTuple):
    """A scan's body and what its arguments are: ``consts`` constants, ``carries`` carries, then elements of sequences; ``length`` steps."""

    body: Graph
    consts: int
    carries: int
    length: Int

    @property
    def about(self) -> int:
        """The number of steps, or what it is taken for where a call alone knows it."""
        return typical(self.length)

    @property
    def fixed(self) -> list[Node]:
        return self.body.inputs[: self.consts]

    @property
    def state(self) -> list[Node]:
        return self.body.inputs[self.consts : self.consts + self.carries]

    @property
    def elements(self) -> list[Node]:
        return self.body.inputs[self.consts + self.carries :]

    @property
    def stacked(self) -> list[Node]:
        return self.body.outputs[self.carries :]

    def room(self) -> int:
        """Bytes that may be given from one part of the loop to another."""
        return min(MAX_STACKED_BYTES, MAX_STACKED_RATIO * self.about * sum(map(nbytes, [*self.elements, *self.stacked])))


class WorkAfter(NamedTuple):
    """Results computed after the loop: ``ys`` and ``sums`` are numbers of results of the body, stacked ones and carries; ``given`` what the loop
    stacks for ``graph``, which takes constants, sequences and these stacks, and gives the ys, then of each sum what is added to the carry's start."""

    ys: list[int]
    sums: list[int]
    given: list[Node]
    graph: Graph


def work_before_loop(steps: Steps) -> tuple[list[Node], Graph] | None:
    """Values of the body to be computed before the loop, and the graph of constants and sequences that stacks them."""
    if not _may_pay(steps):
        return None
    free = _carry_free(steps, [*steps.fixed, *steps.elements])
    holding = _made_of_products(free, _products(steps, free))
    read = [x for n in steps.body.nodes() if n not in free for x in n.inputs]
    values: dict[Node, None] = {}
    for x in read:
        while x in holding and x.op.kind == "movement" and len(x.inputs) == 1:
            (x,) = x.inputs
        if x in holding:
            values[x] = None
    chosen = list(values)
    if not chosen or _in_memory(chosen, chosen, {*steps.fixed, *steps.elements}, free) * steps.about > steps.room():
        return None
    return chosen, _batched(steps, steps.elements, chosen)


def work_after_loop(steps: Steps, reorder: bool) -> WorkAfter | None:
    """What is computed after the loop. ``reorder``: floats may be added in another order."""
    if not _may_pay(steps):
        return None
    sums = _sums(steps, reorder)
    for _ in rounds("bodies", len(sums) + 1):
        if not sums:
            break
        found = _WorkAfter(steps, sums)
        if found.sums == sums.keys() and found.fits():
            return found.after()
        sums = {k: sums[k] for k in found.sums} if found.sums != sums.keys() else {}
    found = _WorkAfter(steps, {})
    return found.after() if found.fits() else None


class _WorkAfter:
    """What may be computed after the loop, if the carries ``sums`` are, whose steps each add what is given there: ``ys`` and ``sums`` are those for
    which it pays, ``given`` what the loop stacks for them."""

    def __init__(self, steps: Steps, sums: dict[int, Node]) -> None:
        self.steps = steps
        outputs = steps.body.outputs
        self.needed = set(topological([x for k, x in enumerate(outputs[: steps.carries]) if k not in sums]))
        self.there = {*steps.fixed, *steps.elements}
        self.early = _carry_free(steps, list(self.there))
        self.free = _carry_free(steps, steps.body.inputs)
        varying = {k: x for k, x in sums.items() if not self.free.get(x)}
        holding = _made_of_products(self.free, _products(steps, self.free)) - self.needed
        late = {k: x for k, x in enumerate(outputs) if k >= steps.carries and x in holding and self._given([x]) is not None}
        products = {k: x for k, x in varying.items() if _gathers(_core(x)[0]) and self._given([x]) is not None}
        self.values = late | products
        self.given = self._given(list(self.values.values())) or []
        for k, x in varying.items():
            given = self._given([x])
            if k not in products and given is not None and set(given) <= set(self.given):
                self.values[k] = x
        self.ys = [k for k in self.values if k not in sums]
        self.sums = {k for k in self.values if k in sums}

    def fits(self) -> bool:
        """Whether there is anything, and room for it."""
        steps, outputs = self.steps, self.steps.body.outputs
        if not self.values:
            return False
        stacks = [*[x for x in self.given if x not in steps.stacked], *[outputs[k] for k in self.ys]]
        taken = _in_memory(stacks, [_summed(x)[0] for x in self.values.values()], {*self.given, *self.there}, self.free)
        return steps.about * taken <= steps.room() + steps.about * sum(map(nbytes, {outputs[k] for k in self.ys}))

    def after(self) -> WorkAfter:
        order = [*self.ys, *sorted(self.sums)]
        values = [self.values[k] if k in self.ys else _summed(self.values[k])[0] for k in order]
        stacks = _batched(self.steps, [*self.steps.elements, *self.given], values)
        return WorkAfter(
            self.ys, sorted(self.sums), self.given, _summed_over_steps(stacks, len(self.ys), [self.values[k] for k in sorted(self.sums)])
        )

    def _given(self, values: Sequence[Node]) -> list[Node] | None:
        """What the loop has to stack so that ``values`` can be computed after it; None where they cannot be."""
        found: dict[Node, None] = {}

        def is_given(n: Node) -> bool:
            return n not in self.early and (n in self.needed or n.op.name == "input") and not _is_spread(n)

        for n in reachable(values, lambda n: () if n in self.there or n in found else n.inputs[::-1]):
            if n in self.there:
                continue
            if is_given(n):
                found[n] = None
            elif n not in self.free:
                return None
        return list(found)


def _may_pay(steps: Steps) -> bool:
    if not all(is_static(x.size) for x in steps.body.nodes()) or steps.about < MIN_STEPS or not any(_gathers(n) for n in steps.body.nodes()):
        return False
    load_transforms()
    return True


def _carry_free(steps: Steps, given: Sequence[Node]) -> dict[Node, bool]:
    """Values that are made of ``given`` and of numbers and counters, by ops that can be done for all steps at once; whether no step changes them."""
    fixed = set(steps.fixed)
    found = {x: x in fixed for x in given}
    for n in steps.body.nodes():
        if n in found or n.op.name == "input":
            continue
        at_once = n.op.kind == "leaf" or (n.op.kind in MOVABLE and (n.op.kind == "elementwise" or n.op.batch is not None))
        if at_once and all(x in found for x in n.inputs):
            found[n] = all(found[x] for x in n.inputs)
    return found


def _products(steps: Steps, free: dict[Node, bool]) -> list[Node]:
    """Products of rows that differ from step to step and a larger factor that no step changes."""
    return [n for n in free if _is_product(n) and not free[n] and _pays(n, free) and elements(n.inputs[0]) * steps.about >= MIN_PRODUCT_ELEMENTS]


def _is_product(n: Node) -> bool:
    return n.op.name == "reduce_sum" and n.inputs[0].op.name == "mul"


def _pays(product: Node, free: dict[Node, bool]) -> bool:
    return any(free[f] and _extent(f) * f.dtype.itemsize >= nbytes(product) for f in product.inputs[0].inputs)


def _is_spread(n: Node) -> bool:
    """Whether ``n`` is only moved from what is no larger."""
    return n.op.kind == "movement" and len(n.inputs) == 1 and elements(n.inputs[0]) <= elements(n)


def _extent(factor: Node) -> int:
    """Elements of a factor before it is spread over the terms of a product."""
    while factor.op.kind == "movement" and len(factor.inputs) == 1:
        (factor,) = factor.inputs
    return elements(factor)


def _made_of_products(free: dict[Node, bool], products: Iterable[Node]) -> set[Node]:
    """What is made of ``products``, these included."""
    found = set(products)
    for n in free:
        if any(x in found for x in n.inputs):
            found.add(n)
    return found


def _sums(steps: Steps, reorder: bool) -> dict[int, Node]:
    """Carries to which each step adds something and that nothing else reads: what is added."""
    outputs = steps.body.outputs
    readers = Counter([*outputs, *[x for n in steps.body.nodes() for x in n.inputs]])
    found = {}
    for k, (carry, out) in enumerate(zip(steps.state, outputs, strict=False)):
        if out.op.name == "add" and carry in out.inputs and readers[carry] == readers[out] == 1 and (reorder or out.dtype.kind in "iu"):
            added = out.inputs[out.inputs[0] is carry]
            if added.shape == out.shape:
                found[k] = added
    return found


def _core(x: Node) -> tuple[Node, list[Node]]:
    """What ``x`` is moved from, and the movements, the last first."""
    moves = []
    while x.op.name in ("reshape", "transpose"):
        moves.append(x)
        (x,) = x.inputs
    return x, moves


def _summed(x: Node) -> tuple[Node, tuple[int, ...]]:
    """What a step sums up to ``x``, but for movement, and along which axes."""
    core, _ = _core(x)
    return (core.inputs[0], core.attrs[0]) if core.op.name == "reduce_sum" else (core, ())


def _gathers(core: Node) -> bool:
    """Whether the sum of this over the steps is a product: of matrices, or of vectors in each step."""
    return _is_product(core) or (core.op.name == "mul" and all(_extent(f) < elements(core) for f in core.inputs))


def _in_memory(stacks: Sequence[Node], values: Sequence[Node], ends: set[Node], free: dict[Node, bool]) -> int:
    """Bytes of a step of ``stacks``, and of what stands in memory on the way to ``values`` and differs from step to step."""
    way = [n for n in topological(values, stop=ends.__contains__) if n.op.kind not in ("elementwise", "movement", "leaf") and not free.get(n)]
    return sum(map(nbytes, {*stacks, *way}))


def _batched(steps: Steps, stacked: Sequence[Node], values: Sequence[Node]) -> Graph:
    """The graph of constants and stacks of ``stacked`` that gives the stacks of ``values``."""
    one = close([*steps.fixed, *stacked], values, {}).graph
    assert TABLE["scan"].batch_body is not None  # _is_worth_a_look saw to it
    made = TABLE["scan"].batch_body("scan", one, [False] * steps.consts + [True] * len(stacked), steps.length)
    return close(made.arguments, made.nodes, {}).graph


def _summed_over_steps(stacks: Graph, first: int, sums: Sequence[Node]) -> Graph:
    """``stacks`` with the results from ``first`` on, stacks of the terms of ``sums``, added up over the steps."""
    build = Builder()
    outputs = inlined(build, stacks, stacks.inputs, stacks.outputs)
    for k, x in enumerate(sums, first):
        outputs[k] = build(TABLE["reduce_sum"], (outputs[k],), ((0, *[a + 1 for a in _summed(x)[1]]),))
        for move in reversed(_core(x)[1]):
            outputs[k] = build(move.op, (outputs[k],), move.attrs)
    return Graph(stacks.inputs, outputs)
