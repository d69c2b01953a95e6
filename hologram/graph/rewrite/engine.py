"""The one rewrite engine: rules, and two ways of running them over a graph.

A :class:`Rule` has a name, its algebra in words, and a guarantee: ``exact`` (the same bits, NaNs being one class), ``standard`` (NaN, Inf and
-0 keep their meaning, 2 ULP) or ``fast`` (finite values, reassociation). :func:`inputs_first` takes every node to normal form once its inputs
are there; :func:`users_first` starts at the outputs and knows how many users a node has, so that it can push work towards the leaves
without doing it twice. Both are iterative, take time linear in the graph where few rules fire, and go in an order that depends on nothing
but the graph. Dead code vanishes because only what the outputs need is visited.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hologram.dtypes import DType
from hologram.errors import RewriteError
from hologram.graph.rewrite.pattern import Apply, Bindings, Literal, Pattern, Var, free
from hologram.ir.graph import Graph
from hologram.ir.node import Builder, Node
from hologram.ir.op import Op
from hologram.support.precision import GUARANTEES

STEPS = 10_000  # rewrites nested in one another before the rules count as growing without end
STEPS_PER_NODE = 64  # of a graph, and STEPS more, before they do so side by side; rules in use take two or three

RuleFunction = Callable[[Node, "Rewriter"], Node | None]
# (builder, element type) -> graph outputs on which a rule is tried by the generated tests; () where the type does not fit
Examples = Callable[["Rewriter", DType], Iterable[Node]]


# --- rules -----------------------------------------------------------------------------------------------------------


class Rule:
    """A named rewrite. ``apply(node, b)`` gives an equal node built with ``b``, or None where the rule does not say anything."""

    __slots__ = ("name", "algebra", "guarantee")

    def __init__(self, name: str, algebra: str, guarantee: str) -> None:
        if guarantee not in GUARANTEES:
            raise RewriteError(f"rule {name}: guarantee {guarantee!r} is none of {', '.join(GUARANTEES)}")
        self.name, self.algebra, self.guarantee = name, algebra, guarantee

    def __repr__(self) -> str:
        return f"<{self.guarantee} rule {self.name}: {self.algebra}>"

    def relevant(self, op: Op, inputs: Sequence[Op]) -> bool:
        """Whether the rule could fire at a node of ``op`` whose inputs are of the given ops. Asked once for each such combination."""
        raise NotImplementedError

    def apply(self, node: Node, b: Rewriter) -> Node | None:
        raise NotImplementedError


class PatternRule(Rule):
    """``pattern`` = ``build``, both in the language of :mod:`hologram.graph.rewrite.pattern`; ``build`` may be ``f(b, <variables by name>)``.

    ``kinds``: dtype kinds that the pattern's untyped variables take. ``where(<variables by name>)``: a further condition on the nodes. A number
    on the right takes the node's own type where nothing beside it has one.
    """

    __slots__ = ("pattern", "result", "kinds", "where", "_build_names", "_where_names", "_forms")

    def __init__(
        self, name: str, algebra: str, guarantee: str, pattern: Apply, build: Any, kinds: str | None, where: Callable[..., bool] | None
    ) -> None:
        super().__init__(name, algebra, guarantee)
        bound = {v.name: v for v in pattern.variables()}
        self.pattern, self.kinds, self.where = pattern, kinds, where
        self.result = build if isinstance(build, Pattern) or callable(build) else Literal(build)
        self._build_names = () if isinstance(self.result, Pattern) else _parameters(self.result)[1:]
        self._where_names = _parameters(where) if where is not None else ()
        used = free(self.result, bound) if isinstance(self.result, Pattern) else sorted({*self._build_names} - {*bound})
        unknown = sorted({*used, *({*self._where_names} - {*bound})})
        if unknown:
            raise RewriteError(f"rule {name}: {', '.join(unknown)} does not occur in its pattern")
        self._forms: list[Apply] | None = None

    @property
    def forms(self) -> list[Apply]:
        """The pattern with commutative operands in every order."""
        if self._forms is None:
            self._forms = self.pattern.alternatives()  # type: ignore[assignment]
        return self._forms  # type: ignore[return-value]

    def relevant(self, op: Op, inputs: Sequence[Op]) -> bool:
        return self.pattern.op == op.name and any(all(map(_could_match, f.inputs, inputs)) for f in self.forms)

    def apply(self, node: Node, b: Rewriter) -> Node | None:
        for form in self.forms:
            m: Bindings = {}
            if form.match(node, m) and self._admits(m):
                if isinstance(self.result, Pattern):
                    return self.result.build(m, b, node.dtype)
                return self.result(b, *[m[n] for n in self._build_names])
        return None

    def _admits(self, m: Bindings) -> bool:
        if self.kinds is not None:
            for v in self.pattern.variables():
                if v.kinds is None and m[v.name].dtype.kind not in self.kinds:
                    return False
        return self.where is None or self.where(*[m[n] for n in self._where_names])


class FunctionRule(Rule):
    """A rewrite written as a function, for ops with attributes. See :func:`rule_fn`."""

    __slots__ = ("ops", "over", "among", "function", "examples")

    def __init__(
        self, name: str, algebra: str, guarantee: str, function: RuleFunction, ops: tuple[str, ...], over: Any, among: Any, examples: Examples
    ) -> None:
        super().__init__(name, algebra, guarantee)
        self.function, self.ops, self.over, self.among, self.examples = function, ops, over, among, examples

    def relevant(self, op: Op, inputs: Sequence[Op]) -> bool:
        if not _named(op, self.ops) or self.over is not None and not (inputs and _named(inputs[0], self.over)):
            return False
        return self.among is None or any(_named(i, self.among) for i in inputs)

    def apply(self, node: Node, b: Rewriter) -> Node | None:
        return self.function(node, b)


def rule(
    name: str, algebra: str, guarantee: str, pattern: Apply, build: Any, *, kinds: str | None = None, where: Callable[..., bool] | None = None
) -> PatternRule:
    """A rule in algebra: ``rule("mul-one", "x * 1 = x", "exact", x * 1, x)``.

    Raises :class:`RewriteError` for a variable on the right, or in ``where``, that the left does not bind.
    """
    return PatternRule(name, algebra, guarantee, pattern, build, kinds, where)


def rule_fn(
    ops: Iterable[str],
    name: str,
    algebra: str,
    guarantee: str,
    *,
    examples: Examples,
    over: Iterable[str] | None = None,
    among: Iterable[str] | None = None,
) -> Callable[[RuleFunction], FunctionRule]:
    """Decorates ``f(node, b) -> Node | None`` into a rule.

    It is tried at nodes whose op is named in ``ops``, whose first input's op is in ``over`` and any of whose inputs is in ``among``. ``@kind``
    stands for all ops of that kind, ``@word`` for those with that word in their algebra.
    """

    def decorate(function: RuleFunction) -> FunctionRule:
        return FunctionRule(
            name, algebra, guarantee, function, tuple(ops), None if over is None else tuple(over), None if among is None else tuple(among), examples
        )

    return decorate


def _named(op: Op, names: Iterable[str]) -> bool:
    return any(n == op.name or n[0] == "@" and (n[1:] == op.kind or n[1:] in op.algebra) for n in names)


def _could_match(pattern: Pattern, op: Op) -> bool:
    if isinstance(pattern, Apply):
        return pattern.op == op.name
    return op.name == "const" if isinstance(pattern, Literal) or isinstance(pattern, Var) and pattern.const else True


def _parameters(f: Any) -> tuple[str, ...]:
    code = f.__code__
    return code.co_varnames[: code.co_argcount]


class RuleSet:
    """Rules in their order, indexed for each precision by a node's op and its inputs' ops."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        doubled = [n for n, k in Counter(r.name for r in self.rules).items() if k > 1]
        if doubled:
            raise RewriteError(f"two rules are called {', '.join(doubled)}")
        self._index: dict[str, dict[Any, tuple[Rule, ...]]] = {p: {} for p in GUARANTEES}

    def at(self, precision: str) -> list[Rule]:
        """The rules whose guarantee is strong enough for ``precision``."""
        if precision not in GUARANTEES:
            raise ValueError(f"precision {precision!r} is none of {', '.join(GUARANTEES)}")
        allowed = GUARANTEES[: GUARANTEES.index(precision) + 1]
        return [r for r in self.rules if r.guarantee in allowed]

    def index(self, precision: str) -> Callable[[Node], tuple[Rule, ...]]:
        """A function from a node to the rules that could fire there."""
        rules, known = self.at(precision), self._index[precision]

        def candidates(node: Node) -> tuple[Rule, ...]:
            inputs = node.inputs
            if len(inputs) < 4:
                key: Any = (node.op, *[i.op for i in inputs])
            else:  # any number of inputs: which ops occur must do
                key = (node.op, inputs[0].op, frozenset(i.op for i in inputs))
            got = known.get(key)
            if got is None:
                ops = [i.op for i in inputs]
                got = known[key] = tuple(r for r in rules if r.relevant(node.op, ops))
            return got

        return candidates


