"""Native code that walks a pending expression: it numbers the nodes in the order in which :mod:`hologram.trace.lazy` does, and makes its exact key.

Two expressions with equal keys have the same ops, attributes, types, shapes and sharing, so one program computes both. Attributes and types are
compared by identity; equal ones that are other objects are not found, and Python serves them.
"""

from __future__ import annotations

from hologram.backends.native.code.call import context_give, context_take, need_words
from hologram.backends.native.code.capi import PyBytes_AsString, PyDict_GetItemWithError, PyErr_Clear
from hologram.backends.native.code.expression_records import expressions
from hologram.backends.native.code.heap import storage_unwritten
from hologram.backends.native.code.number_code import MAX_REGISTERS
from hologram.backends.native.code.object_layout import layout
from hologram.backends.native.code.records import Context, Object, Sized, Storage, heap, process
from hologram.backends.native.code.slots import drop_all, shared, slot

# None is the null pointer.
# mypy: disable-error-code="return-value"
from hologram.backends.native_lang.language import Array, copy, f32, f64, i64, integer, native, offset, ptr, shift_right, void

Pointers, Words, Doubles, Singles = Array[ptr], Array[i64], Array[f64], Array[f32]

MAX_NODES = 256  # of an expression; of a larger one what Python takes is a small part of the run
SCALARS = 256  # places for constants that are arguments; an expression with more is Python's
MAX_KEY = 1024  # words
MAX_SLOTS = 512  # of a program: arguments, hidden constants, results
VISITED = 1024  # places of the table of visited nodes, a power of 2
NUMBER_BITS = 16  # of a node's number in a walk
MIXER = -7046029254386353131  # 2**64 divided by the golden ratio, odd

# A context's words during a walk and a run: nodes, then the key, then Storages of leaves, and of constants, then the slots of the graph; and the
# key and the numbers of the expression's structure; and the steps of one that runs at first sight.
KEY_AT = MAX_NODES
LEAVES_AT = KEY_AT + MAX_KEY
SCALARS_AT = LEAVES_AT + MAX_NODES
SLOTS_AT = SCALARS_AT + SCALARS
STRUCTURE_AT = SLOTS_AT + MAX_SLOTS
REGISTERS_AT = STRUCTURE_AT + MAX_KEY
SIGHT_AT = REGISTERS_AT + MAX_REGISTERS
SIGHT_NODES = 64  # of an expression that runs at first sight, leaves included
SIGHT_FIELDS = 6  # words of each node
STEPS_AT = SIGHT_AT + SIGHT_FIELDS * SIGHT_NODES
STEPS_WORDS = 2048
ALL_WORDS = STEPS_AT + STEPS_WORDS
# Of the context, ``position`` counts nodes, ``leaf`` leaves, and ``overflow`` constants that are arguments.


@native
def number_of(node: ptr, context: Context) -> i64:
    """The number of a node in the walk under way, which visits it if it is new; -1 where there are too many."""
    place = shift_right(integer(node) * MIXER, 40) & (VISITED - 1)
    stamp = expressions.clock << NUMBER_BITS
    while expressions.visits[place] >> NUMBER_BITS == expressions.clock:
        if expressions.visited[place] == node:
            return expressions.visits[place] - stamp
        place = (place + 1) & (VISITED - 1)
    n = context.position
    if n == MAX_NODES:
        return -1
    expressions.visited[place] = node
    expressions.visits[place] = stamp + n
    Pointers(context.words)[n] = node
    context.position = n + 1
    return n


@native
def leaf_detail(context: Context, attrs: ptr) -> ptr:
    """The type of a leaf on the host, whose Storage is noted; None for another one."""
    storage = Storage(Pointers(offset(attrs, layout.tuple_items))[0])
    if storage.type != heap.storage_type:
        return None
    Pointers(context.words)[LEAVES_AT + context.leaf] = storage
    context.leaf += 1
    return storage.aval


@native
def is_by_value(x: f64) -> i64:
    """Whether programs have a number by value: those that rewrite rules look for, and what is not finite."""
    for i in range(expressions.n_by_value):
        if x == expressions.by_value[i]:
            return 1
    return 0 if x - x == 0.0 else 1


