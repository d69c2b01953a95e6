"""Rewrite rules: written as patterns or as functions, and sets of them, indexed by op.

A rule has a name, its algebra in words, and a guarantee: ``exact`` (the same bits, NaNs being one class), ``standard`` (NaN, Inf and -0 keep their
meaning, 2 ULP) or ``fast`` (finite values, reassociation)."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hologram.dtypes import DType
from hologram.errors import RewriteError
from hologram.graph.rewrite.pattern import Apply, Bindings, Literal, Pattern, Var, free
from hologram.graph.rewrite.rewriter import Rewriter, Rule
from hologram.ir.node import Node
from hologram.ir.op import TABLE, Op
from hologram.support.precision import GUARANTEES

RuleFunction = Callable[[Node, "Rewriter"], Node | None]


# (builder, element type) -> graph outputs on which a rule is tried by the generated tests; () where the type does not fit
Examples = Callable[["Rewriter", DType], Iterable[Node]]


class PatternRule(Rule):
    """``pattern`` = ``build``, both in the language of :mod:`hologram.graph.rewrite.pattern`; ``build`` may be ``f(b, <variables by name>)``.

    ``kinds``: dtype kinds that the pattern's untyped variables take. ``where(<variables by name>)``: a further condition on the nodes. A number
    on the right takes the node's own type where nothing beside it has one.
    """

    __slots__ = ("pattern", "result", "kinds", "where", "_build_names", "_where_names", "_forms", "_needs")

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
        self._needs: list[tuple[Need, ...]] | None = None

    @property
    def forms(self) -> list[Apply]:
        """The pattern with commutative operands in every order."""
        if self._forms is None:
            self._forms = self.pattern.alternatives()  # type: ignore[assignment]
        return self._forms  # type: ignore[return-value]

    @property
    def heads(self) -> tuple[str, ...]:
        return (self.pattern.op,)

    @property
    def operands(self) -> frozenset[str] | None:
        named = [[name for p in f.inputs if (name := _operand_name(p)) is not None] for f in self.forms]
        return frozenset([names[0] for names in named]) if all(named) else None

    @property
    def is_shallow(self) -> bool:
        inner = [q for p in self.pattern.inputs if isinstance(p, Apply) for q in p.inputs]
        return self.where is None and not any(isinstance(q, Apply) for q in inner)

    def relevant(self, inputs: Sequence[Op], kinds: str) -> bool:
        if self._needs is None:
            self._needs = [tuple([_need(p, self.kinds) for p in f.inputs]) for f in self.forms]
        for needs in self._needs:
            for (name, taken), op, kind in zip(needs, inputs, kinds, strict=True):
                if (name is not None and op.name != name) or (taken is not None and kind not in taken):
                    break
            else:
                return True
        return False

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

    __slots__ = ("ops", "over", "among", "within", "function", "examples", "shallow")

    def __init__(
        self,
        name: str,
        algebra: str,
        guarantee: str,
        function: RuleFunction,
        ops: tuple[str, ...],
        over: Any,
        among: Any,
        within: Any,
        examples: Examples,
        shallow: bool,
    ) -> None:
        super().__init__(name, algebra, guarantee)
        self.function, self.ops, self.over, self.among, self.within = function, ops, over, among, within
        self.examples, self.shallow = examples, shallow

    @property
    def is_shallow(self) -> bool:
        return self.shallow

    @property
    def heads(self) -> tuple[str, ...]:
        return self.ops

    @property
    def operands(self) -> frozenset[str] | None:
        names = self.over or self.among or self.within
        return None if names is None else frozenset(names)

    def relevant(self, inputs: Sequence[Op], kinds: str) -> bool:
        if self.over is not None and not (inputs and _named(inputs[0], self.over)):
            return False
        if self.within is not None and not all(_named(i, self.within) for i in inputs):
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
    within: Iterable[str] | None = None,
    shallow: bool = False,
) -> Callable[[RuleFunction], FunctionRule]:
    """Decorates ``f(node, b) -> Node | None`` into a rule.

    It is tried at nodes whose op is named in ``ops``, whose first input's op is in ``over``, any of whose inputs is in ``among``, and all of whose
    inputs are in ``within``. ``@kind`` stands for all ops of that kind, ``@word`` for those with that word in their algebra. ``shallow``: see
    :attr:`Rule.is_shallow`.
    """

    def decorate(function: RuleFunction) -> FunctionRule:
        first, some, every = [None if names is None else tuple(names) for names in (over, among, within)]
        return FunctionRule(name, algebra, guarantee, function, tuple(ops), first, some, every, examples, shallow)

    return decorate


def _named(op: Op, names: Iterable[str]) -> bool:
    return not _heads(op).isdisjoint(names)


@functools.cache
def _heads(op: Op) -> frozenset[str]:
    """The names that stand for ``op`` among a rule's heads."""
    return frozenset((op.name, "@" + op.kind, *["@" + word for word in op.algebra]))


