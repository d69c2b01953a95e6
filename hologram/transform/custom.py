"""Functions with derivatives of their own: ``custom_jvp`` and ``custom_vjp``.

What such a function returns is wrapped in ``custom`` nodes, whose inputs are the value and the arguments. A derivative goes through these to the
arguments, never through the value. The function sees its arguments as ``custom`` nodes without arguments, through which no derivative goes. So one
that reaches the value comes from what the function reads from around it: the rule does not know of that, and it raises an error.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from hologram import dtypes
from hologram.errors import ArgumentError, DifferentiationError
from hologram.ir.node import Node
from hologram.ir.op import transforms
from hologram.ir.symbolic import Int
from hologram.primitives.markers import custom, part, pullback
from hologram.support.user_lines import located
from hologram.trace import tree
from hologram.trace.checks import as_function, integer, items
from hologram.trace.operators import wrap
from hologram.trace.recorder import current, record, transforming
from hologram.trace.tree import LEAF, NONE, Treedef
from hologram.transform.arguments import array_node, cotangent_nodes, result_nodes, tensors
from hologram.transform.differentiate import in_reverse_mode, push
from hologram.transform.levels import Level
from hologram.transform.named_axes import mesh_axes, rebound, stacked_axis, stacking
from hologram.transform.nodes import full, sum_over, zeros_like
from hologram.transform.rules.batching import stack_of
from hologram.transform.stacking import stacked
from hologram.transform.transformed import Wrapper

Function = Callable[..., Any]


class Rule(ABC):
    """The derivative of one call: what ``custom`` nodes carry."""

    weak: tuple[bool, ...] | None = None  # which arguments are weakly typed; None: no one
    closure_error: str | None = None  # of a derivative through the value, where only what the function closes over has one; None: it is ignored
    transparent = False  # whether it is the derivative of the ops that the value was computed with
    _found: tuple[Any, Sequence[Node]] = None, ()
    _stack: tuple[Any, Any] = None, None

    @abstractmethod
    def tangents(self, arguments: Sequence[Node], given: Sequence[Node | None]) -> Sequence[Node]:
        """Tangents of all results."""

    def stack(self, size: Int, batched: Sequence[bool]) -> Rule:
        """The rule for a stack of ``size`` calls; a flag tells of each argument whether it is stacked."""
        return _StackedRule(self, size, tuple(batched))

    def shared(self, arguments: tuple[Node, ...], given: tuple[Node | None, ...]) -> Sequence[Node]:
        """:meth:`tangents`, found once for all results of the call."""
        if self._found[0] != (arguments, given):
            self._found = (arguments, given), self.tangents(arguments, given)
        return self._found[1]

    def shared_stack(self, size: Int, batched: tuple[bool, ...]) -> Rule:
        """:meth:`stack`, made once for all results of the call."""
        if self._stack[0] != (size, batched):
            self._stack = (size, batched), self.stack(size, batched)
        return self._stack[1]


class _StackedRule(Rule):
    def __init__(self, rule: Rule, size: Int, batched: tuple[bool, ...]) -> None:
        self.rule, self.size, self.batched, self.transparent, self.closure_error = rule, size, batched, rule.transparent, rule.closure_error
        self.axis_name = stacked_axis()

    def tangents(self, arguments: Sequence[Node], given: Sequence[Node | None]) -> Sequence[Node]:
        n = len(arguments)
        there = [i for i, t in enumerate(given) if t is not None]

        def of_example(nodes: list[Node]) -> Sequence[Node]:
            some: list[Node | None] = [None] * n
            for i, t in zip(there, nodes[n:], strict=True):
                some[i] = t
            return self.rule.tangents(nodes[:n], some)

        flags = [*self.batched, *[self.batched[i] for i in there]]
        return stacked(of_example, [*arguments, *[t for t in given if t is not None]], flags, self.size, self.axis_name)


class ReverseRule(Rule):
    """A derivative that in reverse mode waits for the cotangents."""

    def __init__(self) -> None:
        self._used: dict[tuple[Node, ...], tuple[Level, Sequence[Node]]] = {}  # by arguments: the results of the forward part

    @abstractmethod
    def forward(self, arguments: Sequence[Node]) -> tuple[list[Node], list[Node]]:
        """Results, and residuals for :meth:`backward`."""

    @abstractmethod
    def backward(self, arguments: Sequence[Node], residuals: Sequence[Node], cotangents: Sequence[Node]) -> list[Node | None]:
        """Cotangents of the arguments."""

    @abstractmethod
    def pushed(self, arguments: Sequence[Node], given: Sequence[Node]) -> Sequence[Node]:
        """Tangents of all results, in forward mode."""

    def tangents(self, arguments: Sequence[Node], given: Sequence[Node | None]) -> Sequence[Node]:
        directions = [zeros_like(x) if t is None else t for x, t in zip(arguments, given, strict=True)]
        used = self._used.get(tuple(arguments))
        if used is not None:  # by a level further in: what is left to differentiate is the forward part
            tangents = push(*used, dict(zip(arguments, directions, strict=True)))
            return [zeros_like(r) if t is None else t for r, t in zip(used[1], tangents, strict=True)]
        if not in_reverse_mode():
            return self.pushed(arguments, directions)
        with Level() as level:
            results, residuals = self.forward(arguments)
        level.keep(arguments, results)
        self._used[tuple(arguments)] = level, results
        types = tuple((r.shape, r.dtype.name) for r in results)
        whole = record(pullback, (*residuals, *arguments, *directions), (self, len(residuals), types))
        return [record(part, (whole,), (i, types)) for i in range(len(types))]

    def stack(self, size: Int, batched: Sequence[bool]) -> Rule:
        return _StackedReverseRule(self, size, tuple(batched))


class _StackedReverseRule(ReverseRule):
    def __init__(self, rule: ReverseRule, size: Int, batched: tuple[bool, ...]) -> None:
        super().__init__()
        self.rule, self.size, self.batched, self.transparent, self.closure_error = rule, size, batched, rule.transparent, rule.closure_error
        self.axis_name = stacked_axis()

    def forward(self, arguments: Sequence[Node]) -> tuple[list[Node], list[Node]]:
        count = 0

        def of_example(nodes: list[Node]) -> list[Node]:
            nonlocal count
            values, residuals = self.rule.forward(nodes)
            count = len(values)
            return [*values, *residuals]

        stacks = stacked(of_example, arguments, self.batched, self.size, self.axis_name)
        return stacks[:count], stacks[count:]

    def backward(self, arguments: Sequence[Node], residuals: Sequence[Node], cotangents: Sequence[Node]) -> list[Node | None]:
        n, m = len(arguments), len(residuals)
        there: list[bool] = []

        def of_example(nodes: list[Node]) -> list[Node]:
            made = self.rule.backward(nodes[:n], nodes[n : n + m], nodes[n + m :])
            there[:] = [x is not None for x in made]
            return [x for x in made if x is not None]

        flags = [*self.batched, *[True] * (m + len(cotangents))]
        stacks = iter(stacked(of_example, [*arguments, *residuals, *cotangents], flags, self.size, self.axis_name))
        made = [next(stacks) if t else None for t in there]
        return [x if flag or x is None else sum_over(x, (0,)) for x, flag in zip(made, self.batched, strict=True)]

    def pushed(self, arguments: Sequence[Node], given: Sequence[Node]) -> Sequence[Node]:
        with stacking(self.axis_name):
            return _StackedRule(self.rule, self.size, self.batched).tangents(arguments, given)


# --- the rows --------------------------------------------------------------------------------------------------------


def _custom_jvp(tangents: Sequence[Node | None], out: Node, *rest: Any) -> Node:
    *inputs, rule, index = rest
    if tangents[0] is not None and rule.closure_error is not None:
        raise located(DifferentiationError(rule.closure_error))
    return rule.shared(tuple(inputs[1:]), tuple(tangents[1:]))[index]


def _custom_batch(size: Int, batched: Sequence[bool], *rest: Any) -> Node:
    value, *arguments, rule, index = rest
    stack = value if batched[0] else stack_of(value, size)
    return record(custom, (stack, *arguments), (rule.shared_stack(size, tuple(batched[1:])), index))


def transpose_of_value(cotangent: Node, linear: Sequence[bool], *rest: Any) -> tuple[Node | None, ...]:
    """The value's alone: it is linear in what it was computed from, or no tangent passes here."""
    *inputs, _, _ = rest
    return (cotangent if linear[0] else None, *[None] * (len(inputs) - 1))


