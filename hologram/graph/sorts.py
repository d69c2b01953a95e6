"""Sorts, on their way to the kernels that a backend has ready.

:func:`prepare_sort` turns elements into keys, rows side by side, and what was sorted back into elements; :func:`lower_native` makes a step of the
kernel between.
"""

from __future__ import annotations

from hologram import dtypes
from hologram.dtypes import DType
from hologram.graph.emission import Lowered
from hologram.graph.fuse import Group
from hologram.graph.kernel_ir import Buffer, Kernel
from hologram.primitives.op import TABLE, Shape
from hologram.primitives.sorting import argsort, order_keys, sort_key, sort_keys, sort_value
from hologram.symbolic import Int, atoms, prod
from hologram.trace.node import Builder, Node, const_attrs

KEY_NS = 8.0  # of one key
UNKNOWN_NS = 100_000.0

# --- before fusion ---------------------------------------------------------------------------------------------------


def prepare_sort(b: Builder, node: Node, x: Node) -> Node:
    axis, descending = node.attrs
    n = x.shape[axis]
    moved = [*[a for a in range(x.ndim) if a != axis], axis]
    lines = _moved(b, x, tuple(moved))
    wide = _cast(b, lines, _sortable(x.dtype))
    rows = _reshape(b, wide, (prod(lines.shape[:-1]), n))
    out = _order(b, rows, descending) if node.op is argsort else _sorted(b, rows, descending)
    out = _cast(b, _reshape(b, out, lines.shape), node.dtype)
    return _moved(b, out, tuple(moved.index(a) for a in range(x.ndim)))


def _sortable(d: DType) -> DType:
    """The type with keys that holds every value of ``d``."""
    if d.kind == "b":
        return dtypes.uint32
    return d if d.bits >= 32 else {"i": dtypes.int32, "u": dtypes.uint32, "f": dtypes.float32}[d.kind]


def _keys(b: Builder, rows: Node, descending: bool) -> Node:
    keys = b(sort_key, (rows,))
    return b(TABLE["not"], (keys,)) if descending else keys


def _sorted(b: Builder, rows: Node, descending: bool) -> Node:
    keys = _first(b, b(sort_keys, (_keys(b, rows, descending),), (0,)))
    return b(sort_value, (b(TABLE["not"], (keys,)) if descending else keys,), (rows.dtype.name,))


def _order(b: Builder, rows: Node, descending: bool) -> Node:
    """Where a key has 32 bits, the index is carried below it in one number."""
    if rows.dtype.is_float:
        zero = _const(b, 0.0, rows.dtype)
        rows = b(TABLE["select"], (b(TABLE["eq"], (rows, zero)), zero, rows))
    keys = _keys(b, rows, descending)
    if keys.dtype is dtypes.uint64:
        return _first(b, b(order_keys, (keys,)))
    index = b(TABLE["iota"], (), (keys.shape, 1, "uint64"))
    high = b(TABLE["shl_low"], (_cast(b, keys, dtypes.uint64), _const(b, 32, dtypes.uint64)))
    pairs = b(sort_keys, (b(TABLE["or"], (high, index)),), (32,))
    return _cast(b, b(TABLE["and"], (_first(b, pairs), _const(b, 2**32 - 1, dtypes.uint64))), dtypes.int64)


def _first(b: Builder, halves: Node) -> Node:
    """(rows, 2, n) at [:, 0]."""
    rows, _, n = halves.shape
    return _reshape(b, b(TABLE["slice"], (halves,), ((0, 0, 0), (rows, 1, n), (1, 1, 1))), (rows, n))


def _const(b: Builder, value: float, d: DType) -> Node:
    return b(TABLE["const"], (), const_attrs(value, d))


def _cast(b: Builder, x: Node, d: DType) -> Node:
    return x if x.dtype is d else b(TABLE["cast"], (x,), (d.name,))


def _reshape(b: Builder, x: Node, shape: Shape) -> Node:
    return x if x.shape == shape else b(TABLE["reshape"], (x,), (shape,))


def _moved(b: Builder, x: Node, perm: tuple[int, ...]) -> Node:
    return x if perm == tuple(range(x.ndim)) else b(TABLE["transpose"], (x,), (perm,))


# --- after fusion ----------------------------------------------------------------------------------------------------


def lower_native(group: Group) -> Lowered:
    """The step of a ``native`` root: a kernel that the backend has under a name, on memory."""
    (root,) = group.roots
    (keys,) = root.inputs
    n = keys.shape[1]
    kernel = Kernel()
    kernel.params = [Buffer("b0", keys.dtype, "in", keys.size), Buffer("b1", root.dtype, "out", root.size)]
    kernel.ready = (f"{root.op.name}_{keys.dtype}", (n, *root.attrs))
    kernel.chunks = keys.shape[0]
    kernel.symbols = sorted({a.name for e in (kernel.chunks, n) for a in atoms(e)})
    kernel.cost = _cost(n)
    return Lowered(kernel, [keys, root], group)


def _cost(n: Int) -> float:
    return KEY_NS * n + 3.0 if isinstance(n, int) else UNKNOWN_NS
