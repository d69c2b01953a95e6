"""Native code that finds an expression by its structure, its key without numbers, and runs a program that takes these as operands.

The numbers are extents of leaves, sizes among the attributes of ops, and integer constants, in the order of the walk, as in
:mod:`hologram.trace.lazy_programs.structure`. Attributes are compared by value as far as they are integers and tuples, else by identity.
"""

from __future__ import annotations

from hologram.backends.native.code.call import execute
from hologram.backends.native.code.capi import (
    Py_DecRef,
    Py_IncRef,
    PyBytes_AsString,
    PyErr_Clear,
    PyErr_Occurred,
    PyLong_AsLongLong,
    PyObject_Vectorcall,
)
from hologram.backends.native.code.expression_records import Expression, expressions
from hologram.backends.native.code.heap import size_class_of, storage_take
from hologram.backends.native.code.number_code import decide
from hologram.backends.native.code.object_layout import layout
from hologram.backends.native.code.records import Context, Object, Sized, Storage, heap, process
from hologram.backends.native.code.settling import place_leaves, settle_roots
from hologram.backends.native.code.slots import drop_all, keep_all, slot
from hologram.backends.native.code.walk import (
    KEY_AT,
    LEAVES_AT,
    MAX_KEY,
    REGISTERS_AT,
    SLOTS_AT,
    STRUCTURE_AT,
    fingerprint_of_key,
    is_equal,
    is_number,
)

# None is the null pointer.
# mypy: disable-error-code="return-value"
from hologram.backends.native_lang.language import Array, copy, i64, integer, native, offset, ptr, void

Pointers, Words = Array[ptr], Array[i64]

MAX_NUMBERS = 256  # of an expression
INTEGER, TUPLE, BITS = 1, 3, 5  # what follows in a key; odd, as no address is
STRUCTURE = 1 << 32  # in the first word of a key that is a structure


@native
def add_word(context: Context, word: i64) -> void:
    if context.key_words < MAX_KEY:
        Words(offset(context.words, STRUCTURE_AT << 3))[context.key_words] = word
    context.key_words += 1


@native
def add_number(context: Context, number: i64) -> void:
    if context.numbers < MAX_NUMBERS:
        Words(offset(context.words, REGISTERS_AT << 3))[context.numbers] = number
    context.numbers += 1


@native
def add_attribute(context: Context, value: ptr, is_size: i64) -> i64:
    """Adds an attribute: its integers to the numbers where it is a size. Zero for what Python is to see."""
    kind = Object(value).type
    if kind == process.int_type:
        found = PyLong_AsLongLong(value)
        if found == -1 and PyErr_Occurred() is not None:
            PyErr_Clear()
            return 0
        add_word(context, INTEGER)
        if is_size != 0:
            add_number(context, found)
        else:
            add_word(context, found)
        return 1
    if kind == process.tuple_type:
        count = Sized(value).size
        add_word(context, TUPLE)
        add_word(context, count)
        for i in range(count):
            if add_attribute(context, Pointers(offset(value, layout.tuple_items))[i], is_size) == 0:
                return 0
        return 1
    add_word(context, integer(value))
    return 1 - is_size


@native
def sizes_of(op: ptr) -> i64:
    """A bit for each attribute of an op that is a size."""
    for i in range(expressions.n_op_sizes):
        if expressions.op_sizes[i].op == op:
            return expressions.op_sizes[i].mask
    return 0


@native
def add_leaf(context: Context, storage: Storage) -> i64:
    add_word(context, integer(slot(storage.aval, expressions.aval_kind)))
    shape = slot(storage.aval, heap.aval_shape)
    for i in range(Sized(shape).size):
        found = PyLong_AsLongLong(Pointers(offset(shape, layout.tuple_items))[i])
        if found == -1:
            PyErr_Clear()
            return 0
        add_number(context, found)
    return 1


@native
def add_constant(context: Context, attrs: ptr, detail: i64) -> i64:
    """Adds a constant for which the exact key has ``detail``: the name of its type where it is an argument of every program."""
    items = Pointers(offset(attrs, layout.tuple_items))
    if detail != integer(attrs):
        add_word(context, detail)
    elif is_number(items[0]) != 0:
        nbytes = Sized(items[1]).size
        if nbytes > 8 or context.numbers >= MAX_NUMBERS:
            return 0
        add_word(context, BITS)
        add_word(context, integer(items[0]))
        add_number(context, 0)
        copy(offset(context.words, (REGISTERS_AT + context.numbers - 1) << 3), PyBytes_AsString(items[1]), nbytes)
    else:
        add_word(context, detail)
    return 1


@native
def add_attributes(context: Context, op: ptr, attrs: ptr) -> i64:
    """Adds the attributes of a node that is neither a leaf nor a constant."""
    sizes = sizes_of(op)
    add_word(context, Sized(attrs).size)
    for i in range(Sized(attrs).size):
        if add_attribute(context, Pointers(offset(attrs, layout.tuple_items))[i], (sizes >> i) & 1) == 0:
            return 0
    return 1


