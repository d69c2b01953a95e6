"""Loops: ``scan``, ``while_loop``, ``fori_loop``."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import hologram.primitives.control as ops
from hologram import dtypes
from hologram.control.progress import Label, counted, inner_loops_unlabelled, loop_label
from hologram.control.tracing import TOKEN_TYPE, Operands, Traced, Type, as_node, close_bodies, emit_with_token, same_structure, settle
from hologram.dtypes import DType
from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.ir.symbolic import Expr, Int
from hologram.support.user_lines import located
from hologram.trace import effects, tree
from hologram.trace.call.jit import jit_is_disabled
from hologram.trace.checks import as_function, integer
from hologram.trace.operators import SCALARS, node_as, wrap
from hologram.trace.recorder import assume, plain
from hologram.trace.tensor import namespace
from hologram.transform.tree_axes import with_axes, without_axes

_INTEGERS = (int, np.integer, Expr)


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    progress: Label = None,
) -> tuple[Any, Any]:
    """Loop over slices: ``carry, y = f(carry, x)`` for every ``x`` along the first axis of ``xs``; gives the last carry and the stacked ys.

    - ``init``: a pytree. The carry keeps its structure, shapes and types; a Python number adopts the type that comes back.
    - ``xs``: a pytree whose leaves share the extent of their first axis, or None; then ``length`` says how many steps there are.
    - ``reverse``: steps run from the last element to the first; ys stay in the places of their xs.
    - ``unroll``, a bool or an integer from 0 up, is ignored: the compiler decides.
    - ``progress``: a label, or True for the name of ``f``: a bar shows the steps that are done, the rate and the time that is left
      (docs/notebooks.md).

    Raises ShapeError, DTypeError or TreeError where the carry does not come back as it went in, and ArgumentError for lengths that differ.

    >>> hg.scan(lambda carry, x: (carry + x, carry * x), 0, hnp.asarray([1, 2, 3]))
    (Tensor(6, dtype=int64), Tensor([0, 2, 9], dtype=int64))
    """
    carry, sequence = Operands(init, "scan", "init"), Operands(xs, "scan", "xs")
    _check_unroll("scan", unroll)
    steps, label = _length(sequence, length), loop_label(progress, f, "scan")
    element = without_axes(sequence.treedef, [0] * len(sequence.nodes), "scan")
    if jit_is_disabled():
        return _scan_in_python(f, init, xs, steps, reverse, label)  # type: ignore[arg-type]  # no trace, no symbols
    elements = [Type(t.shape[1:], t.dtype, t.weak) for t in sequence.types]
    count = len(carry.nodes)

    def pack(leaves: list[Any]) -> tuple[Any, Any]:
        return tree.unflatten(carry.treedef, leaves[:count]), tree.unflatten(element, leaves[count:])

    def check(result: Any) -> None:
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            raise located(ArgumentError(f"scan: the body returns a tuple of two, the carry and what to stack, not a {type(result).__name__}"))
        same_structure("scan: the carry that the body returns", tree.structure(result[0]), carry.treedef)

    traced, types = _trace_to_fixpoint("scan", f, carry, elements, pack, check)
    ys = [traced.strengthen(i) for i in range(count, len(traced.types))]
    for i, t in enumerate(ys):
        ys[i] = Type((steps, *t.shape), t.dtype, False)
    y_tree = tree.structure(traced.result[1])
    y_tree = with_axes(y_tree, [0] * y_tree.leaves)
    starts = [node_as(x, t.dtype) for x, t in zip(carry.nodes, types, strict=True)]
    token = count if traced.has_effects else None
    if token is not None:  # the last carry
        traced.thread_token(count, count)
        types, starts = [*types, TOKEN_TYPE], [*starts, effects.token()]
    if not traced.nodes:
        return init, tree.unflatten(y_tree, [])
    outer, (body,) = close_bodies([traced])
    attrs = (body, len(outer), len(starts), steps, bool(reverse), *label)
    out = emit_with_token(ops.scan, [*outer, *starts, *sequence.nodes], attrs, [*types, *ys], token)
    return tree.unflatten(carry.treedef, out[:count]), tree.unflatten(y_tree, out[count:])


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any, *, progress: Label = None) -> Any:
    """Loop with a condition: ``value = body_fun(value)`` as long as ``cond_fun(value)`` holds; gives the last value.

    ``value`` is a pytree that keeps its structure, shapes and types; ``cond_fun`` gives a scalar bool. Forward-mode derivatives go through it,
    reverse-mode ones raise DifferentiationError. ``progress``: see :func:`scan`; how many steps are left is known where the condition compares a
    counter with a number that no step changes. Raises ShapeError, DTypeError or TreeError where one of these does not hold.

    >>> hg.while_loop(lambda x: x < 100, lambda x: x * 2, 3)
    Tensor(192, dtype=int64)
    """
    carry, label = Operands(init_val, "while_loop", "init_val"), loop_label(progress, body_fun, "while_loop")
    if jit_is_disabled():
        value = tree.unflatten(carry.treedef, [wrap(x, t.weak) for x, t in zip(carry.nodes, carry.types, strict=True)])
        for _ in counted(itertools.repeat(None), label):
            if not cond_fun(value):
                break
            value = body_fun(value)
        return value

    def pack(leaves: list[Any]) -> tuple[Any]:
        return (tree.unflatten(carry.treedef, leaves),)

    def check(result: Any) -> None:
        same_structure("while_loop: what the body returns", tree.structure(result), carry.treedef)

    if not carry.nodes:
        raise located(ArgumentError("while_loop: init_val holds no value, so the condition could never change"))
    body, types = _trace_to_fixpoint("while_loop", body_fun, carry, [], pack, check)
    test = Traced("while_loop", cond_fun, types, pack)
    if test.treedef is not tree.LEAF or test.types[0].shape:
        raise located(ShapeError(f"while_loop: the condition is a scalar bool, not {test.types[0] if len(test.types) == 1 else test.treedef}"))
    if test.types[0].dtype is not dtypes.bool_:
        raise located(DTypeError(f"while_loop: the condition is a scalar bool, not {test.types[0]}"))
    if test.has_effects:
        return _while_of_tests(cond_fun, body_fun, init_val, label)
    starts = [node_as(x, t.dtype) for x, t in zip(carry.nodes, types, strict=True)]
    token = len(types) if body.has_effects else None
    if token is not None:  # the last carry
        body.thread_token(token, token)
        test.argument(TOKEN_TYPE)
        types, starts = [*types, TOKEN_TYPE], [*starts, effects.token()]
    outer, bodies = close_bodies([test, body])
    return tree.unflatten(carry.treedef, emit_with_token(ops.while_, [*outer, *starts], (*bodies, len(outer), *label), types, token))


def _while_of_tests(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any, label: tuple[str, ...]) -> Any:
    """The loop of a condition that has effects: whether it goes on is a carry, so that the condition is a part of the body."""

    def step(carry: Any) -> Any:
        value = body_fun(carry[1])
        return cond_fun(value), value

    start = tree.map(lambda x: namespace().asarray(x) if type(x) in SCALARS else x, init_val)
    return while_loop(lambda carry: carry[0], step, (cond_fun(start), init_val), progress=label[0] if label else False)[1]


def fori_loop(
    lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any, *, unroll: int | bool | None = None, progress: Label = None
) -> Any:
    """Counted loop: ``value = body_fun(i, value)`` for i from ``lower`` up to, not including, ``upper``; gives the last value.

    With integers of Python or NumPy as bounds the loop is a scan, and reverse-mode derivatives go through it; with Tensors it is a while loop.
    ``unroll``, a bool or an integer from 0 up, is ignored; ``progress``: see :func:`scan`. Raises as :func:`scan` does.

    >>> hg.fori_loop(0, 5, lambda i, total: total + i, 0)
    Tensor(10, dtype=int64)
    """
    as_function(body_fun, "fori_loop")
    if unroll is not None:
        _check_unroll("fori_loop", unroll)
    hnp, label = namespace(), loop_label(progress, body_fun, "fori_loop")
    shown = label[0] if label else False
    if isinstance(lower, _INTEGERS) and isinstance(upper, _INTEGERS):
        count: Int = _steps(lower, upper)

        def step(carry: Any, _: Any) -> tuple[Any, None]:
            i, value = carry
            return (i + 1, body_fun(i, value)), None

        return scan(step, (hnp.asarray(lower, dtype=_counter(lower, upper).np), init_val), None, count, progress=shown)[0][1]  # type: ignore[arg-type]
    kind = _counter(lower, upper).np
    start = (hnp.asarray(lower, dtype=kind), hnp.asarray(upper, dtype=kind), init_val)
    return while_loop(lambda c: c[0] < c[1], lambda c: (c[0] + 1, c[1], body_fun(c[0], c[2])), start, progress=shown)[2]


def _steps(lower: Any, upper: Any) -> Int:
    """How many steps there are."""
    first, last = (plain(n) if isinstance(n, Expr) else int(n) for n in (lower, upper))
    count: Int = last - first
    return max(0, count) if isinstance(count, int) else count


def _counter(lower: Any, upper: Any) -> DType:
    """The type that counts from ``lower`` to ``upper``: theirs, where a weak one takes the other's."""
    strong: list[DType] = []
    for name, bound in (("lower", lower), ("upper", upper)):
        node, weak = as_node(bound, f"fori_loop: {name}")
        if node.shape or not node.dtype.is_integer:
            raise located(DTypeError(f"fori_loop: {name} is a scalar integer, not {node.dtype}{list(node.shape)}"))
        strong += [] if weak else [node.dtype]
    return functools.reduce(dtypes.promote, strong) if strong else dtypes.default_int


