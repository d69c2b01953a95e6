"""Checks whose failures are results of a program instead of exceptions, under the names of ``jax.experimental.checkify``.

A run of a checked function asks for a number when it begins, notes the first failure under it, and gives that failure's code when it ends. All three
are calls for their effects, which are ordered: so checks work in loops, branches, under ``vmap`` and in derivatives.
"""

from __future__ import annotations

import functools
import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import numpy as np

import hologram.numpy as hnp
from hologram.control.effects import io_callback
from hologram.debug import checks
from hologram.errors import ArgumentError, CheckError
from hologram.ir.node import Node
from hologram.ir.op import TABLE
from hologram.primitives.reductions import reduce_any
from hologram.support.user_lines import located, where
from hologram.trace import tree
from hologram.trace.call.jit import jit
from hologram.trace.checks import as_function
from hologram.trace.operators import wrap
from hologram.trace.recorder import record, thread_state
from hologram.transform.nodes import number

__all__ = [
    "Error", "ErrorCategory", "JaxRuntimeError", "all_checks", "automatic_checks", "check", "check_error", "checkify", "debug_check", "div_checks",
    "float_checks", "index_checks", "init_error", "nan_checks", "user_checks",
]  # fmt: skip

JaxRuntimeError = CheckError
_KEPT = 4096  # failures whose texts are remembered, and runs that have not ended


class ErrorCategory(Enum):
    """What :func:`checkify` looks for.

    >>> from hologram.experimental import checkify
    >>> sorted(c.value for c in checkify.float_checks)
    ['division', 'nan']
    """

    USER = "user"
    NAN = "nan"
    DIVISION = "division"
    INDEX = "index"


user_checks = frozenset({ErrorCategory.USER})
nan_checks = frozenset({ErrorCategory.NAN})
div_checks = frozenset({ErrorCategory.DIVISION})
index_checks = frozenset({ErrorCategory.INDEX})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


class Error:
    """Whether a checked function failed, and how: a pytree of one array, the code of its first failure, or 0; of a stack of runs their codes.

    >>> from hologram.experimental import checkify
    >>> checkify.checkify(lambda x: 1 / x, errors=checkify.div_checks)(2.0)
    (Error(None), Tensor(0.5, dtype=float32))
    """

    def __init__(self, code: Any) -> None:
        self.code = code

    def get(self) -> str | None:
        """What the first failure says, of a stack of runs those of all that failed; None where nothing did."""
        found = {int(c) for c in np.ravel(np.asarray(self.code))} - {0}
        texts = [_failures.get(c, "a check failed, too many failures ago to be known") for c in sorted(found)]
        return "\n".join(texts) if texts else None

    def throw(self) -> None:
        """Raises CheckError with :meth:`get`'s text where something failed."""
        text = self.get()
        if text is not None:
            raise CheckError(text)

    def get_exception(self) -> CheckError | None:
        """The error that :meth:`throw` raises, or None."""
        text = self.get()
        return None if text is None else CheckError(text)

    def __repr__(self) -> str:
        return f"Error({self.get()!r})"


tree.register(Error, lambda e: ((e.code,), None), lambda _, children: Error(*children))


# --- runs and failures ------------------------------------------------------------------------------------------------------

_failures: OrderedDict[int, str] = OrderedDict()
_runs: OrderedDict[int, int] = OrderedDict()
_numbers = itertools.count(1)
_SCALAR = np.zeros((), np.int32)


def _limited(table: OrderedDict[int, Any], key: int, value: Any) -> None:
    table[key] = value
    while len(table) > _KEPT:
        table.popitem(last=False)


def _begin() -> np.ndarray:
    run = next(_numbers) % 2**31
    _limited(_runs, run, 0)
    return np.asarray(run, np.int32)


def _store(text: str, run: np.ndarray) -> None:
    if _runs.get(int(run)) == 0:
        code = next(_numbers) % 2**31 or 1
        _limited(_failures, code, text)
        _runs[int(run)] = code


def _end(run: np.ndarray) -> np.ndarray:
    return np.asarray(_runs.pop(int(run), 0), np.int32)


def init_error() -> Error:
    """An Error without a failure.

    >>> from hologram.experimental import checkify
    >>> checkify.init_error().get() is None
    True
    """
    return Error(hnp.asarray(_SCALAR))


