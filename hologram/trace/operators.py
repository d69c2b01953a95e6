"""Elementwise application: conversion of operands, promotion, broadcasting; and the lean operators of a Tensor.

The rule of types comes from the op's row: an op that takes floats only converts integers and bools to the default float.
Python scalars, and Tensors made from nothing but them, are weakly typed: they adopt the type of the arrays they meet. Among themselves they are
computed as Python's numbers are, in float64, so an array of float64 meets all their digits; to whoever asks they have their kind's default type.
"""

from __future__ import annotations

import functools
from array import array as pyarray
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import ArgumentError, DonatedBufferError, DTypeError, LeakedTracerError, ShapeError
from hologram.ir.node import Node, const_value
from hologram.ir.op import Op, Shape
from hologram.ir.symbolic import Expr, Int, bounds
from hologram.primitives.iota import iota
from hologram.primitives.movement import broadcast, reshape, slice_
from hologram.primitives.scalar import elementwise as ew
from hologram.settings import listeners
from hologram.support.user_lines import located
from hologram.trace import hooks, recorder
from hologram.trace.array_classes import check_unmasked
from hologram.trace.diagnostics.numpy_scalars import beside_scalars
from hologram.trace.recorder import Pending, cast_node, constant, current, leaf_node, plain, record, remember
from hologram.trace.symbolic_extent import Extent
from hologram.trace.tree import divided

SCALARS = (bool, int, float, complex)
SEQUENCES = (list, tuple, range)  # of numbers, which ops take for arrays
DEPTH_LIMIT = 1000  # pending ops on one path; a longer chain is realised as it is recorded
CUT_DEPTH = 128  # from which on that may be, where values are small
Tensor: TypeAlias = Any  # a Tensor, whose class is written in terms of this module
tensor_class: Any = object  # that class, set by hologram.trace.tensor


def wrap(node: Node, weak: bool = False) -> Tensor:
    """The Tensor of a node just recorded."""
    t = tensor_class()
    t._node, t._storage, t._weak = node, None, weak
    if isinstance(node, Pending) and node.depth > CUT_DEPTH:
        relieve(t)
    return t


def node_of(t: Tensor) -> Node:
    """The node of ``t`` in this thread's recorder.

    Raises LeakedTracerError for a value of a trace that has ended, DonatedBufferError for one whose buffer was given away.
    """
    node, storage = t._node, t._storage
    trace = current()
    if trace is None:
        if node is None:
            node = own_leaf(t)
        if isinstance(node, Pending):
            return node
    elif node is not None and (trace.owns(node) or (trace.captures and isinstance(node, Pending))):
        return node
    if storage is None:
        settled(t)
        if is_wide(t):
            return _wide_leaf(t)
    return leaf_node(pinned(t))


def node_here(t: Tensor) -> Node:
    """As :func:`node_of`, but a node of this thread's innermost trace itself."""
    node, trace = node_of(t), current()
    return node if trace is None or trace.made(node) else record(reshape, (node,), (node.shape,))


def pinned(t: Tensor) -> Any:
    """The Storage of a realised Tensor, in memory of its own: what was borrowed is copied at its first use in an op."""
    storage = t._storage
    if storage.owner is not None:
        from hologram.backends.native.storage import copy_of, view

        storage = t._storage = copy_of(view(storage))
    return storage


def is_wide(t: Tensor) -> bool:
    """Whether ``t`` is weakly typed and has more digits than the type that others see. Such a Tensor has no Storage of its own: its node has the
    value, so that what is recorded on it has all digits, and no native call takes it for an array of its wider type."""
    node = t._node
    return t._weak and node is not None and node.dtype is not weak_default(node.dtype)


def wide_value(t: Tensor) -> Any:
    """The value of a wide Tensor that has been realised."""
    node: Any = t._node
    if node.op is recorder.const:
        return const_value(node)
    from hologram.backends.native.storage import view
    from hologram.backends.residence import on_host

    return view(on_host(node.attrs[0]))[()]


def _wide_leaf(t: Tensor) -> Node:
    """The node of a realised wide Tensor in this thread's trace."""
    node: Any = t._node
    return constant(const_value(node), node.dtype) if node.op is recorder.const else leaf_node(node.attrs[0])