def _check_unroll(what: str, unroll: Any) -> None:
    if integer(unroll, what, "unroll") < 0:
        raise located(ArgumentError(f"{what}: unroll is a bool or an integer from 0 up, not {unroll!r}"))


def _length(sequence: Operands, length: Any) -> Int:
    """The number of steps. Raises ArgumentError or ShapeError where the sequences and ``length`` do not agree on one."""
    found: dict[Int, str] = {}
    for t, path in zip(sequence.types, sequence.paths, strict=True):
        if not t.shape:
            raise located(ShapeError(f"scan: {path} is a scalar, which has no axis to step along"))
        found.setdefault(t.shape[0], path)
    length = plain(length)
    if length is not None:
        if not isinstance(length, (int, Expr)) or (isinstance(length, int) and length < 0):
            raise located(ArgumentError(f"scan: length is an integer from 0 up, not {length!r}"))
        assume(length)
        found.setdefault(length, "length")
    if len(found) > 1:
        (a, at), (b, to) = list(found.items())[:2]
        raise located(ArgumentError(f"scan: {at} has {a} steps and {to} has {b}"))
    if not found:
        raise located(ArgumentError("scan: without xs it takes a length"))
    return next(iter(found))


def _trace_to_fixpoint(
    what: str, f: Callable[..., Any], carry: Operands, extra: Sequence[Type], pack: Callable[[list[Any]], Any], check: Callable[[Any], None]
) -> tuple[Traced, list[Type]]:
    """The body, traced until weak carries have the types that come back; and the carries' types."""
    types = list(carry.types)
    while True:  # a type that changes becomes wider or strong, so this ends
        traced = Traced(what, inner_loops_unlabelled(f), [*types, *extra], pack)
        check(traced.result)
        wanted = settle(what, traced, types, carry.paths, "the body")
        if wanted is None:
            weak = [Type(a.shape, a.dtype, a.weak and b.weak) for a, b in zip(types, traced.types, strict=False)]
            return traced, weak
        types = wanted


def _scan_in_python(f: Callable[..., Any], init: Any, xs: Any, steps: int, reverse: bool, label: tuple[str, ...]) -> tuple[Any, Any]:
    """The meaning, step by step, for a block under ``disable_jit``."""
    hnp = namespace()
    carry = tree.map(lambda x: hnp.asarray(x) if type(x) in SCALARS else x, init)
    ys: list[Any] = []
    for i in counted(range(steps)[::-1] if reverse else range(steps), label):
        carry, y = f(carry, tree.map(lambda x, i=i: x[i], xs))
        ys.append(y)
    if not ys:
        raise located(ArgumentError("scan of no steps says nothing of what it stacks while jit is disabled"))
    return carry, tree.map(lambda *y: hnp.stack(y), *(ys[::-1] if reverse else ys))
