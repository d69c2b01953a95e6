"""Arrays from nothing: constants, counts, grids. None of them occupies memory until something needs the bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import ArgumentError, ShapeError, TracedValueError
from hologram.ir.node import Node
from hologram.ir.op import Shape
from hologram.ir.symbolic import Expr, bounds
from hologram.numpy.arguments import array, array_as, as_tensor, axis_of, cast_to, element_type, permuted, reshaped, spread, wrap
from hologram.numpy.elementwise.functions import FUNCTIONS
from hologram.numpy.elementwise.rounded import rounded_product
from hologram.primitives import TABLE
from hologram.primitives.complex import parts as complexes
from hologram.primitives.iota import iota
from hologram.primitives.scalar import elementwise as ew
from hologram.support.user_lines import located
from hologram.trace.array_classes import known_array
from hologram.trace.checks import choice, computed, extent, integer, number, shape_of
from hologram.trace.convert import asarray, from_dlpack, put, tensor
from hologram.trace.diagnostics.origins import traced_size
from hologram.trace.operators import SCALARS, broadcast_node, broadcast_shapes, promoted, weak_type, working_type
from hologram.trace.recorder import cast_node, constant, plain, record
from hologram.trace.tensor import Tensor

__all__ = [
    "arange", "array_", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "geomspace", "identity", "linspace",
    "logspace", "meshgrid", "ones", "ones_like", "tensor", "tri", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip


def array_(data: Any, dtype: Any = None, device: Any = None, *, copy: bool | None = True, ndmin: int = 0) -> Tensor:
    """As :func:`hologram.tensor`: a Tensor with a copy of ``data``, which :func:`asarray` does without for ``copy=None``, or ``False`` where that is
    possible. Axes of extent 1 come before those of ``data`` until there are ``ndmin``.

    >>> hnp.array([1, 2], ndmin=2)
    Tensor([[1, 2]], dtype=int64)
    """
    t = tensor(data, dtype, device) if copy else asarray(data, dtype, device=device, copy=copy)
    missing = integer(ndmin, "array", "ndmin") - t.ndim
    return t if missing <= 0 else wrap(reshaped(array(t, "array"), (*(1,) * missing, *t.shape)))


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Tensor:
    """An array of one value.

    ``fill_value`` is a number, or an array that broadcasts to ``shape``; ``dtype`` is by default its own type. Raises ShapeError where it does not
    broadcast, DeviceError for a device that is not there.

    >>> hnp.full((2, 2), 7)
    Tensor([[7, 7],
            [7, 7]], dtype=int64)
    """
    return _filled(shape, fill_value, dtype, device, "full")


def _filled(shape: Any, fill_value: Any, dtype: Any, device: Any, what: str) -> Tensor:
    extents = shape_of(shape, what)
    if type(fill_value) in SCALARS:
        node = constant(fill_value, dtypes.of_scalar(fill_value) if dtype is None else element_type(dtype))
        return put(wrap(spread(node, extents, ())), device)
    return put(wrap(broadcast_node(cast_to(array(fill_value, what), dtype), extents)), device)


def zeros(shape: Any, dtype: Any = None, *, device: Any = None) -> Tensor:
    """An array of zeros, by default float32 (NumPy: float64).

    It occupies no memory until something reads it. Raises DTypeError for an unknown element type, DeviceError for a device that is not there.

    >>> hnp.zeros((2, 3))
    Tensor([[0., 0., 0.],
            [0., 0., 0.]], dtype=float32)
    """
    return _filled(shape, 0.0, dtype or dtypes.default_float, device, "zeros")


def ones(shape: Any, dtype: Any = None, *, device: Any = None) -> Tensor:
    """An array of ones, by default float32 (NumPy: float64).

    It occupies no memory until something reads it. Raises DTypeError for an unknown element type, DeviceError for a device that is not there.

    >>> hnp.ones(3, dtype=hnp.int8)
    Tensor([1, 1, 1], dtype=int8)
    """
    return _filled(shape, 1.0, dtype or dtypes.default_float, device, "ones")


def empty(shape: Any, dtype: Any = None, *, device: Any = None) -> Tensor:
    """An array of zeros, as :func:`zeros`: uninitialised memory cannot be seen.

    >>> hnp.empty(2)
    Tensor([0., 0.], dtype=float32)
    """
    return _filled(shape, 0.0, dtype or dtypes.default_float, device, "empty")


def _like(x: Any, what: str) -> tuple[Shape, DType]:
    if type(x) is Tensor and not x._weak:
        return x._aval()
    node = array(x, what)
    return node.shape, node.dtype


def full_like(x: Any, /, fill_value: Any, dtype: Any = None, *, device: Any = None, shape: Any = None) -> Tensor:
    """An array of one value with the shape and type of ``x``, where ``shape`` and ``dtype`` do not say otherwise; weakly typed where ``x`` is.

    >>> hnp.full_like([1, 2], 2.7)
    Tensor([2, 2], dtype=int64)
    """
    own_shape, own = _like(x, "full_like")
    if shape is None and dtype is None and type(x) is Tensor and x._weak and not own_shape:
        return put(wrap(broadcast_node(array_as(fill_value, weak_type(own), "full_like"), ()), True), device)
    return full(own_shape if shape is None else shape, fill_value, dtype=dtype or own, device=device)


def zeros_like(x: Any, /, dtype: Any = None, *, device: Any = None, shape: Any = None) -> Tensor:
    """Zeros with the shape and type of ``x``, where ``shape`` and ``dtype`` do not say otherwise.

    >>> hnp.zeros_like([1.5, 2.5])
    Tensor([0., 0.], dtype=float32)
    """
    return full_like(x, 0, dtype, device=device, shape=shape)


def ones_like(x: Any, /, dtype: Any = None, *, device: Any = None, shape: Any = None) -> Tensor:
    """Ones with the shape and type of ``x``, where ``shape`` and ``dtype`` do not say otherwise.

    >>> hnp.ones_like([1, 2], dtype=hnp.float64)
    Tensor([1., 1.], dtype=float64)
    """
    return full_like(x, 1, dtype, device=device, shape=shape)


def empty_like(x: Any, /, dtype: Any = None, *, device: Any = None, shape: Any = None) -> Tensor:
    """Zeros with the shape and type of ``x``, as :func:`zeros_like`.

    >>> hnp.empty_like([1, 2])
    Tensor([0, 0], dtype=int64)
    """
    return zeros_like(x, dtype, device=device, shape=shape)


def count(shape: Shape, axis: int, dtype: DType) -> Node:
    """The index along ``axis`` at every place of ``shape``."""
    return record(iota, (), (shape, axis, dtype.name))


def _scaled_count(n: int, start: Any, step: Any, dtype: DType) -> Node:
    """``start + i * step``; floats are computed in float64 and rounded once, as NumPy does."""
    work = dtype if dtype.is_integer else dtypes.float64
    if work.is_float and start == 0 and math.copysign(1.0, start) != math.copysign(1.0, step):  # the first product has the sign of ``step``
        node, step = cast_node(record(ew.neg, (count((n,), 0, dtypes.int64),)), work), -step
    else:
        node = count((n,), 0, work)
    if step != 1:
        node = rounded_product(node, constant(step, work)) if work.is_float else record(ew.mul, (node, constant(step, work)))
    if start != 0:
        node = record(ew.add, (node, constant(start, work)))
    return cast_node(node, dtype)


def _steps(start: float, stop: float, step: float) -> int:
    """How many numbers from ``start`` on are before ``stop``; of floats as NumPy counts them, in float64."""
    some = start < stop if step > 0 else stop < start  # also where their quotient is too small for a number
    try:
        return max(int(some), math.ceil((stop - start) / step) if float in map(type, (start, stop, step)) else -int((start - stop) // step))
    except OverflowError:
        raise located(ArgumentError("arange: there are too many steps between its bounds to count them in float64")) from None


def arange(start: Any, /, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Numbers at equal steps: ``start, start + step, …`` before ``stop``; with one argument, from 0 up to it.

    int64 where all are integers, else float32, unless ``dtype`` says otherwise. Under ``jit(dynamic=…)`` one argument may be an extent.
    Raises ShapeError for a step of 0, ArgumentError for what is no finite number, TracedValueError for a traced value.

    >>> hnp.arange(4)
    Tensor([0, 1, 2, 3], dtype=int64)
    >>> hnp.arange(0, 1, 0.25)
    Tensor([0.  , 0.25, 0.5 , 0.75], dtype=float32)
    """
    if stop is None:
        start, stop = 0, start
    if isinstance(stop, Expr) and start == 0 and step == 1:
        most = bounds(plain(stop))[1]
        n = 0 if most is not None and most < 0 else extent(stop, "arange")
        return put(wrap(count((n,), 0, dtypes.default_int if dtype is None else element_type(dtype))), device)
    values = [_bound(x, role) for x, role in ((start, "the start"), (stop, "the end"), (step, "the step"))]
    if any(type(x) not in (int, float) for x in values):
        raise located(ArgumentError(f"arange takes numbers, not {', '.join(type(x).__name__ for x in values)}"))
    start, stop, step = values
    if step == 0:
        raise located(ShapeError("arange: step 0"))
    if any(type(x) is float and not math.isfinite(x) for x in values):
        raise located(ArgumentError(f"arange takes finite numbers, not {', '.join(map(str, values))}"))
    default = dtypes.default_float if any(type(x) is float for x in values) else dtypes.default_int
    n = _steps(start, stop, step)
    return put(wrap(_scaled_count(n, start, step, default if dtype is None else element_type(dtype))), device)


