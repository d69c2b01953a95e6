"""The program of a graph in normal form, made in one pass over its nodes: a small expression that is met for the first time costs little more than
its ops.

A node stays as it is where no rewrite rule fires at it, and where legalization has nothing to say of it but which product a sum takes unrounded, and
which quotients share a divisor. Then its step is the one that is known of its op, types and shapes. Reductions are those of short arrays to one
element. Whatever else a graph has, and what no step is known of, is left to
:func:`hologram.backends.op_by_op.program.op_by_op`, which gives the same steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from hologram.backends.op_by_op.peepholes import Legalized
from hologram.backends.op_by_op.program import Draft, OpByOp, constants_of, legalized, op_by_op, operands_of, ready_draft, step_of
from hologram.errors import CompileError
from hologram.graph.canonical.normal_form import RULES, USERS_FIRST
from hologram.graph.legalize.reductions import needs_cut
from hologram.graph.legalize.short_reductions import is_short_horizontal
from hologram.graph.legalize.variation import Variation
from hologram.graph.multiply_add import LOOKED_THROUGH, fused_sum, product_of
from hologram.graph.rewrite.engine import count_users
from hologram.graph.rewrite.rewriter import Rewriter, Rule
from hologram.graph.shared_divisors import by_reciprocal, is_shared_divisor
from hologram.ir.aval import aval
from hologram.ir.graph import Graph
from hologram.ir.leaves import const, input_
from hologram.ir.node import Builder, Node
from hologram.ir.symbolic import prod
from hologram.ir.traversal import topological
from hologram.primitives.reductions import PAGE, reduce_sum
from hologram.primitives.scalar.elementwise import add, div, sub
from hologram.settings import settings
from hologram.support import debug

PREPARE_NS = 2e4  # that the pass takes, ...
PREPARE_NODE_NS = 6e3  # ... and each node adds

_KINDS = frozenset(("elementwise", "movement", "gather"))  # of which graphs are legal as they are
_SUMS = (add, sub)
_MOVED_SUMS = tuple(LOOKED_THROUGH) + ("pad",)  # ops behind which a reduction may see a product
_DEPTH = attrgetter("depth")  # of a node is greater than those of its inputs
_firings: Counter[str] = Counter()  # which nobody reads


class _Same(dict[Node, Node]):
    """Every node stands for itself."""

    def __missing__(self, node: Node) -> Node:
        return node


_same = _Same()


def in_one_pass(order: Sequence[Any], sources: Sequence[Any], roots: Sequence[Any], max_ns: float) -> OpByOp | None:
    """The program of ``roots``, of which ``order`` are all nodes that they need, pending ones, and ``sources`` those that are arguments. None where
    the graph is not in normal form, where a step is not ready, and where a run takes longer than ``max_ns``."""
    if settings.disabled_passes or settings.debug >= debug.PASSES or any(map(_is_left, sources)):
        return None
    run = _Pass(sources)
    if not (all(map(run.takes, sorted([x for x in order if x not in run.made], key=_DEPTH))) and run.is_normal(roots) and run.finds_steps(roots)):
        return None
    if run.ns > max_ns:
        return None
    program = run.program(roots)
    program.peepholes = lambda: Legalized(run.made, run.parts, run.drafts, run.candidates).peepholes(order)
    if settings.verify:
        _verify(program, run.graph(roots))
    return program


def _is_left(x: Any) -> bool:
    """Whether rules make something else of a node's type: complex numbers are split, and what has no elements is not computed."""
    return x.dtype.is_complex or 0 in x.shape


def _is_whole_reduction(x: Node) -> bool:
    """Whether a node reduces a short array to one element, in one piece: no narrow floats, and no products but those that it sees at once."""
    if x.op.kind != "reduce" or x.op.monoid is None or x.shape:
        return False
    (y,) = x.inputs
    n = prod(y.shape)
    if not isinstance(n, int) or not 1 < n <= PAGE or y.dtype.is_narrow_float:
        return False
    return y.op.name not in _MOVED_SUMS and not needs_cut((), (), n, False) and not is_short_horizontal(y, x.attrs[0])