def settled(t: Tensor) -> Any:
    """The Storage of ``t``, which is pending and not of this thread's trace; of a wide Tensor one of the type that others see. Raises as
    :func:`node_of`."""
    if t._node is None:
        raise located(DonatedBufferError("this Tensor's buffer was donated to a jitted call and can no longer be read"))
    if type(t._node) is not Pending:
        advice = "return it from the traced function instead of keeping it elsewhere"
        raise located(LeakedTracerError(f"a traced Tensor was used after, or outside, its trace: {advice}"))
    if recorder.traces_in_progress:
        with recorder.suspended():
            hooks.realise(t)
    else:
        hooks.realise(t)
    if is_wide(t):
        from hologram.backends.native.storage import copy_of

        return copy_of(np.asarray(wide_value(t), t.dtype))
    storage = t._storage
    return settled(t) if storage is None else storage  # None where another thread has assigned to its elements meanwhile


# --- operands --------------------------------------------------------------------------------------------------------


def extent_node(n: Int, dtype: DType) -> Node:
    """The extent ``n`` as a scalar of type ``dtype``; a symbol's is the last index of an axis one longer."""
    if not isinstance(n, Expr):
        return constant(n if dtype.is_integer else float(n), dtype)
    low, _ = bounds(n)
    if low is None or low < 0:  # a difference of what can be counted
        added, taken = (sum(Expr({m: abs(c)}) for m, c in n.terms.items() if (c > 0) is plus) for plus in (True, False))
        wide = record(ew.sub, (extent_node(added, dtypes.int64), extent_node(taken, dtypes.int64)))
        return cast_node(wide, dtype)
    counted = record(slice_, (record(iota, (), ((n + 1,), 0, "int64")),), ((n,), (n + 1,), (1,)))
    return cast_node(record(reshape, (counted,), ((),)), dtype)


def array_node(x: np.ndarray | np.generic) -> Node:
    """A NumPy array or scalar, copied at this moment."""
    dtype = dtypes.of(x.dtype)
    if x.ndim == 0:
        return constant(np.asarray(x)[()], dtype)
    from hologram.backends.native import storage

    return leaf_node(storage.copy_of(np.asarray(x)))


def is_operand(x: Any) -> bool:
    """Whether ops take ``x``; an infix operator leaves anything else to the other side."""
    if isinstance(x, np.ndarray):  # objects may know what to do with a number; NumPy asks each; a matrix has products of its own
        return x.dtype.kind != "O" and (type(x) is np.ndarray or not isinstance(x, np.matrix))
    return type(x) is tensor_class or type(x) in SCALARS or isinstance(x, (np.generic, Extent, *SEQUENCES))


def is_array_like(x: Any) -> bool:
    """Whether ``x`` holds numbers, though ops may not take it: other libraries' arrays, and buffers."""
    return hasattr(x, "__array__") or hasattr(x, "__dlpack__") or hasattr(x, "__array_interface__") or isinstance(x, (memoryview, bytearray, pyarray))


def operand(x: Any, what: str) -> tuple[Node | Any, DType, bool]:
    """``(node or Python scalar, dtype, weak)`` of anything an op takes; ``what`` names the op in errors."""
    kind = type(x)
    if kind is tensor_class:
        node = node_of(x)
        return node, node.dtype, x._weak
    if kind in SCALARS:
        return x, dtypes.of_scalar(x), True
    if isinstance(x, (np.ndarray, np.generic)):
        check_unmasked(x, what)
        try:
            node = array_node(x)
        except TypeError as e:
            raise located(DTypeError(f"{what}: {e}")) from None
        return node, node.dtype, False
    if kind is Extent:  # an integer of the program, as weak as its Python value is where the axis is not dynamic
        return extent_node(plain(x), dtypes.int64), dtypes.int64, True
    if isinstance(x, SEQUENCES):
        return operand(_of_numbers(x, None), what)
    if is_array_like(x):
        return operand(hooks.asarray(x), what)
    raise located(_no_operand(x, what))


def _no_operand(x: Any, what: str) -> ArgumentError:
    return ArgumentError(f"{what} takes Tensors, arrays and Python scalars, not {type(x).__name__}")


def tensor_of_extent(n: Extent) -> Tensor:
    """A symbolic extent as a scalar Tensor."""
    node, _, weak = operand(n, "extent")
    return wrap(node, weak)


def _of_numbers(x: Any, beside: DType | None) -> Tensor:
    return hooks.tensor_beside(x, beside)