def _bound(x: Any, role: str) -> Any:
    """A bound of :func:`arange` as a number, if it is one. Raises TracedValueError for a traced one."""
    try:
        return x.item() if getattr(x, "size", 0) == 1 else x
    except TracedValueError:
        raise traced_size(x, "arange", role) from None


def linspace(
    start: Any, stop: Any, /, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0, *, device: Any = None
) -> Any:
    """``num`` numbers at equal distances from ``start`` to ``stop``, which is the last one exactly if ``endpoint``.

    The ends are scalars, complex ones too, or arrays that broadcast, through which derivatives go; then the numbers lie along ``axis`` of the result.
    That is float32 or complex64 unless ``dtype`` or the arrays say otherwise, and of an integer type rounded down. ``retstep`` gives a tuple, with
    the distance. Raises ShapeError for a negative number of elements.

    >>> hnp.linspace(0, 1, 5)
    Tensor([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    >>> hnp.linspace(0, 1, 4, endpoint=False)
    Tensor([0.  , 0.25, 0.5 , 0.75], dtype=float32)
    """
    n = _number_of_elements(num, "linspace")
    gaps = n - 1 if endpoint else n
    start, stop = _ends(start, stop, "linspace")
    if retstep:
        return linspace(start, stop, n, endpoint, dtype=dtype, axis=axis, device=device), (stop - start) / gaps if gaps > 0 else math.nan
    if type(start) is Tensor:
        return wrap(_rounded_down(_along(_between(start, stop, n, gaps, endpoint), axis, "linspace"), dtype))
    axis_of(axis, 1, "linspace")
    start, stop = (_number(v, "linspace") for v in (start, stop))
    if isinstance(start, complex) or isinstance(stop, complex):
        parts = [_spaced(a, b, n, gaps, endpoint) for a, b in ((start.real, stop.real), (start.imag, stop.imag))]
        return wrap(cast_to(record(complexes.complex_, tuple(parts)), dtypes.default_complex if dtype is None else dtype))
    return wrap(_rounded_down(_spaced(start, stop, n, gaps, endpoint), dtypes.default_float if dtype is None else dtype))