@native
def new_operand(name: ptr, bits: ptr) -> ptr:
    """An owned Storage of a constant that Python has not seen as an argument; None for one that it is to see. Never an exception."""
    for i in range(expressions.n_float_types):
        of = expressions.float_types[i]
        if of.name == name:
            data = PyBytes_AsString(bits)
            if is_by_value(Doubles(data)[0] if of.nbytes == 8 else Singles(data)[0]) != 0:
                return None
            made = storage_unwritten(of.aval, 0)
            if made is None:
                PyErr_Clear()
                return None
            copy(made.data, data, of.nbytes)
            return made
    return None


@native
def is_number(name: ptr) -> i64:
    """Whether constants of a type are numbers of a structure, which exact keys have by value."""
    for i in range(expressions.n_integer_types):
        if expressions.integer_types[i] == name:
            return 1
    return 0


@native
def constant_detail(context: Context, attrs: ptr) -> ptr:
    """The type's name of a constant that is an argument, whose Storage is noted, owned; the attributes of one that a program has by value; None for
    what Python is to see."""
    items = Pointers(offset(attrs, layout.tuple_items))
    storage = PyDict_GetItemWithError(expressions.operands, attrs)
    if storage == process.none or (storage is None and is_number(items[0]) != 0):
        return attrs
    if context.overflow == expressions.max_scalars:
        return None
    storage = new_operand(items[0], items[1]) if storage is None else shared(storage)
    if storage is None:
        return None
    Pointers(context.words)[SCALARS_AT + context.overflow] = storage
    context.overflow += 1
    return items[0] if Object(storage).type == heap.storage_type else None


@native
def walk(context: Context) -> i64:
    """Numbers the nodes that the roots need, which have been visited, and writes the key of the expression. The words of the key; 0 for what Python
    is to serve. The caller calls :func:`end_walk`."""
    roots = context.position
    key = Words(offset(context.words, KEY_AT << 3))
    key[0] = roots
    n = 1
    i = 0
    while i < context.position:
        node = Pointers(context.words)[i]
        if Object(node).type != expressions.pending_type:
            return 0
        op = slot(node, expressions.node_op)
        attrs = slot(node, expressions.node_attrs)
        inputs = slot(node, expressions.node_inputs)
        count = Sized(inputs).size
        if n + 2 + count > MAX_KEY:
            return 0
        detail: ptr = None
        if op == expressions.leaf or op == expressions.const:
            if i < roots:
                return 0
            detail = leaf_detail(context, attrs) if op == expressions.leaf else constant_detail(context, attrs)
            if detail is None:
                return 0
        elif Sized(attrs).size != 0:
            detail = attrs
        key[n] = integer(op) + (1 if slot(node, expressions.node_seen) == process.true else 0)
        key[n + 1] = integer(detail)
        n += 2
        for j in range(count):
            number = number_of(Pointers(offset(inputs, layout.tuple_items))[j], context)
            if number < 0:
                return 0
            key[n] = number
            n += 1
        i += 1
    return n


@native
def begin_walk() -> Context:
    """A context with room for a walk and a run; None, and an exception, without memory."""
    context = context_take()
    if context is None:
        return None
    expressions.clock += 1
    context.position = 0
    context.leaf = 0
    context.overflow = 0
    if need_words(context, ALL_WORDS) == 0:
        context_give(context)
        return None
    return context


@native
def end_walk(context: Context) -> void:
    drop_all(Pointers(offset(context.words, SCALARS_AT << 3)), context.overflow)
    context_give(context)


@native
def fingerprint_of_key(key: Array[i64], n: i64) -> i64:
    """A hash of the words of a key, never 0."""
    found = n
    for i in range(n):
        found = (found ^ key[i]) * MIXER
        found = found ^ shift_right(found, 29)
    return found | 1


@native
def is_equal(a: Array[i64], b: Array[i64], n: i64) -> i64:
    for i in range(n):
        if a[i] != b[i]:
            return 0
    return 1
