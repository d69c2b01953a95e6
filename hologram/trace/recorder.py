"""What records: the lazy recorder outside traces, and :class:`Trace` inside one.

Outside a trace an op becomes a :class:`Pending` node: not interned, without a source line, because recording must cost less
than a microsecond. Inside a trace it becomes a node of the trace's :class:`~hologram.ir.node.Builder`, interned, with
the line of the user's file beside it.

A realised value enters as a ``leaf`` node. A pending node that is realised *becomes* a leaf in place (:meth:`Pending.settle`),
so every expression that was recorded on it reads the value instead of computing it again.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import struct
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.backends.native.tracing import closed, opened
from hologram.dtypes import DType, float32, float64, int64, loses_part
from hologram.errors import DTypeError, HologramError, IntegerRangeError, LeakedTracerError, ShapeError
from hologram.ir.aval import Aval, aval, require_countable
from hologram.ir.graph import Graph
from hologram.ir.leaves import const, input_, leaf
from hologram.ir.node import Builder, Node, const_attrs
from hologram.ir.op import Op, Shape
from hologram.ir.symbolic import Expr, Int, bounds
from hologram.primitives.movement import reshape
from hologram.primitives.scalar.elementwise import cast
from hologram.support import forks, tracebacks
from hologram.support.user_lines import located, user_place
from hologram.support.weak import WeakSet

tracebacks.install()  # of what is raised from here on up

_MEMO_LIMIT = 4096
_EXACT = 1 << 53  # integers below are exact in float64, through which they are packed


class Pending(Node):
    """A lazily recorded node.

    ``depth`` counts the unrealised ops on the longest path below it, its own included. ``seen`` tells that a realisation has
    computed it once without keeping it: the second one keeps it. ``array`` shows the elements of a realised value, or a view of one, to NumPy,
    once something has read them (:mod:`hologram.trace.host_movement`).
    """

    __slots__ = ("array", "depth", "seen")
    array: np.ndarray | None
    depth: int
    seen: bool
    __init__ = object.__init__  # fields are set in line: half the cost of a Python __init__

    def settle(self, storage: Any) -> None:
        """Turns into the leaf of ``storage``; what it was computed from is let go, unless a transform under way wants to know."""
        if _levels.references:
            for level in _levels:
                level.history[self] = (self.op, self.inputs, self.attrs)
        self.op, self.inputs, self.attrs, self.depth, self.array = leaf, (), (storage, self.shape, self.dtype.name), 0, None


def pending(op: Op, inputs: tuple[Node, ...], attrs: tuple[Any, ...], shape: Shape, dtype: DType) -> Pending:
    node = Pending()
    node.op, node.inputs, node.attrs, node.shape, node.dtype, node.seen, node.array = op, inputs, attrs, shape, dtype, False, None
    depth = -1
    for x in inputs:
        if x.depth > depth:  # type: ignore[attr-defined]
            depth = x.depth  # type: ignore[attr-defined]
    node.depth = depth + 1
    return node


# --- the recorder of this thread -------------------------------------------------------------------------------------


class _State(threading.local):
    trace: Trace | None = None
    levels = 0  # transforms under way
    stacks = 0  # those of them that are vmaps
    last_token: Node | None = None  # of the effects in vmaps outside of traces
    watch: Callable[[Node], None] | None = None  # is told of each node that is traced


thread_state = _State()  # what is restored from it after a block is restored by stores: before a call an interrupt may come
traces_in_progress: set[weakref.ref[Trace]] = set()  # of all threads; while empty, no one needs to look at the thread's own state
_tokens = itertools.count()
_levels: WeakSet[Any] = WeakSet()  # the transforms under way, in all threads, which note what realised nodes were computed from


def current() -> Trace | None:
    """The trace of this thread, None while recording lazily."""
    return thread_state.trace if traces_in_progress else None


def transforming() -> bool:
    """Whether this thread is inside a transform, which must see what jitted functions do."""
    return thread_state.levels > 0


def stacking() -> bool:
    """Whether this thread is inside a vmap, where values may not exist."""
    return thread_state.stacks > 0


def levels_under_way() -> bool:
    """Whether some thread is inside a transform, which notes what realised nodes were computed from."""
    return bool(_levels.references)


def enter_level(level: Any) -> None:
    """Begins a transform of a function, a :class:`hologram.transform.levels.Level`."""
    opened(level)  # jitted functions are recorded, not run
    _levels.add(level)
    thread_state.levels, thread_state.stacks = thread_state.levels + 1, thread_state.stacks + level.stacking


def leave_level(level: Any) -> None:
    """Ends a transform, of which the caller has told the thread's state."""
    _levels.discard(level)
    closed(level)