transforms(custom, jvp=_custom_jvp, transpose=transpose_of_value, batch=_custom_batch)


class _ArgumentRule(Rule):
    """The rule of an argument inside of the function: never asked for, since there is nothing that derivatives go to."""

    def tangents(self, arguments: Sequence[Node], given: Sequence[Node | None]) -> Sequence[Node]:
        raise AssertionError(self)

    def stack(self, size: Int, batched: Sequence[bool]) -> Rule:
        return self


ARGUMENT = _ArgumentRule()


def by_closure(function: str) -> str:
    """What to say of a derivative by what ``function`` reads from around it."""
    return f"{function} reads a value that is differentiated and no argument of its rule: pass it as one"


def _as_argument(x: Node) -> Node:
    """``x`` for a function with a derivative of its own. Where that is a linear function of tangents, cotangents go through it."""
    return record(custom, (x,), (ARGUMENT, 0))


def wrapped(values: Sequence[Node], arguments: Sequence[Node], rule: Rule) -> list[Node]:
    return [record(custom, (v, *arguments), (rule, i)) for i, v in enumerate(values)]


# --- calls -----------------------------------------------------------------------------------------------------------


class _Custom(Wrapper):
    """What the two decorators share: positions that are not differentiated, and calls that need no rule.

    Rules take every argument by position, those given by keyword or left at their defaults too.
    """

    _what = ""

    def __init__(self, f: Function, nondiff_argnums: Sequence[int] = ()) -> None:
        what = type(self).__name__
        self.f, self.nondiff = as_function(f, what), tuple(integer(i, what, "nondiff_argnums") for i in items(nondiff_argnums, what, "positions"))
        functools.update_wrapper(self, f)

    def _rule(self, plain: list[Any], structure: Treedef, out: Treedef) -> Rule:
        raise NotImplementedError

    def _positional(self, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments by position, as rules take them: keywords and defaults in their places."""
        name = getattr(self, "__name__", "the function")
        try:
            bound = inspect.signature(self.f).bind(*args, **options)
        except (TypeError, ValueError) as error:  # a ValueError where the function does not tell its parameters
            if isinstance(error, ValueError) and not options:
                return args
            raise located(ArgumentError(f"{self._what}: {name}: {error}")) from None
        bound.apply_defaults()
        if bound.kwargs:
            raise located(
                ArgumentError(f"{self._what}: {name} takes {', '.join(bound.kwargs)} by keyword only, and rules take arguments by position")
            )
        return bound.args

    def __call__(self, *args: Any, **options: Any) -> Any:
        if not transforming() and current() is None:
            return self.f(*args, **options)
        every = self._positional(args, options)
        plain = [every[i] for i in self.nondiff]
        differentiated = tuple(x for i, x in enumerate(every) if i not in self.nondiff)
        leaves, structure = tree.flatten(differentiated)
        given = [array_node(x, self._what) for x in leaves]

        some = tree.unflatten(structure, [wrap(_as_argument(n), weak) for n, weak in given])
        values, out = result_nodes(self.f(*_inserted(some, self.nondiff, plain)), self._what)
        rule = self._rule(plain, structure, out)
        rule.weak = tuple(weak for _, weak in given)
        rule.closure_error = by_closure(f"{self._what}: {getattr(self, '__name__', 'the function')}")
        return tensors(out, wrapped(values, [n for n, _ in given], rule))


class custom_jvp(_Custom):  # noqa: N801 - a decorator
    """Decorator that gives ``f`` a forward derivative of its own, from which reverse mode follows.

    ``@f.defjvp`` takes ``rule(*nondiff, primals, tangents)`` and gives ``(result, tangent of the result)``, linear in the tangents;
    ``f.defjvps(rule_of_arg_0, …)`` takes, for each argument, None or ``rule(tangent, result, *primals)``, whose values add up. ``nondiff_argnums``
    are arguments that derivatives do not reach. Raises DifferentiationError where there is no rule, its results do not fit, or ``f`` reads a value
    that is differentiated and no argument.

    >>> @hg.custom_jvp
    ... def f(x):
    ...     return hnp.abs(x)
    >>> f.defjvps(lambda tangent, result, x: 10 * tangent)
    >>> hg.grad(f)(-3.0)
    Tensor(10., dtype=float32)
    """

    _what = "custom_jvp"

    def __init__(self, f: Function, nondiff_argnums: Sequence[int] = ()) -> None:
        super().__init__(f, nondiff_argnums)
        self.jvp: Function | None = None

    def defjvp(self, rule: Function) -> Function:
        """Sets the rule ``rule(*nondiff, primals, tangents)``, which gives ``(result, tangent of the result)``; usable as a decorator."""
        self.jvp = rule
        return rule

    def defjvps(self, *rules: Function | None) -> None:
        """Sets, for each argument, None or a rule ``rule(tangent, result, *primals)``; what they give adds up."""

        def rule(*given: Any) -> Any:
            *plain, primals, tangents = given
            out = self(*_inserted(primals, self.nondiff, plain))
            terms = [r(t, out, *primals) for r, t in zip(rules, tangents, strict=True) if r is not None]
            return out, functools.reduce(lambda a, b: tree.map(lambda x, y: x + y, a, b), terms) if terms else tree.map(lambda x: x * 0, out)

        self.jvp = rule

    def _rule(self, plain: list[Any], structure: Treedef, out: Treedef) -> Rule:
        if self.jvp is None:
            raise located(DifferentiationError(f"custom_jvp: {getattr(self, '__name__', 'the function')} has no rule: give it one with defjvp"))
        return _JvpRule(self.jvp, plain, structure, out)


def _inserted(args: Sequence[Any], positions: Sequence[int], plain: Sequence[Any]) -> list[Any]:
    every = list(args)
    for i, x in sorted(zip(positions, plain, strict=True), key=lambda pair: pair[0]):
        every.insert(i, x)
    return every


class _JvpRule(Rule):
    def __init__(self, jvp: Function, plain: list[Any], structure: Treedef, out: Treedef) -> None:
        self.jvp, self.plain, self.structure, self.out, self.axes = jvp, plain, structure, out, mesh_axes()

    def tangents(self, arguments: Sequence[Node], given: Sequence[Node | None]) -> Sequence[Node]:
        directions = [zeros_like(x) if t is None else t for x, t in zip(arguments, given, strict=True)]
        with rebound(self.axes):
            result = self.jvp(*self.plain, tensors(self.structure, arguments, self.weak), tensors(self.structure, directions, self.weak))
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise located(ArgumentError("custom_jvp: the rule returns (result, tangent of the result)"))
        values, _ = result_nodes(result[0], "custom_jvp")
        return cotangent_nodes(result[1], self.out, values, "custom_jvp: the tangent of the result", convert=True)


class custom_vjp(_Custom):  # noqa: N801 - a decorator
    """Decorator that gives ``f`` a reverse derivative of its own: ``f.defvjp(fwd, bwd)``.

    ``fwd(*args)`` gives ``(result, residuals)``; ``bwd(*nondiff, residuals, cotangents)`` the tuple of the arguments' cotangents, None for zeros,
    also in place of a part of a pytree. Forward mode through ``f`` raises DifferentiationError, and so does a derivative by a value that ``f`` reads
    from around it; forward mode through its gradient differentiates ``fwd`` and ``bwd``.

    >>> @hg.custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda residuals, g: (hnp.clip(g, -1, 1),))
    >>> hg.grad(lambda x: 5 * clipped(x))(2.0)
    Tensor(1., dtype=float32)
    """

    _what = "custom_vjp"

    def __init__(self, f: Function, nondiff_argnums: Sequence[int] = ()) -> None:
        super().__init__(f, nondiff_argnums)
        self.fwd: Function | None = None
        self.bwd: Function | None = None

    def defvjp(self, fwd: Function, bwd: Function) -> None:
        """Sets the rules: ``fwd(*args)`` gives ``(result, residuals)``, ``bwd(*nondiff, residuals, cotangents)`` the arguments' cotangents."""
        self.fwd, self.bwd = fwd, bwd

    def _rule(self, plain: list[Any], structure: Treedef, out: Treedef) -> Rule:
        if self.fwd is None or self.bwd is None:
            raise located(DifferentiationError(f"custom_vjp: {getattr(self, '__name__', 'the function')} has no rule: give it one with defvjp"))
        return _VjpRule(self, plain, structure, out)