def with_tensors(args: Sequence[Any], what: str) -> Sequence[Any]:
    """``args`` with Tensors for nested lists, in the types that they have beside the others."""
    if not any(isinstance(x, SEQUENCES) for x in args):
        return args
    others = [operand(x, what) for x in args if not isinstance(x, SEQUENCES)]
    strong = [dtype for _, dtype, weak in others if not weak]
    beside = functools.reduce(dtypes.promote, strong) if strong else None
    return [_of_numbers(x, beside) if isinstance(x, SEQUENCES) else x for x in args]


def weak_default(dtype: DType) -> DType:
    """The type that a weak value of ``dtype`` has for others: its kind's default."""
    return {"b": dtypes.bool_, "i": dtypes.default_int, "f": dtypes.default_float, "c": dtypes.default_complex}[dtype.kind]


def weak_type(dtype: DType) -> DType:
    """The type that weak values of the kind of ``dtype`` are computed in: that of Python's numbers."""
    return {"b": dtypes.bool_, "i": dtypes.default_int, "f": dtypes.float64, "c": dtypes.complex128}[dtype.kind]


def common_type(operands: Sequence[tuple[Node | Any, DType, bool]]) -> tuple[DType, bool]:
    """The promoted ``(dtype, weak)`` of :func:`operand`'s triples.

    Python scalars and weak Tensors among themselves keep their precision; beside a strong operand they count as their kind's default.
    """
    strong: DType | None = None
    tensors: DType | None = None
    scalars: DType | None = None
    for x, dtype, weak in operands:
        if not weak:
            strong = dtype if strong is None else dtypes.promote(strong, dtype)
        elif isinstance(x, Node):
            tensors = dtype if tensors is None else dtypes.promote(tensors, dtype)
        else:
            scalars = dtype if scalars is None else dtypes.promote(scalars, dtype)
    if strong is None:
        if scalars is None:
            assert tensors is not None
            return tensors, True
        return (weak_type(scalars) if tensors is None else dtypes.promote_weak(tensors, weak_type(scalars))), True
    if tensors is not None:
        strong = dtypes.promote_weak(strong, weak_default(tensors))
    return (strong if scalars is None else dtypes.promote_weak(strong, scalars)), False


def working_type(op: Op, dtype: DType) -> DType:
    """The type in which ``op`` computes on operands of the common type ``dtype``."""
    if dtype.kind in op.kinds:
        return dtype
    if dtype.kind in "biu" and "i" not in op.kinds and "f" in op.kinds:
        return dtypes.to_inexact(dtype)
    raise located(DTypeError(f"{op.name} does not take {dtype}"))


def broadcast_shapes(what: str, shapes: Sequence[Shape]) -> Shape:
    """NumPy's common shape. Raises ShapeError where two extents differ and neither is 1."""
    out: list[Any] = [1] * max(map(len, shapes), default=0)
    for shape in shapes:
        offset = len(out) - len(shape)
        for i, n in enumerate(shape):
            m = out[offset + i]
            if n != 1 and m != n:
                if m != 1:
                    both = " and ".join(str(list(s)) for s in shapes)
                    raise located(ShapeError(f"{what}: shapes {both} do not broadcast: extents {m} and {n} differ on axis {offset + i - len(out)}"))
                out[offset + i] = n
    return tuple(out)


def broadcast_node(node: Node, shape: Shape) -> Node:
    """``node`` stretched to ``shape`` by NumPy's rule; the shapes are known to fit."""
    if node.shape == shape:
        return node
    first = len(shape) - len(node.shape)
    return record(broadcast, (node,), (shape, tuple(range(first, len(shape)))))


def node_as(x: Node | Any, dtype: DType) -> Node:
    """An operand in its final type."""
    return cast_node(x, dtype) if isinstance(x, Node) else constant(x, dtype)