def _number_of_elements(num: Any, what: str) -> int:
    n = integer(num, what, "a number of elements")
    if n < 0:
        raise located(ShapeError(f"{what}: {n} elements"))
    return n


def _rounded_down(node: Node, dtype: Any) -> Node:
    """``node`` in the type ``dtype``, its own for None; in an integer type the largest integers that are not above it."""
    if dtype is not None and element_type(dtype).is_integer and node.dtype.is_float:
        node = record(TABLE["floor"], (node,))
    return cast_to(node, dtype)


def _number(x: Any, what: str) -> float | complex:
    value = x.item() if hasattr(x, "item") else x
    return value if isinstance(value, complex) else number(value, what, "an end")


def _ends(start: Any, stop: Any, what: str) -> tuple[Any, Any]:
    """Two numbers; or, where one end is a Tensor or has axes, two Tensors of one shape, and of the type that a quotient of them has."""
    if not any(type(x) is Tensor or isinstance(x, (list, tuple)) or getattr(x, "ndim", 0) for x in (start, stop)):
        return start, stop
    arrays = [as_tensor(x, what) if isinstance(x, (list, tuple)) else x for x in (start, stop)]
    first, last = broadcast_common(promoted(what, arrays, lambda d: working_type(ew.div, d))[0], what)
    return wrap(first), wrap(last)


