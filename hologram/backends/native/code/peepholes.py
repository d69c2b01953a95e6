"""Native code that looks at the nodes of an expression through peepholes: at each op, and at what its operands are.

The steps of an op on operands of given types are the same in every expression, as long as no rewrite rule looks further than that
(:mod:`hologram.backends.op_by_op.peepholes`). Python finds the steps of a peephole once (:mod:`hologram.backends.op_by_op.native_peepholes`).
"""

from __future__ import annotations

from hologram.backends.native.code.capi import PyBytes_AsString, PyBytes_FromStringAndSize, PyErr_Clear, PyLong_AsLongLong
from hologram.backends.native.code.expression_records import OpRules, Peephole, expressions
from hologram.backends.native.code.object_layout import layout
from hologram.backends.native.code.records import Context, Sized
from hologram.backends.native.code.slots import slot
from hologram.backends.native.code.structures import add_attributes, add_word
from hologram.backends.native.code.walk import KEY_AT, MAX_KEY, MIXER, SIGHT_AT, SIGHT_NODES, STRUCTURE_AT, fingerprint_of_key, is_equal

# None is the null pointer.
# mypy: disable-error-code="return-value"
from hologram.backends.native_lang.language import Array, copy, i64, integer, native, offset, ptr, shift_right, u8, void
from hologram.primitives.reductions import PAGE

Pointers, Words, Bytes = Array[ptr], Array[i64], Array[u8]

MAX_ELEMENTS = 1 << 20  # of a node

# Of each node: the place of its words in the exact key; the nodes by depth; the peephole; whether it is computed; where its value is; its elements.
OFFSETS, ORDER, FOUND, NEEDED, PLACES, COUNTS = 0, SIGHT_NODES, 2 * SIGHT_NODES, 3 * SIGHT_NODES, 4 * SIGHT_NODES, 5 * SIGHT_NODES
# Of an operand of a step: the number of an input, INNER + 2 i + j for input j of input i, CONSTANT + k, or -1 - k for what step k of the op gave.
INNER, CONSTANT = 16, 64


@native
def nodes_of(context: Context, field: i64) -> Array[i64]:
    return Words(offset(context.words, (SIGHT_AT + field) << 3))


@native
def exact_key(context: Context) -> Array[i64]:
    return Words(offset(context.words, KEY_AT << 3))


@native
def input_of(context: Context, node: i64, i: i64) -> i64:
    """The number of an input of a node."""
    return exact_key(context)[nodes_of(context, OFFSETS)[node] + 2 + i]


@native
def inputs_of(context: Context, node: i64) -> i64:
    """How many inputs a node has."""
    return Sized(slot(Pointers(context.words)[node], expressions.node_inputs)).size


@native
def op_of(context: Context, node: i64) -> ptr:
    return slot(Pointers(context.words)[node], expressions.node_op)


@native
def is_computed(context: Context, node: i64) -> i64:
    op = op_of(context, node)
    return 0 if op == expressions.leaf or op == expressions.const else 1


@native
def is_constant(context: Context, node: i64) -> i64:
    """Whether a node is a constant that programs have by value."""
    attrs = slot(Pointers(context.words)[node], expressions.node_attrs)
    detail = exact_key(context)[nodes_of(context, OFFSETS)[node] + 1]
    return 1 if op_of(context, node) == expressions.const and detail == integer(attrs) else 0


@native
def constant_bits(context: Context, node: i64) -> ptr:
    attrs = slot(Pointers(context.words)[node], expressions.node_attrs)
    return Pointers(offset(attrs, layout.tuple_items))[1]


@native
def is_same_constant(context: Context, a: i64, b: i64) -> i64:
    """Whether two constants have the same bits, of whatever types."""
    first = constant_bits(context, a)
    second = constant_bits(context, b)
    n = Sized(first).size
    if Sized(second).size != n:
        return 0
    for i in range(n):
        if Bytes(PyBytes_AsString(first))[i] != Bytes(PyBytes_AsString(second))[i]:
            return 0
    return 1


# --- what is looked at ----------------------------------------------------------------------------------------------------------------------


@native
def find_nodes(context: Context) -> i64:
    """Fills in the places of the nodes in the key. Zero where one has been computed before, for which Python keeps it now, or there are too many."""
    if context.position > SIGHT_NODES:
        return 0
    at = 1
    for i in range(context.position):
        nodes_of(context, OFFSETS)[i] = at
        if is_computed(context, i) != 0 and exact_key(context)[at] & 1 != 0:
            return 0
        at += 2 + inputs_of(context, i)
    return 1