class _Pass:
    """``made`` are the nodes of the canonical graph, by pending ones; ``drafts`` the steps of the legal one."""

    def __init__(self, sources: Sequence[Any]) -> None:
        self.inputs: list[Node] = []
        self.made: dict[Any, Node] = {}
        for i, x in enumerate(sources):
            self.made[x] = node = Node(input_, (), (i, x.shape, x.dtype.name, None), x.shape, x.dtype)
            self.inputs.append(node)
        self.candidates = RULES.index("standard")
        self.rewriter = Rewriter(self.candidates, _firings)
        self.interned: dict[Any, Node] = {}  # the nodes of ``made``
        self.by_users: list[tuple[Rule, Node]] = []  # rules that see how many users a node has
        self.constants: list[Node] = []
        self.computed: list[Node] = []  # canonical nodes, inputs first
        self.drafts: dict[Node, Draft] = {}
        self.legal: dict[Node, Node] = {}  # what sums become that take products
        self.parts: dict[Node, list[Node]] = {}  # the new nodes of these, inputs first
        self.ns = 0.0

    def takes(self, x: Any) -> bool:
        """Adds a node whose inputs are there; False where it is not in normal form, or one of the ops that are legal as they are."""
        op, attrs, made = x.op, x.attrs, self.made
        inputs = tuple([made[i] for i in x.inputs])
        interned, key = self.interned, (op, inputs, attrs)
        known = interned.get(key)
        if known is not None:
            made[x] = known
            return True
        if _is_left(x):
            return False
        made[x] = node = Node(op, inputs, attrs, x.shape, x.dtype)
        self.rewriter.table[key] = node  # which also has what rules try
        if op is const:
            interned[key] = node
            self.constants.append(node)
            return True
        if op.kind not in _KINDS and not _is_whole_reduction(node):
            return False
        if "commutative" in op.algebra and (op, inputs[::-1], attrs) in interned:
            return False  # the order of operands makes it the same node
        interned[key] = node
        self.computed.append(node)
        for r in self.candidates(node):
            if r in USERS_FIRST:
                self.by_users.append((r, node))
            elif not self._stays(r, node):
                return False
        return True

    def _stays(self, rule: Rule, node: Node) -> bool:
        out = rule.apply(node, self.rewriter)
        return out is None or self.rewriter.fit(out, node.shape) is node

    def is_normal(self, roots: Sequence[Any]) -> bool:
        """Whether the rules that see how many users nodes have leave them as they are, too."""
        if self.by_users:
            self.rewriter.users = count_users([*self.inputs, *self.constants, *self.computed], [self.made[x] for x in roots])
        return all([self._stays(r, node) for r, node in self.by_users])

    def finds_steps(self, roots: Sequence[Any]) -> bool:
        """Fills ``drafts``; False where a step is not ready."""
        parts = self.parts = self._fused_sums() | self._shared_quotients()
        nodes = self._needed(parts, roots) if parts or any([x.op is reduce_sum for x in self.computed]) else self.computed
        return all([self._finds_step(x) for node in nodes for x in parts.get(node, (node,))])

    def _fused_sums(self) -> dict[Node, list[Node]]:
        """The sums that take products unrounded: for each the new nodes that it becomes, inputs first. Fills ``legal``."""
        sums = [x for x in self.computed if x.op in _SUMS and any([product_of(i) is not None for i in x.inputs])]
        if not sums:
            return {}
        build = Builder()
        return self._replaced((node, fused_sum(build, node, _same)) for node in sums)

    def _shared_quotients(self) -> dict[Node, list[Node]]:
        """The quotients by a divisor that others have, as :meth:`_fused_sums`."""
        if not any([x.op is div and x.shape for x in self.computed]):
            return {}
        build, varies = Builder(), Variation()
        for x in self.computed:
            varies.note(x)
        return self._replaced((x, by_reciprocal(build, x, x.inputs)) for x in self.computed if is_shared_divisor(x, varies))

    def _replaced(self, pairs: Iterable[tuple[Node, Node | None]]) -> dict[Node, list[Node]]:
        """For each node that becomes another one, inputs first, the new nodes of that. Fills ``legal``."""
        old = {*self.inputs, *self.constants, *self.computed}
        parts: dict[Node, list[Node]] = {}
        for node, legal in pairs:
            if legal is not None:
                self.legal[node] = legal
                new = any([x not in old for x in legal.inputs])
                parts[node] = [x for x in topological((legal,), stop=old.__contains__) if x not in old] if new else [legal]
        return parts

    def _needed(self, parts: Mapping[Node, list[Node]], roots: Sequence[Any]) -> list[Node]:
        """The nodes that are read: not the products that sums alone take."""
        needed = {self.made[x] for x in roots}
        for node in reversed(self.computed):
            if node in needed:
                needed.update([i for x in parts.get(node, (node,)) for i in operands_of(x)])
        return [x for x in self.computed if x in needed]

    def _finds_step(self, x: Node) -> bool:
        """Adds the step of a legal node whose inputs have some; False where there is none."""
        if x.op is const:  # the negative of one
            if x not in self.constants:
                self.constants.append(x)
        elif x not in self.drafts:
            draft = ready_draft(x)
            if draft is None:
                return False
            self.drafts[x] = draft
            self.ns += draft.ns
        return True

    def graph(self, roots: Sequence[Any]) -> Graph:
        """The canonical graph."""
        return Graph(self.inputs, [self.made[x] for x in roots])

    def program(self, roots: Sequence[Any]) -> OpByOp:
        number = {x: i for i, x in enumerate([*self.inputs, *self.constants, *self.drafts])}
        number.update([(x, number[by]) for x, by in self.legal.items() if by in number])
        graph, drafts = self.graph(roots), list(self.drafts.values())
        return OpByOp(
            [step_of(d, number) for d in drafts],
            drafts,
            constants_of(self.constants),
            [(number[x], aval(x.dtype, x.shape)) for x in graph.outputs],  # type: ignore[arg-type]  # static shapes
            self.ns,
            graph,
            lambda: legalized(graph),
            PREPARE_NS + PREPARE_NODE_NS * len(self.computed),
        )


def _verify(program: OpByOp, graph: Graph) -> None:
    """Raises CompileError where the program has other steps than that of the whole way."""
    other = op_by_op(graph, program.ns + 1)
    steps = None if other is None else _steps(other)
    if steps != _steps(program):
        raise CompileError(f"a graph runs by other steps than its legal form has: {_steps(program)}, not {steps}\n{graph}")


def _steps(program: OpByOp) -> set[str]:
    return {f"{d.node} {d.node.attrs} of {[(x.dtype, x.shape) for x in d.operands]}" for d in program.drafts}


__all__ = ["in_one_pass"]