def _along(node: Node, axis: Any, what: str) -> Node:
    """``node`` with its first axis as ``axis`` of the result."""
    rank = len(node.shape)
    a = axis_of(axis, rank, what)
    return permuted(node, [*range(1, a + 1), 0, *range(a + 1, rank)])


def _spaced(start: float, stop: float, n: int, gaps: int, endpoint: bool) -> Node:
    """The numbers of :func:`linspace` between numbers, in float64."""
    node = _scaled_count(n, start, (stop - start) / gaps if gaps > 0 else 0.0, dtypes.float64)
    return record(ew.select, (_last(n), constant(stop, dtypes.float64), node)) if endpoint and n > 1 else node


def _last(n: int, rest: Shape = ()) -> Node:
    """Whether a place is the last of ``n`` along the first axis."""
    return record(ew.eq, (count((n, *rest), 0, dtypes.int64), constant(n - 1, dtypes.int64)))


def _between(start: Tensor, stop: Tensor, n: int, gaps: int, endpoint: bool) -> Node:
    """The numbers of :func:`linspace` along the first axis, between ends of one shape and type."""
    first, last = array(start, "linspace"), array(stop, "linspace")
    shape = (n, *first.shape)
    gap = record(ew.div, (record(ew.sub, (last, first)), constant(max(gaps, 1), first.dtype)))
    first, last, gap = (broadcast_node(x, shape) for x in (first, last, gap))
    node = record(ew.add, (rounded_product(cast_node(count(shape, 0, dtypes.int64), first.dtype), gap), first))
    return record(ew.select, (_last(n, shape[1:]), last, node)) if endpoint and n > 1 else node


def _band(matrix: Any, k: int, op: Any) -> Node:
    """``column op row + k`` on a matrix of that shape."""
    shape = shape_of(matrix, "eye")
    rows, columns = shape
    k = integer(k, "eye", "a diagonal")
    if isinstance(rows, int) and isinstance(columns, int):  # diagonals further out are as empty
        k = min(max(k, -rows), columns)
    row = record(ew.add, (count(shape, 0, dtypes.int64), constant(k, dtypes.int64)))
    return record(op, (count(shape, 1, dtypes.int64), row))