@native
def shape_of(context: Context, node: i64) -> ptr:
    return slot(Pointers(context.words)[node], expressions.node_shape)


@native
def elements_of_shape(shape: ptr) -> i64:
    """How many elements an array has; 0 where it is too large to be looked at, too."""
    found = 1
    for i in range(Sized(shape).size):
        extent = PyLong_AsLongLong(Pointers(offset(shape, layout.tuple_items))[i])
        if extent < 1 or extent > MAX_ELEMENTS:
            PyErr_Clear()
            return 0
        found *= extent
        if found > MAX_ELEMENTS:
            return 0
    return found


@native
def count_elements(context: Context) -> i64:
    """Fills in how many elements nodes have. Zero where one has none, or too many."""
    for i in range(context.position):
        nodes_of(context, COUNTS)[i] = elements_of_shape(shape_of(context, i))
        if nodes_of(context, COUNTS)[i] == 0:
            return 0
    return 1


@native
def work_of(context: Context, node: i64) -> i64:
    """How many elements the steps of a node compute, or reduce."""
    found = nodes_of(context, COUNTS)[node]
    for i in range(inputs_of(context, node)):
        count = nodes_of(context, COUNTS)[input_of(context, node, i)]
        if count > found:
            found = count
    return found


@native
def has_same_inputs(context: Context, a: i64, b: i64) -> i64:
    """Whether two nodes have the same inputs, in this or the opposite order."""
    n = inputs_of(context, a)
    if inputs_of(context, b) != n:
        return 0
    same = 1
    opposite = 1
    for i in range(n):
        if input_of(context, a, i) != input_of(context, b, i):
            same = 0
        if input_of(context, a, i) != input_of(context, b, n - 1 - i):
            opposite = 0
    return same | opposite


@native
def are_equal_nodes(context: Context, a: i64, b: i64) -> i64:
    """Whether two nodes of one op may be one. Attributes are not compared."""
    if is_computed(context, a) != 0:
        return has_same_inputs(context, a, b)
    if is_constant(context, a) == 0 or is_constant(context, b) == 0:
        return 0
    return is_same_constant(context, a, b)


@native
def has_equal_nodes(context: Context) -> i64:
    for i in range(context.position):
        op = op_of(context, i)
        if op != expressions.leaf:
            for j in range(i):
                if op_of(context, j) == op and are_equal_nodes(context, i, j) != 0:
                    return 1
    return 0


# --- peepholes ------------------------------------------------------------------------------------------------------------------------------


@native
def rules_of(op: ptr) -> OpRules:
    """What is known of an op; None of one that is not known."""
    place = shift_right(integer(op) * MIXER, 40) & expressions.op_rules_mask
    while expressions.op_rules[place] is not None:
        found = OpRules(expressions.op_rules[place])
        if found.op == op:
            return found
        place = (place + 1) & expressions.op_rules_mask
    return None


@native
def is_scalar(context: Context, node: i64) -> i64:
    return 1 if Sized(shape_of(context, node)).size == 0 else 0


@native
def add_bits(context: Context, bits: ptr) -> void:
    """Adds up to eight bytes of a bytes object."""
    add_word(context, 0)
    if context.key_words <= MAX_KEY and Sized(bits).size <= 8:
        copy(offset(context.words, (STRUCTURE_AT + context.key_words - 1) << 3), PyBytes_AsString(bits), Sized(bits).size)


@native
def first_place(context: Context, node: i64, wanted: i64) -> i64:
    """Where a node is first among the inputs of another one, and theirs: as operands of steps are told."""
    for i in range(inputs_of(context, node)):
        if input_of(context, node, i) == wanted:
            return i
    for i in range(inputs_of(context, node)):
        operand = input_of(context, node, i)
        for j in range(inputs_of(context, operand)):
            if input_of(context, operand, j) == wanted:
                return INNER + 2 * i + j
    return -1