@forks.in_child
def _after_fork() -> None:
    """Of the traces in progress the child continues those of the thread that forked."""
    traces_in_progress.clear()
    level = thread_state.trace
    while level is not None:
        traces_in_progress.add(weakref.ref(level, traces_in_progress.discard))
        level = level.parent


class Trace:
    """Records the ops of one call of a user's function; used as a context manager by the thread that traces."""

    __slots__ = (
        "assumptions", "builder", "captures", "decisions", "first_token", "inputs", "is_body", "last_token", "line",
        "lines", "name", "parent", "paths", "refused", "sizes", "token", "__weakref__",
    )  # fmt: skip

    def __init__(self, name: str = "function", sizes: Mapping[str, int] | None = None) -> None:
        self.sizes = sizes or {}  # of symbols, in the call that is traced
        self.decisions: list[Expr] = []  # those of the assumptions of which other calls get programs with symbols: see hologram.trace.decisions
        self.builder = Builder()
        self.lines: dict[Node, tuple[str, int] | None] = {}  # every node of this trace is a key
        self.line: tuple[str, int] | None = None  # of what is recorded next, where a transform knows it
        self.inputs: list[Node] = []
        self.assumptions: list[Expr] = []  # polynomials in symbolic extents that are not negative
        self.refused: str | None = None  # how a value was asked for that a symbolic extent does not have, if one was
        self.parent: Trace | None = None
        self.paths: Callable[[], list[str]] | None = None  # how the arguments are called, for errors
        self.is_body = False  # of a loop or branch
        self.first_token: Node | None = None  # the argument from which the effects of a body start
        self.last_token: Node | None = None  # what the last effect gave: see hologram.trace.effects
        self.captures = False  # whether pending nodes may stand in what is recorded: in bodies of control flow that is itself pending
        self.token = next(_tokens)
        self.name = name

    def __enter__(self) -> Trace:
        opened(self)
        traces_in_progress.add(weakref.ref(self, traces_in_progress.discard))
        self.parent, thread_state.trace = thread_state.trace, self  # last, and first in the end: an interrupt may come at every call
        return self

    def __exit__(self, *exc: Any) -> None:
        thread_state.trace = self.parent
        traces_in_progress.discard(weakref.ref(self))
        closed(self)

    def owns(self, node: Node) -> bool:
        """Whether ``node`` was recorded by this trace or by one that encloses it."""
        level: Trace | None = self
        while level is not None:
            if node in level.lines:
                return True
            level = level.parent
        return False

    def made(self, node: Node | None) -> bool:
        """Whether this very trace recorded ``node``."""
        return node in self.lines

    def input(self, shape: Shape, dtype: DType) -> Node:
        """A fresh argument."""
        node = self.record(input_, (), (len(self.inputs), shape, dtype.name, self.token))
        self.inputs.append(node)
        return node

    def record(self, op: Op, inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> Node:
        node = self.builder(op, inputs, plain(attrs) if attrs else attrs)
        if node not in self.lines:
            require_countable(node.shape, node.dtype)
            self.lines[node] = self.line or user_place()
        return node

    def graph(self, outputs: list[Node]) -> Graph:
        return Graph(self.inputs, outputs, self.lines, self.name)


@contextlib.contextmanager
def suspended() -> Any:
    """Records lazily for a block, even inside a trace: what is computed there does not depend on traced values."""
    before, thread_state.trace = thread_state.trace, None
    try:
        yield
    finally:
        thread_state.trace = before


# --- nodes -----------------------------------------------------------------------------------------------------------

_avals: dict[Any, tuple[tuple[Any, ...], Shape, DType]] = {}  # with the attributes, of which native code knows equal ones by their being one object


def forget_types() -> None:
    """Forgets what type rules gave, which depends on settings."""
    _avals.clear()


def record(op: Op, inputs: tuple[Node, ...], attrs: tuple[Any, ...] = ()) -> Node:
    """The node of ``op`` in this thread's recorder. Raises what the op's type rule raises, with the user's line."""
    trace = current()
    try:
        if trace is not None:
            node = trace.record(op, inputs, attrs)
            if thread_state.watch is not None:
                thread_state.watch(node)
            return node
        key = (op, attrs, *[(x.shape, x.dtype) for x in inputs])
        found = _avals.get(key)
        if found is None:
            found = attrs, *op.infer(inputs, attrs)
            require_countable(found[1], found[2])
            remember(_avals, key, found)
    except HologramError as e:
        raise located(e) from None
    node = pending(op, inputs, *found)
    if pending_lines is not None:
        pending_lines[node] = user_place()
    return node


pending_lines: weakref.WeakKeyDictionary[Node, tuple[str, int] | None] | None = None  # while settings.nans asks for them
_results: weakref.WeakKeyDictionary[Node, list[weakref.ref[Node]]] = weakref.WeakKeyDictionary()


def remember_results(node: Node, results: list[Node]) -> None:
    """Notes what was recorded on a pending control node, so that realising one of its results realises those that still matter."""
    _results[node] = [weakref.ref(x) for x in results]


def results_of(node: Node) -> list[Node]:
    """The pending results of a control node that somebody still holds."""
    alive = [r() for r in _results.get(node, ())]
    return [x for x in alive if x is not None and x.op is not leaf]


def leaf_node(storage: Any) -> Node:
    """The node of a realised value."""
    aval = storage.aval
    attrs = (storage, aval.shape, aval.dtype.name)
    trace = current()
    return trace.record(leaf, (), attrs) if trace is not None else pending(leaf, (), attrs, aval.shape, aval.dtype)


def outermost() -> Trace | None:
    """The outermost trace of this thread; None while recording lazily."""
    trace = current()
    while trace is not None and trace.parent is not None:
        trace = trace.parent
    return trace


def outermost_token() -> int | None:
    """What tells the outermost trace of this thread from others; None while recording lazily."""
    trace = outermost()
    return None if trace is None else trace.token


def plain(x: Any) -> Any:
    """``x`` with the extents that a user may hand over (:mod:`hologram.trace.symbolic_extent`) as polynomials, inside of tuples too.

    Raises LeakedTracerError for those of another trace.
    """
    if type(x) is tuple:
        return tuple([plain(e) for e in x])
    if not isinstance(x, Expr) or type(x) is Expr:
        return x
    if x.token != outermost_token():  # type: ignore[attr-defined]
        raise located(LeakedTracerError(f"the symbolic extent {x} was used after, or outside, its trace"))
    return Expr(x.terms)


def assume(slack: Int) -> None:
    """Takes it that ``slack``, a polynomial in symbolic extents, is not negative: calls for which it is are compiled for their own sizes.

    Raises ShapeError where it is certainly negative.
    """
    slack = plain(slack)
    low, high = bounds(slack)
    if high is not None and high < 0:
        raise located(ShapeError(f"an index or slice leaves an axis of symbolic extent: {slack} is negative"))
    trace = current()
    if trace is not None and isinstance(slack, Expr) and (low is None or low < 0):
        trace.assumptions.append(slack)


_constants: dict[tuple[str, bytes], Node] = {}
_older_constants: dict[tuple[str, bytes], Node] = {}  # so that equal ones are one node though the memo is emptied while an expression is recorded
_known_bits: dict[tuple[DType, Any], tuple[str, bytes]] = {}


_RANGES = {d: (int(np.iinfo(d.np).min), int(np.iinfo(d.np).max)) for d in dtypes.ALL if d.is_integer}


def fits(value: int, dtype: DType) -> bool:
    """Whether an integer type holds ``value``."""
    low, high = _RANGES[dtype]
    return low <= value <= high


def require_fits(value: Any, dtype: DType) -> None:
    """Raises for a Python integer beyond the range of ``dtype``, and for a complex number where that is real, except bool."""
    if isinstance(value, complex) and dtype.kind in "iuf":
        raise located(DTypeError(f"the complex number {value} does not fit {dtype}"))
    if dtype.kind in "iu" and isinstance(value, int):
        if not fits(value, dtype):
            raise located(IntegerRangeError(f"the Python integer {value} does not fit {dtype}: cast the array to a wider type first"))


def constant(value: Any, dtype: DType) -> Node:
    """The scalar ``value`` as a ``const`` node of type ``dtype``; Python integers must fit, and complex numbers need a complex type or bool."""
    require_fits(value, dtype)
    try:
        attrs = _bits(value, dtype)
    except OverflowError:  # an integer beyond float64, which NumPy does not take for an infinity either
        raise located(IntegerRangeError(f"a Python integer of {value.bit_length()} bits does not fit {dtype}")) from None
    trace = current()
    if trace is not None:
        return trace.record(const, (), attrs)
    node = _constants.get(attrs)
    if node is None:
        node = _older_constants.get(attrs) or pending(const, (), attrs, (), dtype)
        if len(_constants) >= _MEMO_LIMIT:
            _older_constants.clear()
            _older_constants.update(_constants)
        remember(_constants, attrs, node)
    return node


def number_operand(value: Any, dtype: DType, shape: Shape = ()) -> Node:
    """A Python number as an array of one element: a constant of a trace; in lazy recording an operand, so that programs for other numbers are
    the same. Each is a node of its own, so that programs do not depend on which numbers are equal. Raises as :func:`constant`.
    """
    if current() is not None:
        node = constant(value, dtype)
        return record(reshape, (node,), (shape,)) if shape else node
    require_fits(value, dtype)
    of = _operand_avals.get((dtype, shape))
    if of is None:
        of = aval(dtype, shape)  # type: ignore[arg-type]  # extents are known outside of traces
        remember(_operand_avals, (dtype, shape), of)
    return pending(leaf, (), (storage_module().of_number(of, value), shape, dtype.name), shape, dtype)


def index_operand(value: int) -> Node:
    """A known index as an int64: see :func:`number_operand`."""
    if current() is not None:
        return constant(value, int64)
    return pending(leaf, (), (storage_module().of_index(value), (), "int64"), (), int64)  # in half the time


_operand_avals: dict[tuple[DType, Shape], Aval] = {}


@functools.cache
def storage_module() -> Any:
    """:mod:`hologram.backends.native.storage`, which needs LLVM: it is imported when there are values."""
    from hologram.backends.native import storage

    return storage


def _bits(value: Any, dtype: DType) -> tuple[str, bytes]:
    """``const_attrs``, remembered for Python numbers that determine their bits: not zeros, which have signs, nor NaNs."""
    if type(value) not in (int, float):
        return const_attrs(value, dtype)
    if not (value < 0 or value > 0):
        return (_packed(value, dtype) if value == 0 else None) or const_attrs(value, dtype)
    key = dtype, value
    found = _known_bits.get(key)
    if found is None:
        found = _packed(value, dtype) or const_attrs(value, dtype)
        remember(_known_bits, key, found)
    return found


def _packed(value: int | float, dtype: DType) -> tuple[str, bytes] | None:
    """``const_attrs`` of a Python number without NumPy, for types and numbers where that is as easy; None for others."""
    if dtype.is_integer:
        return (dtype.name, value.to_bytes(dtype.itemsize, sys.byteorder, signed=dtype.kind == "i")) if type(value) is int else None
    if (dtype is float32 or dtype is float64) and abs(value) < _EXACT:
        return dtype.name, struct.pack("=f" if dtype is float32 else "=d", value)
    return None


def remember(memo: dict[Any, Any], key: Any, value: Any) -> None:
    """Adds to a memo, which is emptied when it is full."""
    if len(memo) >= _MEMO_LIMIT:
        memo.clear()
    memo[key] = value


def cast_node(node: Node, dtype: DType) -> Node:
    """``node`` as ``dtype``; the real part of a complex one as a real type."""
    return node if node.dtype is dtype else record(cast, (node,), (dtype.name,))


def whole_cast(node: Node, dtype: DType) -> Node:
    """:func:`cast_node` for users: raises DTypeError where imaginary parts would be lost."""
    require_whole(node.dtype, dtype)
    return cast_node(node, dtype)


def require_whole(a: DType, b: DType) -> None:
    """Raises DTypeError where values of type ``a`` lose their imaginary parts as ``b``."""
    if loses_part(a, b):
        raise located(DTypeError(f"{a} to {b} would lose the imaginary parts: take real, imag or abs first"))