def checkify(f: Callable[..., Any], errors: frozenset[ErrorCategory] = user_checks) -> Callable[..., Any]:
    """``f`` as a function that gives ``(error, result)``, where ``error`` has the first check that failed, and nothing is raised.

    - ``user_checks``: those of :func:`check` and :func:`hologram.debug.check`; others raise, as they do outside.
    - ``nan_checks``: an op gave a NaN. ``div_checks``: a divisor was 0. ``float_checks`` are both.
    - ``index_checks``: an index was outside of its axis, and so clamped, or left out.
    - ``automatic_checks``, ``all_checks``: these, without and with the user's.

    The function is traced, like a jitted one, and its arguments are arrays, numbers and pytrees of them. What is looked for after each op keeps ops
    from fusing. Of ``vmap(checkify(f))`` the error is that of the first example that failed; ``checkify(vmap(f))`` is the same.

    >>> from hologram.experimental import checkify
    >>> def f(x):
    ...     checkify.check(x > 0, "{x} is not positive", x=x)
    ...     return hnp.log(x)
    >>> error, y = hg.jit(checkify.checkify(f))(-1.0)
    >>> error.get()
    '-1.0 is not positive (at ..., in f)'
    """
    as_function(f, "checkify")
    wanted = frozenset(errors)
    if not wanted <= all_checks:
        raise located(ArgumentError(f"checkify: errors is a set of ErrorCategory, such as checkify.float_checks, not {errors!r}"))

    def run(*args: Any, **options: Any) -> tuple[Error, Any]:
        number = io_callback(_begin, _SCALAR)
        before = checks.collecting.store, checks.collecting.values, thread_state.watch
        checks.collecting.values = (number,)
        checks.collecting.store = _store if ErrorCategory.USER in wanted else None
        if wanted & automatic_checks:
            thread_state.watch = _Watch(wanted, number)
        try:
            result = f(*args, **options)
        finally:
            checks.collecting.store, checks.collecting.values, thread_state.watch = before
        return Error(io_callback(_end, _SCALAR, number)), result

    checked: Callable[..., Any] = jit(functools.wraps(f)(run))
    return checked


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """As :func:`hologram.debug.check`: inside of :func:`checkify` a failure is the function's error, outside it is raised when the program runs.

    ``debug``: outside it is left out, as :func:`debug_check` is.

    >>> from hologram.experimental import checkify
    >>> checkify.check(1 > 2, "{} is not above {}", 1, 2)
    Traceback (most recent call last):
    ...
    hologram.errors.CheckError: 1 is not above 2 (at ..., in <module>)
    """
    if not debug or checks.collecting.store is not None:
        checks.check(pred, msg, *fmt_args, **fmt_kwargs)


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """:func:`check` inside of :func:`checkify`, nothing outside.

    >>> from hologram.experimental import checkify
    >>> checkify.debug_check(False, "not seen")
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Checks that ``error`` has no failure: its failure is raised, or inside of :func:`checkify` is that of the function there.

    >>> from hologram.experimental import checkify
    >>> error, _ = checkify.checkify(lambda x: 1 / x, errors=checkify.div_checks)(0.0)
    >>> checkify.check_error(error)
    Traceback (most recent call last):
    ...
    hologram.errors.CheckError: division by zero: div (at ..., in <lambda>)
    """
    failed = hnp.asarray(error.code) != 0
    checks.report(lambda code: Error(code).get() or "", (error.code,), {}, failed.any()._node if failed.ndim else failed._node)


# --- what is looked for by itself -------------------------------------------------------------------------------------------

_DIVISIONS = {"div", "floordiv", "rem"}
_PASSING = {"movement", "leaf", "mark"}  # kinds of ops that make no values
_SCATTERS = ("scatter_set", "scatter_add", "scatter_mul", "scatter_min", "scatter_max")


class _Watch:
    """Is told of each op that is traced, and records the checks of it."""

    def __init__(self, wanted: frozenset[ErrorCategory], run: Any) -> None:
        self.wanted, self.run = wanted, run
        self.seen: set[Node] = set()

    def __call__(self, node: Node) -> None:
        if node in self.seen:
            return
        self.seen.add(node)
        before = thread_state.watch, checks.collecting.store, checks.collecting.values
        thread_state.watch, checks.collecting.store, checks.collecting.values = None, _store, (self.run,)
        try:
            for text, args, fails in self.failures(node):
                axes = tuple(range(len(fails.shape)))
                checks.report(text, args, {}, record(reduce_any, (fails,), (axes,)) if axes else fails)
        finally:
            thread_state.watch, checks.collecting.store, checks.collecting.values = before

    def failures(self, node: Node) -> Iterator[tuple[Callable[..., str], tuple[Any, ...], Node]]:
        """What says so, its values, and where it fails, of each check of an op."""
        place, name = where(), node.op.name
        if ErrorCategory.DIVISION in self.wanted and name in _DIVISIONS:
            divisor = node.inputs[1]
            yield lambda: f"division by zero: {name}{place}", (), record(TABLE["eq"], (divisor, number(0, divisor)))
        if ErrorCategory.NAN in self.wanted and node.dtype.kind in "fc" and node.op.kind not in _PASSING and name not in ("const", "input"):
            yield lambda: f"NaN made by {name}{place}", (), record(TABLE["ne"], (node, node))
        if ErrorCategory.INDEX in self.wanted:
            for at, fails, extent in _outside(node):
                told = lambda at, fails, extent=extent: _index_text(at, fails, extent) + place  # noqa: E731
                yield told, (wrap(at), wrap(fails)), fails


def _index_text(at: np.ndarray, fails: np.ndarray, extent: int) -> str:
    return f"an index is outside of its axis: {at[fails].flat[0]} of {extent}"


def _outside(node: Node) -> Iterator[tuple[Node, Node, Any]]:
    """Indices that an op reads or writes at, where they are outside, and the extent: those of a read are clamped before it."""
    axes = node.attrs[0] if node.op.name == "gather" or node.op.name in _SCATTERS else ()
    indices = node.inputs[len(node.inputs) - len(axes) :]
    for index, axis in zip(indices, axes, strict=True):
        extent = node.inputs[0].shape[axis]
        if node.op.name != "gather":
            if isinstance(extent, int):
                low, high = record(TABLE["lt"], (index, number(0, index))), record(TABLE["ge"], (index, number(extent, index)))
                yield index, record(TABLE["or"], (low, high)), extent
        elif index.op.name == "min" and index.inputs[0].op.name == "max":
            given = index.inputs[0].inputs[0]
            yield given, record(TABLE["ne"], (given, index)), extent