class _VjpRule(ReverseRule):
    def __init__(self, function: custom_vjp, plain: list[Any], structure: Treedef, out: Treedef) -> None:
        super().__init__()
        self.function, self.plain, self.structure, self.out, self.axes = function, plain, structure, out, mesh_axes()
        self.saved: Treedef | None = None  # the structure of the residuals
        self.saved_weak: list[bool] = []  # which of them are weakly typed

    def forward(self, arguments: Sequence[Node]) -> tuple[list[Node], list[Node]]:
        assert self.function.fwd is not None
        with rebound(self.axes):
            made = self.function.fwd(*_inserted(tensors(self.structure, arguments, self.weak), self.function.nondiff, self.plain))
        if not isinstance(made, (tuple, list)) or len(made) != 2:
            raise located(ArgumentError("custom_vjp: fwd returns (result, residuals)"))
        leaves, self.saved = tree.flatten(made[1])
        results, found = result_nodes(made[0], "custom_vjp")
        if found != self.out:
            raise located(ArgumentError(f"custom_vjp: fwd returned a result of structure {found}, not {self.out}"))
        kept = [array_node(x, "custom_vjp") for x in leaves]
        self.saved_weak = [weak for _, weak in kept]
        return results, [node for node, _ in kept]

    def backward(self, arguments: Sequence[Node], residuals: Sequence[Node], cotangents: Sequence[Node]) -> list[Node | None]:
        assert self.function.bwd is not None and self.saved is not None
        with rebound(self.axes):
            made = self.function.bwd(*self.plain, tensors(self.saved, residuals, self.saved_weak), tensors(self.out, cotangents))
        children = self.structure.children
        if not isinstance(made, (tuple, list)) or len(made) != len(children):
            raise located(ArgumentError(f"custom_vjp: bwd returns a tuple of {len(children)} cotangents"))
        found: list[Node | None] = []
        for value, child in zip(made, children, strict=True):
            like = arguments[len(found) : len(found) + child.leaves]
            found += _cotangents_or_none(value, child, like)
        return found

    def pushed(self, arguments: Sequence[Node], given: Sequence[Node]) -> Sequence[Node]:
        advice = "use grad or vjp, or define a custom_jvp"
        raise located(DifferentiationError(f"a function with a custom_vjp has no derivative in forward mode: {advice}"))