def stretched(what: str, nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Nodes of one shape, scalars excepted: what an elementwise op takes."""
    first = nodes[0].shape
    for x in nodes:
        if x.shape and x.shape != first:
            break
    else:
        return tuple(nodes)
    shape = broadcast_shapes(what, [x.shape for x in nodes])
    return tuple(x if not x.shape else broadcast_node(x, shape) for x in nodes)


def _are_plain(args: Sequence[Any]) -> bool:
    """Whether all of ``args`` are Tensors and Python scalars, as most are."""
    for x in args:
        kind = type(x)
        if kind is not tensor_class and kind not in SCALARS:
            return False
    return True


def promoted(what: str, args: Sequence[Any], adjust: Callable[[DType], DType] | None = None, keep: bool = False) -> tuple[list[Node], DType, bool]:
    """The arguments as nodes of their common type (``adjust`` may change it), that type, and whether it is weak.

    With ``keep`` a weak type is the one that weak values are computed in, for a caller who gives a weak result; else the one that others see.
    """
    if not _are_plain(args):
        args = with_tensors(args, what)
        if any(isinstance(x, np.inexact) for x in args):
            args = beside_scalars(args, what)
    operands = [operand(x, what) for x in args]
    common, weak = common_type(operands)
    dtype = common if adjust is None else adjust(common)
    if weak and not keep:
        dtype = weak_default(dtype)
    elif weak and dtype is not common:
        dtype = weak_type(dtype)
    return [node_as(x, dtype) for x, _, _ in operands], dtype, weak


def elementwise(op: Op, *args: Any) -> Tensor:
    """``op`` on anything array-like, after promotion and broadcasting."""
    if not _are_plain(args) and any(type(x) in divided for x in args):
        return hooks.by_parts(op, args)
    nodes, _, weak = promoted(op.name, args, lambda d: working_type(op, d), keep=True)
    return wrap(record(op, stretched(op.name, nodes)), weak)


# --- lean operators --------------------------------------------------------------------------------------------------


class LeanOperator(NamedTuple):
    """What a function of :func:`binary_operator` or :func:`unary_operator` records without a detour."""

    op: Op
    results: dict[DType, DType]  # the types of results, by those of the operands, as they have been found
    arity: int
    swapped: bool


weak_constants: dict[Any, Node] = {}  # of numbers beside an operand, by (type of the operand, class of the number, number)
lean_operators: dict[Callable[..., Any], LeanOperator] = {}


def _forget() -> None:
    """Forgets types that depend on settings."""
    for lean in lean_operators.values():
        lean.results.clear()
    recorder.forget_types()


listeners.append(_forget)


def own_leaf(t: Tensor) -> Node | None:
    """The leaf of a realised Tensor, kept on it; None for one that has no value to give."""
    if t._storage is None:
        return None
    node = t._node = leaf_node(pinned(t))
    return node


def relieve(t: Tensor) -> None:
    """Cuts a long chain of pending ops; not inside a vmap, where it may have no value."""
    if not recorder.stacking():
        hooks.relieve(t)


def _remember(node: Any, dtype: DType, scalar: Any) -> None:
    """Lets the lean path reuse the constant that ``scalar`` became in ``node``, beside an operand of type ``dtype``.

    Not where the constant has another type, nor for a number whose key does not determine its bits (zeros and NaNs, as parts too).
    """
    if type(scalar) is complex or (type(scalar) is float and not (scalar < 0.0 or scalar > 0.0)):
        return
    made = [x for x in node.inputs if x.op is recorder.const]
    if len(node.inputs) == 2 and len(made) == 1 and made[0].dtype is dtype:
        remember(weak_constants, (dtype, type(scalar), scalar), made[0])


def _new_constant(dtype: DType, kind: type, scalar: Any) -> Node | None:
    """The constant that a Python number is beside a strong operand of type ``dtype``, where that keeps its type; None where it may not."""
    if not (kind is float and dtype.is_float or kind is int and (dtype.is_float or (dtype.is_integer and recorder.fits(scalar, dtype)))):
        return None
    node = constant(scalar, dtype)
    if scalar < 0 or scalar > 0:
        remember(weak_constants, (dtype, kind, scalar), node)
    return node


def _is_unknown_to(other: Any, x: Tensor, op: Op) -> bool:
    """Whether ``other``, another library's array, leaves a comparison with ``x`` to us: Python would then answer by what objects they are."""
    if not is_array_like(other):
        return False
    if isinstance(other, (memoryview, bytearray)):
        return True  # who would compare buffers as wholes
    method: Any = getattr(type(other), "__eq__" if op is ew.eq else "__ne__")  # noqa: B009 - mypy knows what object's takes
    return method(other, x) is NotImplemented


def binary_operator(op: Op, swapped: bool = False, general: Callable[[Any, Any], Any] | None = None, infix: bool = True) -> Callable[[Any, Any], Any]:
    """The method for an infix operator: ``x1 op x2``, or ``x2 op x1`` where ``swapped``. Not ``infix``, the function of anything array-like.

    Two Tensors of one type and shape (or one of them a scalar), or a Tensor and a Python scalar met before, are recorded on the spot; everything else
    goes through ``general``, by default :func:`elementwise`. What the lean path may do for a type it learns from the results
    of ``general``.
    """
    if general is None:
        general = lambda x, y: elementwise(op, x, y)  # noqa: E731
    results: dict[DType, DType] = {}
    is_equality = op is ew.eq or op is ew.ne

    def slow(x1: Any, x2: Any) -> Any:
        if infix and not is_operand(x2):
            if is_equality and _is_unknown_to(x2, x1, op):
                raise located(ArgumentError(f"{_no_operand(x2, op.name)}: hg.asarray makes a Tensor of it"))
            return NotImplemented
        result = general(x2, x1) if swapped else general(x1, x2)
        if type(result) is not tensor_class:
            return result
        node: Any = result._node
        if type(node) is Pending and node.op is op and len(node.inputs) == 2 and node.inputs[0].dtype is node.inputs[1].dtype:
            results[node.inputs[0].dtype] = node.dtype
            if type(x2) in SCALARS and type(x1) is tensor_class and x1._node is not None:
                _remember(node, x1._node.dtype, x2)
        return result

    def method(x1: Any, x2: Any, /) -> Any:
        if recorder.traces_in_progress or type(x1) is not tensor_class:
            return slow(x1, x2)
        a: Any = x1._node or own_leaf(x1)
        if type(a) is not Pending:
            return slow(x1, x2)
        dtype = a.dtype
        shape = a.shape
        kind = type(x2)
        if kind is tensor_class:
            b: Any = x2._node or own_leaf(x2)
            if type(b) is not Pending or b.dtype is not dtype:
                return slow(x1, x2)
            other = b.shape
            if other is not shape and other != shape and other:
                if shape:
                    return slow(x1, x2)
                shape = other
            weak = x1._weak and x2._weak
        else:
            try:
                b = weak_constants.get((dtype, kind, x2))
            except TypeError:
                b = None
            if b is None:
                b = None if x1._weak else _new_constant(dtype, kind, x2)
                if b is None:
                    return slow(x1, x2)
            weak = x1._weak
        node = Pending()
        try:
            node.dtype = results[dtype]
        except KeyError:
            return slow(x1, x2)
        node.op = op
        node.inputs = (b, a) if swapped else (a, b)
        node.attrs = ()
        node.shape = shape
        node.seen = False
        node.array = None
        depth = a.depth
        if b.depth > depth:
            depth = b.depth
        node.depth = depth + 1
        t = tensor_class()
        t._node = node
        t._storage = None
        t._weak = weak
        if depth >= CUT_DEPTH:
            relieve(t)
        return t

    lean_operators[method] = LeanOperator(op, results, 2, swapped)
    return method


def unary_operator(op: Op) -> Callable[[Any], Any]:
    """The function of one operand for ``op``, with a lean path as in :func:`binary_operator`."""
    results: dict[DType, DType] = {}

    def slow(x: Any) -> Any:
        t = elementwise(op, x)
        if type(x) is not tensor_class:
            return t
        node: Any = t._node
        if type(node) is Pending and node.op is op and x._node is node.inputs[0]:
            results[x._node.dtype] = node.dtype
        return t

    def function(x: Any, /) -> Any:
        if recorder.traces_in_progress or type(x) is not tensor_class:
            return slow(x)
        a: Any = x._node or own_leaf(x)
        if type(a) is not Pending:
            return slow(x)
        node = Pending()
        try:
            node.dtype = results[a.dtype]
        except KeyError:
            return slow(x)
        node.op = op
        node.inputs = (a,)
        node.attrs = ()
        node.shape = a.shape
        node.seen = False
        node.array = None
        depth = a.depth
        node.depth = depth + 1
        t = tensor_class()
        t._node = node
        t._storage = None
        t._weak = x._weak
        if depth >= CUT_DEPTH:
            relieve(t)
        return t

    lean_operators[function] = LeanOperator(op, results, 1, False)
    return function