# --- the builder that rules use --------------------------------------------------------------------------------------


class Rewriter(Builder):
    """Interns the nodes of one run, applies rules at one node, and gives rules their shorthand.

    ``users`` counts each node's distinct users, outputs included (None while inputs go first). ``rank`` orders nodes by structure. ``fuel`` is how
    many rules may fire.
    """

    __slots__ = ("candidates", "fired", "fuel", "users", "rank", "lines")

    def __init__(self, candidates: Callable[[Node], tuple[Rule, ...]], fired: Counter[str], fuel: int = STEPS) -> None:
        super().__init__()
        self.candidates, self.fired, self.fuel = candidates, fired, fuel
        self.users: dict[Node, int] | None = None
        self.rank: dict[Node, int] = {}
        self.lines: dict[Node, Any] = {}

    def argument(self, dtype: DType, *shape: Any) -> Node:
        """A fresh graph input, for examples."""
        index = sum(op.name == "input" for op, _, _ in self.table)
        return self.make("input", attrs=(index, shape, dtype.name, None))

    def sole(self, node: Node) -> bool:
        """Whether ``node`` has one user."""
        assert self.users is not None, "users are counted only where users go first"
        return self.users[node] == 1

    def adopt(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        """``node`` on ``inputs``, interned here; the node itself where nothing changed and it is the first of its kind."""
        key = (node.op, inputs, node.attrs)
        known = self.table.get(key)
        if known is None:
            if inputs == node.inputs:
                known = self.table[key] = node
            else:
                known = self(node.op, inputs, node.attrs)
        return known

    def swapped(self, node: Node) -> Node | None:
        """The binary ``node`` with its operands exchanged, where that has its normal form here already."""
        other = self.table.get((node.op, node.inputs[::-1], node.attrs))
        return other if other in self.rank else None

    def step(self, node: Node) -> tuple[Node, str] | None:
        """The result of the first rule that fires at ``node``, and its name."""
        for r in self.candidates(node):
            out = r.apply(node, self)
            if out is None:
                continue
            out = self.fit(out, node.shape)
            if out.shape != node.shape or out.dtype is not node.dtype:
                raise RewriteError(f"rule {r.name} ({r.algebra}) made {node.dtype}{list(node.shape)} into {out.dtype}{list(out.shape)}")
            if out is not node:
                self.fired[r.name] += 1
                self.fuel -= 1
                if self.fuel < 0:
                    raise RewriteError(f"rules run without end: {', '.join(name for name, _ in self.fired.most_common(8))}")
                return out, r.name
        return None

    def settle_rank(self, node: Node) -> None:
        """Ranks ``node``, whose inputs are ranked: inputs by index, then everything else by a hash of its structure, constants last.

        Built from integers and CRCs alone, so that no process's hash seed plays a part. A leaf's storage has no stable name: leaves of
        one shape and type rank alike.
        """
        name, attrs = node.op.name, node.attrs
        if name == "input":
            self.rank[node] = attrs[0]
        elif name == "const":
            self.rank[node] = (1 << 65) + zlib.crc32(repr(attrs).encode())
        else:
            text = repr(attrs[1:] if name == "leaf" else attrs) if attrs else ""
            rank = self.rank
            structure = hash((zlib.crc32(name.encode()), zlib.crc32(text.encode()), *[rank[i] for i in node.inputs]))
            rank[node] = (1 << 64) + structure  # a hash lies within 63 bits and a sign


# --- inputs first ----------------------------------------------------------------------------------------------------


def inputs_first(graph: Graph, rules: RuleSet, precision: str, fired: Counter[str]) -> Graph:
    """Every node in normal form, from the leaves up; the graph itself where no rule fires. Counts firings by rule in ``fired``.

    Raises :class:`RewriteError` where rules run in a circle or without end, or where one changes a shape or type.
    """
    nodes = graph.nodes()
    b = Rewriter(rules.index(precision), fired, _fuel(nodes))
    normal: dict[Node, Node] = {}
    for node in nodes:
        _normalise(node, graph.lines.get(node), normal, b)
    return _result(graph, normal, b.lines)


def _normalise(root: Node, line: Any, normal: dict[Node, Node], b: Rewriter) -> None:
    """Fills ``normal`` for ``root`` and for all that rules make of it, with a stack in place of recursion."""
    stack = [root]
    pending: dict[Node, tuple[Node, str]] = {}  # a rule has fired here, and what it made is on the stack
    while stack:
        node = stack[-1]
        if node in normal:
            stack.pop()
            continue
        missing = [i for i in node.inputs if i not in normal]
        if missing:
            if pending:
                _refuse_circle(missing, pending)
            stack.extend(reversed(missing))
            continue
        here = b.adopt(node, tuple([normal[i] for i in node.inputs]))
        if here not in normal:
            target = pending.get(here)
            if target is None:
                target = b.step(here)
            elif target[0] not in normal:
                _refuse_circle([here], pending)
            if target is None:
                normal[here] = here
                b.settle_rank(here)
                if line is not None:
                    b.lines.setdefault(here, line)
            elif target[0] in normal:
                pending.pop(here, None)
                normal[here] = normal[target[0]]
            else:
                pending[here] = target
                _refuse_circle([target[0]], pending)
                stack.append(target[0])
                continue
        normal[node] = normal[here]
        stack.pop()


def _refuse_circle(nodes: list[Node], pending: dict[Node, tuple[Node, str]]) -> None:
    """Raises where one of ``nodes`` waits for its own result, or where far too many wait."""
    for n in nodes:
        if n in pending:
            raise RewriteError(f"rules run in a circle: {_names(list(pending.values())[list(pending).index(n) :])}")
    if len(pending) > STEPS:
        raise RewriteError(f"rules run without end: {_names(list(pending.values())[-64:])}")


def _names(steps: Iterable[tuple[Node, str]]) -> str:
    return ", ".join(dict.fromkeys(name for _, name in steps))


# --- users first -----------------------------------------------------------------------------------------------------


def users_first(graph: Graph, rules: RuleSet, precision: str, fired: Counter[str]) -> Graph:
    """Rules tried from the outputs down, each node before its inputs; the graph itself where no rule fires.

    Rules see how many users a node has. One run need not reach a normal form. Raises as :func:`inputs_first` does.
    """
    candidates = rules.index(precision)
    order = graph.nodes()
    if not any(map(candidates, order)):
        return graph
    b = Rewriter(candidates, fired, _fuel(order))
    for node in order:
        b.table.setdefault((node.op, node.inputs, node.attrs), node)
    b.users = _count_users(order, graph.outputs)
    done: dict[Node, Node] = {i: i for i in graph.inputs}
    for root in graph.outputs:
        _descend(root, graph.lines, done, b)
    return _result(graph, done, {**graph.lines, **b.lines})


def _descend(root: Node, lines: dict[Node, Any], done: dict[Node, Node], b: Rewriter) -> None:
    stack: list[tuple[Node, Any]] = [(root, lines.get(root))]
    opened: dict[Node, Node] = {}
    while stack:
        node, line = stack[-1]
        if node in done:
            stack.pop()
            continue
        top = opened.get(node)
        if top is None:
            line = lines.get(node, line)
            top = opened[node] = _exhaust(node, b)
        missing = [i for i in top.inputs if i not in done]
        if missing:
            if any(i in opened for i in missing):
                raise RewriteError(f"rules run in a circle: {', '.join(b.fired)}")
            stack.extend((i, line) for i in reversed(missing))
            continue
        made = done[node] = b.adopt(top, tuple([done[i] for i in top.inputs]))
        if line is not None:
            b.lines.setdefault(made, line)
        stack.pop()


def _exhaust(node: Node, b: Rewriter) -> Node:
    """Applies rules at ``node`` until none fires."""
    trail: list[tuple[Node, str]] = []
    while (step := b.step(node)) is not None:
        trail.append(step)
        if len(trail) > STEPS:
            raise RewriteError(f"rules run without end: {_names(trail[-64:])}")
        _move_users(node, step[0], b)
        node = step[0]
    return node


def _count_users(order: list[Node], outputs: Iterable[Node]) -> dict[Node, int]:
    users = dict.fromkeys(order, 0)
    for node in order:
        for i in dict.fromkeys(node.inputs):
            users[i] += 1
    for node in outputs:
        users[node] += 1
    return users


def _move_users(old: Node, new: Node, b: Rewriter) -> None:
    """Keeps ``b.users`` true after ``new`` took the place of ``old``."""
    users = b.users
    assert users is not None
    stack = [] if users.get(new) else [new]
    users.setdefault(new, 0)
    while stack:  # what is new uses its inputs
        for i in dict.fromkeys(stack.pop().inputs):
            if not users.get(i):
                stack.append(i)
            users[i] = users.get(i, 0) + 1
    users[new] += users[old]
    users[old] = 0
    stack = [old]
    while stack:  # what is dead does not
        for i in dict.fromkeys(stack.pop().inputs):
            users[i] -= 1
            if not users[i]:
                stack.append(i)


def _fuel(nodes: list[Node]) -> int:
    return STEPS_PER_NODE * len(nodes) + STEPS


def _result(graph: Graph, image: dict[Node, Node], lines: dict[Node, Any]) -> Graph:
    inputs, outputs = [image[i] for i in graph.inputs], [image[o] for o in graph.outputs]
    if inputs == graph.inputs and outputs == graph.outputs:
        return graph
    return Graph(inputs, outputs, lines)