@native
def add_node(context: Context, node: ptr, detail: i64) -> i64:
    """Adds what is known of a node beside its op and its inputs, for which the exact key has ``detail``."""
    op = slot(node, expressions.node_op)
    attrs = slot(node, expressions.node_attrs)
    if op == expressions.leaf:
        return add_leaf(context, Storage(Pointers(offset(attrs, layout.tuple_items))[0]))
    if op == expressions.const:
        return add_constant(context, attrs, detail)
    return add_attributes(context, op, attrs)


@native
def structure_key(context: Context) -> i64:
    """Writes the key of the structure of the expression that was walked, and its numbers. The words of the key; 0 for what Python is to serve."""
    exact = Words(offset(context.words, KEY_AT << 3))
    context.key_words = 0
    context.numbers = 0
    add_word(context, STRUCTURE + exact[0])
    at = 1
    for i in range(context.position):
        node = Pointers(context.words)[i]
        add_word(context, exact[at])
        if add_node(context, node, exact[at + 1]) == 0:
            return 0
        at += 2
        for j in range(Sized(slot(node, expressions.node_inputs)).size):
            add_word(context, exact[at + j])
        at += Sized(slot(node, expressions.node_inputs)).size
    return context.key_words if context.key_words + context.numbers <= MAX_KEY and context.numbers <= MAX_NUMBERS else 0


@native
def find_structure(context: Context) -> Expression:
    """The expression of the structure of what was walked whose program takes its numbers; None where there is none."""
    n = structure_key(context)
    if n == 0:
        return None
    key = Words(offset(context.words, STRUCTURE_AT << 3))
    registers = Words(offset(context.words, REGISTERS_AT << 3))
    wanted = fingerprint_of_key(key, n)
    place = wanted & expressions.mask
    while expressions.table[place] is not None:
        found = Expression(expressions.table[place])
        if found.fingerprint == wanted and found.n_key == n and is_equal(found.key, key, n) != 0 and decide(found.numbers, registers) != 0:
            return found
        place = (place + 1) & expressions.mask
    return None


# --- running --------------------------------------------------------------------------------------------------------------------------------


@native
def root_storage(node: ptr, arguments: Array[ptr]) -> Storage:
    """An owned Storage for a node's value. None, and an exception, where there is none. ``arguments`` is room for two pointers."""
    arguments[0] = slot(node, expressions.node_dtype)
    arguments[1] = slot(node, expressions.node_shape)
    of = PyObject_Vectorcall(expressions.aval_of, arguments, 2, None)
    if of is None:
        return None
    nbytes = PyLong_AsLongLong(slot(of, heap.aval_nbytes))
    made = Storage(None)
    if nbytes != -1 or PyErr_Occurred() is None:
        made = storage_take(of, nbytes, size_class_of(nbytes))
    Py_DecRef(of)
    return made


@native
def take_storages(context: Context, expression: Expression, storages: Array[ptr], slots: Array[ptr]) -> i64:
    """Owned Storages for the results, and their addresses. Zero, and an exception, without memory."""
    for i in range(expression.n_roots):
        storages[i] = root_storage(Pointers(context.words)[expression.roots[i].node], Pointers(offset(storages, (i + 1) << 3)))
        if storages[i] is None:
            drop_all(storages, i)
            return 0
        slots[i] = Storage(storages[i]).data
    return 1


@native
def place_numbers(context: Context, expression: Expression, slots: Array[ptr]) -> i64:
    """The addresses of leaves, of floats, and of numbers that are arguments, and the constants; how many there are."""
    n = place_leaves(context, slots)
    program = expression.numbers
    for i in range(program.n_operands):
        slots[n + i] = offset(context.words, (REGISTERS_AT + program.operands[i]) << 3)
    n += program.n_operands
    copy(offset(slots, n << 3), expression.constants, expression.n_constants << 3)
    return n + expression.n_constants


@native
def run_structure(context: Context, expression: Expression) -> i64:
    """As :func:`expressions.run_expression`, for one whose numbers have been decided on."""
    nodes = Pointers(context.words)
    leaves = Pointers(offset(nodes, LEAVES_AT << 3))
    slots = Pointers(offset(context.words, SLOTS_AT << 3))
    n = place_numbers(context, expression, slots)
    program = expression.numbers
    integers = Words(offset(slots, (n + expression.n_roots) << 3))
    for i in range(program.n_integers):
        integers[i] = Words(offset(context.words, REGISTERS_AT << 3))[program.integers[i]]
    storages = Pointers(offset(integers, program.n_integers << 3))
    # What Python code that runs in between may let go.
    count = context.position
    n_leaves = context.leaf
    n_roots = expression.n_roots
    code = expression.program
    kept = expression.kept
    Py_IncRef(code)
    Py_IncRef(kept)
    keep_all(nodes, count)
    keep_all(leaves, n_leaves)
    done = take_storages(context, expression, storages, Pointers(offset(slots, n << 3)))
    if done != 0:
        done = execute(context, expression.graph, slots, expression.arena_bytes, expression.flags)
        if done != 0:
            done = settle_roots(context, expression, nodes, storages)
        drop_all(storages, n_roots)
    drop_all(leaves, n_leaves)
    drop_all(nodes, count)
    Py_DecRef(kept)
    Py_DecRef(code)
    return done