Need = tuple[str | None, str | None]  # the op, and the kinds of types, that an operand needs for a pattern to match it; None where any will do


def _need(pattern: Pattern, kinds: str | None) -> Need:
    """What an operand needs for a pattern, whose untyped variables take ``kinds``, to match it."""
    if isinstance(pattern, Var):
        return "const" if pattern.const else None, kinds if pattern.kinds is None else pattern.kinds
    return (pattern.op if isinstance(pattern, Apply) else "const"), None


def _operand_name(pattern: Pattern) -> str | None:
    """The op that a pattern matches alone; None for one that matches several."""
    if isinstance(pattern, Apply):
        return pattern.op
    return "const" if not isinstance(pattern, Var) or pattern.const else None


def _parameters(f: Any) -> tuple[str, ...]:
    code = f.__code__
    return code.co_varnames[: code.co_argcount]


class RuleSet:
    """Rules in their order, indexed for each precision by a node's op, and its inputs' ops and kinds of types."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        doubled = [n for n, k in Counter(r.name for r in self.rules).items() if k > 1]
        if doubled:
            raise RewriteError(f"two rules are called {', '.join(doubled)}")
        self._index: dict[str, Callable[[Node], tuple[Rule, ...]]] = {}

    def at(self, precision: str) -> list[Rule]:
        """The rules whose guarantee is strong enough for ``precision``."""
        if precision not in GUARANTEES:
            raise ValueError(f"precision {precision!r} is none of {', '.join(GUARANTEES)}")
        allowed = GUARANTEES[: GUARANTEES.index(precision) + 1]
        return [r for r in self.rules if r.guarantee in allowed]

    def index(self, precision: str) -> Callable[[Node], tuple[Rule, ...]]:
        """A function from a node to the rules that could fire there."""
        found = self._index.get(precision)
        if found is None:
            found = self._index[precision] = self._candidates(self.at(precision))
        return found

    def operands_at(self, precision: str, op: Op) -> frozenset[Op]:
        """The ops of operands that rules at nodes of ``op`` ask for: of others the rules that could fire do not depend."""
        names = [r.operands for r in self.at(precision) if not _heads(op).isdisjoint(r.heads)]
        wanted = frozenset().union(*[n for n in names if n is not None])
        return frozenset([o for o in TABLE.values() if not _heads(o).isdisjoint(wanted)])

    def _candidates(self, rules: list[Rule]) -> Callable[[Node], tuple[Rule, ...]]:
        known: dict[Any, tuple[Rule, ...]] = {}
        tried = _tried_at(rules)

        def candidates(node: Node) -> tuple[Rule, ...]:
            inputs = node.inputs
            if len(inputs) == 2:
                x, y = inputs
                key: Any = (node.op, x.op, y.op, x.dtype.kind, y.dtype.kind)
            elif len(inputs) < 4:
                key = (node.op, *[i.op for i in inputs], *[i.dtype.kind for i in inputs])
            else:  # any number of inputs: which ops occur must do
                key = (node.op, inputs[0].op, frozenset([i.op for i in inputs]))
            got = known.get(key)
            if got is None:
                ops, kinds = [i.op for i in inputs], "".join([i.dtype.kind for i in inputs])
                got = known[key] = tuple([r for r in tried(node.op, ops) if r.relevant(ops, kinds)])
            return got

        return candidates


def _tried_at(rules: list[Rule]) -> Callable[[Op, Sequence[Op]], list[Rule]]:
    """A function from an op, and those of its inputs, to the rules that have it among their heads and whose operands these may be, in their order."""
    by_head: dict[str, list[int]] = {}
    for place, r in enumerate(rules):
        for head in r.heads:
            by_head.setdefault(head, []).append(place)
    known: dict[Op, dict[str | None, list[int]]] = {}

    def by_operand(op: Op) -> dict[str | None, list[int]]:
        """The places of the rules for an op, by each name that an operand needs; those that need none by None."""
        found = known.get(op)
        if found is None:
            found = {}
            for place in sorted({place for head in _heads(op) for place in by_head.get(head, ())}):
                for name in (None,) if (names := rules[place].operands) is None else names:
                    found.setdefault(name, []).append(place)
            known[op] = found
        return found

    def tried(op: Op, inputs: Sequence[Op]) -> list[Rule]:
        table = by_operand(op)
        names: set[str | None] = {None}.union(*map(_heads, inputs))
        return [rules[place] for place in sorted({place for name in names.intersection(table) for place in table[name]})]

    return tried