@native
def add_operand(context: Context, rules: OpRules, node: i64, operand: i64) -> i64:
    """Adds what the op of an operand is, where the steps of the op that reads it depend on that. Zero for what Python is to see."""
    if is_constant(context, operand) != 0:
        bits = constant_bits(context, operand)
        add_word(context, integer(expressions.const))
        add_bits(context, bits)
        return 1 if Sized(bits).size <= 8 else 0
    if is_computed(context, operand) == 0:
        add_word(context, 0)
        return 1
    own = rules_of(op_of(context, operand))
    if own is None:
        return 0
    if rules.masks[own.number >> 6] >> (own.number & 63) & 1 == 0:
        add_word(context, 0)
        return 1
    add_word(context, integer(own.op))
    for i in range(inputs_of(context, operand)):
        inner = input_of(context, operand, i)
        add_word(context, 2 * is_constant(context, inner) + is_scalar(context, inner))
        add_word(context, first_place(context, node, inner))
        add_word(context, integer(slot(Pointers(context.words)[inner], expressions.node_dtype)))
        if is_constant(context, inner) != 0:
            add_bits(context, constant_bits(context, inner))
    return 1


@native
def peephole_key(context: Context, node: i64) -> i64:
    """Writes the key of a peephole, behind the words of the context's key. The number of its words; 0 for what Python is to see."""
    op = op_of(context, node)
    rules = rules_of(op)
    if rules is None or rules.is_known == 0:
        return 0
    before = context.key_words
    n = inputs_of(context, node)
    add_word(context, integer(op))
    add_word(context, 2 * n + is_scalar(context, node))
    for i in range(n):
        operand = input_of(context, node, i)
        add_word(context, 2 * first_place(context, node, operand) + is_scalar(context, operand))
        add_word(context, integer(slot(Pointers(context.words)[operand], expressions.node_dtype)))
        if add_operand(context, rules, node, operand) == 0:
            return 0
    if add_attributes(context, op, slot(Pointers(context.words)[node], expressions.node_attrs)) == 0:
        return 0
    return context.key_words - before if context.key_words <= MAX_KEY else 0


@native
def find_peephole(context: Context, node: i64) -> Peephole:
    """The steps of a node; None where they are not known."""
    context.key_words = 0
    n = peephole_key(context, node)
    if n == 0:
        return None
    key = Words(offset(context.words, STRUCTURE_AT << 3))
    wanted = fingerprint_of_key(key, n)
    place = wanted & expressions.peephole_mask
    while expressions.peepholes[place] is not None:
        found = Peephole(expressions.peepholes[place])
        if found.fingerprint == wanted and found.n_key == n and is_equal(found.key, key, n) != 0:
            return found
        place = (place + 1) & expressions.peephole_mask
    return None


@native
def is_reducible(context: Context, node: i64) -> i64:
    """Whether an array has no axis of one element, and is short enough to be reduced in one piece."""
    shape = shape_of(context, node)
    for i in range(Sized(shape).size):
        if PyLong_AsLongLong(Pointers(offset(shape, layout.tuple_items))[i]) < 2:
            return 0
    return 1 if nodes_of(context, COUNTS)[node] <= PAGE else 0


@native
def find_peepholes(context: Context) -> i64:
    """Fills in the peepholes of the nodes. Zero where one is not known, or does not hold for an array of that shape."""
    for i in range(context.position):
        nodes_of(context, NEEDED)[i] = 1 if i < exact_key(context)[0] else 0
        nodes_of(context, FOUND)[i] = 0
        if is_computed(context, i) != 0:
            found = find_peephole(context, i)
            if found is None or (found.is_reduction != 0 and is_reducible(context, input_of(context, i, 0)) == 0):
                return 0
            nodes_of(context, FOUND)[i] = integer(found)
    return 1


@native
def keys_as_bytes(context: Context) -> ptr:
    """For each node of the expression that was walked the number of words of its peephole's key, 0 where it has none, and the key."""
    context.key_words = 0
    if find_nodes(context) == 0 or count_elements(context) == 0 or has_equal_nodes(context) != 0:
        return PyBytes_FromStringAndSize(None, 0)
    key = Words(offset(context.words, STRUCTURE_AT << 3))
    for i in range(context.position):
        at = context.key_words
        if at >= MAX_KEY:
            return PyBytes_FromStringAndSize(None, 0)
        add_word(context, 0)
        n = peephole_key(context, i) if is_computed(context, i) != 0 else 0
        if n == 0:
            context.key_words = at + 1
        key[at] = n
    return PyBytes_FromStringAndSize(key, context.key_words << 3)