def _cotangents_or_none(value: Any, structure: Treedef, like: Sequence[Node]) -> list[Node | None]:
    """The cotangents that ``bwd`` returned for one argument, whose leaves are ``like``: None for those that are below a None of ``value``."""
    leaves, found = tree.flatten(value)
    is_given = _given_leaves(found, structure)
    if is_given is not None:
        structure, like = Treedef(tuple, None, (LEAF,) * len(leaves)), [x for x, given in zip(like, is_given, strict=True) if given]
        value = tuple(leaves)
    nodes = iter(cotangent_nodes(value, structure, like, "custom_vjp: a cotangent that bwd returned", convert=True))
    return [next(nodes) if given else None for given in is_given or ()]


def _given_leaves(found: Treedef, wanted: Treedef) -> list[bool] | None:
    """For each leaf of ``wanted`` whether ``found``, which may have None for parts of it, has it too. None where they do not fit."""
    if found == NONE:
        return [False] * wanted.leaves
    if found.kind is not wanted.kind or found.data != wanted.data or len(found.children) != len(wanted.children):
        return None
    if wanted == LEAF:
        return [True]
    flags: list[bool] = []
    for below, child in zip(found.children, wanted.children, strict=True):
        inside = _given_leaves(below, child)
        if inside is None:
            return None
        flags += inside
    return flags


def _pullback_transpose(cotangents: tuple[Node | None, ...], linear: Sequence[bool], *rest: Any) -> tuple[Node | None, ...]:
    *inputs, rule, saved, types = rest
    arguments = (len(inputs) - saved) // 2
    given = [full(0, dtypes.of(d), shape) if c is None else c for c, (shape, d) in zip(cotangents, types, strict=True)]
    made = rule.backward(inputs[saved : saved + arguments], inputs[:saved], given)
    passed = [c if flag else None for c, flag in zip(made, linear[saved + arguments :], strict=True)]
    return (*[None] * (saved + arguments), *passed)


def _part_transpose(cotangent: Node, linear: Sequence[bool], whole: Node, index: int, types: tuple[Any, ...]) -> tuple[Any]:
    return (tuple(cotangent if i == index else None for i in range(len(types))),)


def _no_second(*_: Any) -> Any:
    raise located(DifferentiationError("the tangent of a function with a custom_vjp cannot be differentiated before it is pulled back"))


transforms(pullback, jvp=_no_second, transpose=_pullback_transpose)
transforms(part, jvp=_no_second, transpose=_part_transpose)