def eye(n_rows: int, n_cols: int | None = None, /, k: int = 0, dtype: Any = None, *, device: Any = None) -> Tensor:
    """Matrix (n_rows, n_cols) with ones on the ``k``-th diagonal, zeros beside it; float32 by default.

    A positive ``k`` is above the main diagonal. ``n_cols`` is ``n_rows`` for None.

    >>> hnp.eye(2, 3, k=1)
    Tensor([[0., 1., 0.],
            [0., 0., 1.]], dtype=float32)
    """
    node = cast_node(_band((n_rows, n_rows if n_cols is None else n_cols), k, ew.eq), element_type(dtype or dtypes.default_float))
    return put(wrap(node), device)


def identity(n: int, dtype: Any = None) -> Tensor:
    """The identity matrix (n, n); float32 by default.

    >>> hnp.identity(2)
    Tensor([[1., 0.],
            [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """Matrix (N, M) with ones on and below the ``k``-th diagonal; float32 by default.

    >>> hnp.tri(2, 3)
    Tensor([[1., 0., 0.],
            [1., 1., 0.]], dtype=float32)
    """
    return wrap(cast_node(_band((N, N if M is None else M), k, ew.le), element_type(dtype or dtypes.default_float)))


def _triangle(x: Any, k: int, op: Any, what: str) -> Tensor:
    node = array(x, what)
    if len(node.shape) < 2:
        raise located(ShapeError(f"{what} takes at least two axes, not shape {list(node.shape)}"))
    keep = broadcast_node(_band(node.shape[-2:], k, op), node.shape)
    return wrap(record(ew.select, (keep, node, constant(0, node.dtype))))


def tril(x: Any, /, k: int = 0) -> Tensor:
    """Lower triangle: matrices (…, m, n) with zeros above the ``k``-th diagonal. Raises ShapeError for fewer than two axes.

    >>> hnp.tril([[1, 2], [3, 4]])
    Tensor([[1, 0],
            [3, 4]], dtype=int64)
    """
    return _triangle(x, k, ew.le, "tril")


def triu(x: Any, /, k: int = 0) -> Tensor:
    """Upper triangle: matrices (…, m, n) with zeros below the ``k``-th diagonal. Raises ShapeError for fewer than two axes.

    >>> hnp.triu([[1, 2], [3, 4]])
    Tensor([[1, 2],
            [0, 4]], dtype=int64)
    """
    return _triangle(x, k, ew.ge, "triu")


def meshgrid(*arrays: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinates of a grid: a tuple of arrays, one for each axis, all of the grid's shape.

    ``indexing`` is ``xy``, with which the second axis of the result is that of the first array, or ``ij``. With ``sparse`` each has its own extent,
    and 1 along the other axes; ``copy`` says nothing here. Raises ShapeError for arrays of more than one axis, ArgumentError for another
    ``indexing``.

    >>> x, y = hnp.meshgrid([1, 2, 3], [10, 20])
    >>> x
    Tensor([[1, 2, 3],
            [1, 2, 3]], dtype=int64)
    >>> y
    Tensor([[10, 10, 10],
            [20, 20, 20]], dtype=int64)
    """
    choice(indexing, "meshgrid", "indexing", ("xy", "ij"))
    nodes = [array(x, "meshgrid") for x in arrays]
    if any(len(x.shape) > 1 for x in nodes):
        raise located(ShapeError("meshgrid takes arrays of one axis"))
    order: Sequence[int] = list(range(len(nodes)))
    if indexing == "xy" and len(nodes) > 1:
        order = [1, 0, *order[2:]]
    lengths = [x.shape[0] if x.shape else 1 for x in nodes]
    shape = tuple(lengths[i] for i in order)
    if sparse:
        return tuple([wrap(reshaped(x, tuple(lengths[i] if j == i else 1 for j in order))) for i, x in enumerate(nodes)])
    return tuple([wrap(spread(x, shape, (order.index(i),) if x.shape else ())) for i, x in enumerate(nodes)])


def broadcast_common(nodes: Sequence[Node], what: str) -> list[Node]:
    """All nodes at their common shape."""
    shape = broadcast_shapes(what, [x.shape for x in nodes])
    return [broadcast_node(x, shape) for x in nodes]


def logspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0) -> Tensor:
    """``num`` powers of ``base`` whose exponents lie at equal distances from ``start`` to ``stop``; float32 unless ``dtype``.

    The last exponent is ``stop`` if ``endpoint``. Ends may be arrays, through which derivatives go; then the powers lie along ``axis`` of the result.

    >>> hnp.logspace(0, 3, 4)
    Tensor([   1.,   10.,  100., 1000.], dtype=float32)
    """
    count = _number_of_elements(num, "logspace")
    start, stop = _ends(start, stop, "logspace")
    if Tensor in (type(start), type(base)):
        return wrap(cast_to(array(FUNCTIONS["power"](base, linspace(start, stop, count, endpoint=endpoint, axis=axis)), "logspace"), dtype))
    axis_of(axis, 1, "logspace")
    with np.errstate(all="ignore"):
        found = computed("logspace", count, 8, lambda: np.logspace(start, stop, count, endpoint, base))
    return _of_known(found, dtype)


def _of_known(found: np.ndarray, dtype: Any) -> Tensor:
    """``found`` in ``dtype``, or for None in the default type of its kind."""
    default = dtypes.default_complex if found.dtype.kind == "c" else dtypes.default_float
    return tensor(found, dtype=default if dtype is None else dtype)


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Tensor:
    """``num`` numbers from ``start`` to ``stop`` of which each is the same multiple of the one before; float32, or complex64, unless ``dtype``.

    The last is ``stop`` if ``endpoint``, and the first ``start``. Ends may be arrays, through which derivatives go; then the numbers lie along
    ``axis`` of the result. Real ends of different signs give NaN between them, unless ``dtype`` is complex. Raises ArgumentError for a known end of
    0.

    >>> hnp.geomspace(1, 1000, 4)
    Tensor([   1.,   10.,  100., 1000.], dtype=float32)
    """
    count, plane = _number_of_elements(num, "geomspace"), dtype is not None and element_type(dtype).is_complex
    ends = [known_array(x, "geomspace") for x in (start, stop) if type(x) is not Tensor]
    if any((x == 0).any() for x in ends):
        raise located(ArgumentError("geomspace: an end is 0, of which nothing is a multiple"))
    start, stop = _ends(start, stop, "geomspace")
    if type(start) is Tensor:
        first, last = (wrap(cast_to(array(x, "geomspace"), dtype)) if plane else x for x in (start, stop))
        return wrap(cast_to(_along(_geometric(first, last, count, endpoint), axis, "geomspace"), dtype))
    axis_of(axis, 1, "geomspace")
    with np.errstate(all="ignore"):
        low, high = (x.astype(np.complex128) if plane else x for x in ends)
        found = computed("geomspace", count, 8, lambda: np.geomspace(low, high, count, endpoint))
    return _of_known(found, dtype)


def _geometric(start: Tensor, stop: Tensor, n: int, endpoint: bool) -> Node:
    """The numbers of :func:`geomspace` along the first axis, between ends of one shape and type; as NumPy's, multiples of ``start``."""
    first, last = array(start, "geomspace"), array(stop, "geomspace")
    shape = (n, *first.shape)
    ratio = wrap(record(ew.div, (last, first)))
    if first.dtype.is_complex:
        powers = FUNCTIONS["exp"](linspace(0.0, FUNCTIONS["log"](ratio), n, endpoint=endpoint))
    else:  # decades have few roundings, which integers would show
        powers = FUNCTIONS["power"](10.0, linspace(0.0, FUNCTIONS["log10"](ratio), n, endpoint=endpoint))
    powers = powers * wrap(first)
    first, last = broadcast_node(first, shape), broadcast_node(last, shape)
    node = record(ew.select, (record(ew.eq, (count(shape, 0, dtypes.int64), constant(0, dtypes.int64))), first, array(powers, "geomspace")))
    return record(ew.select, (_last(n, shape[1:]), last, node)) if endpoint and n > 1 else node
