"""Native code around the run of an expression: the memory of its leaves, who is kept meanwhile, and what becomes of its nodes."""

from __future__ import annotations

from hologram.backends.native.code.capi import Py_DecRef, PyTuple_New, PyTuple_SetItem
from hologram.backends.native.code.expression_records import Expression, expressions
from hologram.backends.native.code.object_layout import layout
from hologram.backends.native.code.records import Context, Object, Storage, process
from hologram.backends.native.code.slots import set_slot, shared, slot
from hologram.backends.native.code.walk import LEAVES_AT, SCALARS_AT
from hologram.backends.native_lang.language import Array, i64, native, offset, ptr, void

Pointers = Array[ptr]


@native
def settle_node(node: ptr, storage: Storage, dtype_name: ptr) -> i64:
    """The node becomes the leaf of a Storage, unless it has become a leaf meanwhile. Zero, and an exception, without memory."""
    op = slot(node, expressions.node_op)
    if op == expressions.leaf or op == expressions.const:
        return 1
    attrs = PyTuple_New(3)
    if attrs is None:
        return 0
    PyTuple_SetItem(attrs, 0, shared(storage))
    PyTuple_SetItem(attrs, 1, shared(slot(node, expressions.node_shape)))
    PyTuple_SetItem(attrs, 2, shared(dtype_name))
    set_slot(node, expressions.node_op, expressions.leaf)
    set_slot(node, expressions.node_inputs, expressions.nothing)
    set_slot(node, expressions.node_attrs, attrs)
    set_slot(node, expressions.node_depth, expressions.zero)
    set_slot(node, expressions.node_array, process.none)
    Py_DecRef(attrs)
    return 1


@native
def place_leaves(context: Context, slots: Array[ptr]) -> i64:
    """The addresses of leaves and of constants that are arguments; how many there are."""
    n = context.leaf
    for i in range(n):
        slots[i] = Storage(Pointers(context.words)[LEAVES_AT + i]).data
    for i in range(context.overflow):
        slots[n + i] = Storage(Pointers(context.words)[SCALARS_AT + i]).data
    return n + context.overflow


@native
def settle_roots(context: Context, expression: Expression, nodes: Array[ptr], storages: Array[ptr]) -> i64:
    """Values for the nodes that were computed; the others are marked as seen. Zero, and an exception, without memory."""
    for i in range(context.position):
        set_slot(nodes[i], expressions.node_seen, process.true)
    for i in range(expression.n_roots):
        if settle_node(nodes[expression.roots[i].node], storages[i], expression.roots[i].dtype_name) == 0:
            return 0
    return 1


@native
def adopt(tensor: ptr) -> void:
    """Gives a Tensor the value that its node has got."""
    node = slot(tensor, process.tensor_node)
    if Object(node).type == expressions.pending_type and slot(node, expressions.node_op) == expressions.leaf:
        set_slot(tensor, process.tensor_storage, Pointers(offset(slot(node, expressions.node_attrs), layout.tuple_items))[0])
