"""Native code that realises a pending Tensor whose expression has run before: a walk, a look-up, a run, without Python.

The walk numbers the nodes that a Tensor needs in the order in which :mod:`hologram.trace.lazy` does. Its key is exact: two expressions with equal
keys have the same ops, attributes, types, shapes and sharing, so one program computes both. Attributes and types are compared by identity; equal ones
that are other objects are not found, and Python serves them.
"""

from __future__ import annotations

from hologram.backends.native.code.call import context_give, context_take, execute, need_words
from hologram.backends.native.code.capi import (
    Py_DecRef,
    Py_IncRef,
    PyBytes_AsString,
    PyBytes_FromStringAndSize,
    PyDict_GetItemWithError,
    PyErr_Clear,
    PyTuple_New,
    PyTuple_SetItem,
)
from hologram.backends.native.code.heap import storage_take, storage_unwritten
from hologram.backends.native.code.object_layout import layout
from hologram.backends.native.code.records import Context, Donor, Expression, Object, Sized, Storage, expressions, heap, process
from hologram.backends.native.code.slots import set_slot, shared, slot

# None is the null pointer.
# mypy: disable-error-code="return-value"
from hologram.backends.native_lang.language import Array, copy, exported, f32, f64, i64, integer, native, offset, ptr, shift_right, void

Pointers, Words, Doubles, Singles = Array[ptr], Array[i64], Array[f64], Array[f32]

MAX_NODES = 256  # of an expression; of a larger one what Python takes is a small part of the run
SCALARS = 256  # places for constants that are arguments; an expression with more is Python's
MAX_KEY = 1024  # words
MAX_SLOTS = 512  # of a program: arguments, hidden constants, results
VISITED = 1024  # places of the table of visited nodes, a power of 2
NUMBER_BITS = 16  # of a node's number in a walk
MIXER = -7046029254386353131  # 2**64 divided by the golden ratio, odd

# A context's words during a walk and a run: nodes, then the key, then Storages of leaves, and of constants, then the slots of the graph.
KEY_AT = MAX_NODES
LEAVES_AT = KEY_AT + MAX_KEY
SCALARS_AT = LEAVES_AT + MAX_NODES
SLOTS_AT = SCALARS_AT + SCALARS
PYTHONS_TURN = 255  # one walk in so many is not looked for, so that Python sees which programs are in use
ALL_WORDS = SLOTS_AT + MAX_SLOTS
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
def constant_detail(context: Context, attrs: ptr) -> ptr:
    """The type's name of a constant that is an argument, whose Storage is noted, owned; the attributes of one that a program has by value; None for
    what Python is to see."""
    items = Pointers(offset(attrs, layout.tuple_items))
    storage = PyDict_GetItemWithError(expressions.operands, attrs)
    if storage == process.none:
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


@native
def find_expression(key: Array[i64], n: i64) -> Expression:
    """The expression of this key; None for one that is not known."""
    wanted = fingerprint_of_key(key, n)
    place = wanted & expressions.mask
    while expressions.table[place] is not None:
        found = Expression(expressions.table[place])
        if found.fingerprint == wanted and found.n_key == n and is_equal(found.key, key, n) != 0:
            return found
        place = (place + 1) & expressions.mask
    return None


# --- running --------------------------------------------------------------------------------------------------------------------------------


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
def keep_all(objects: Array[ptr], n: i64) -> void:
    for i in range(n):
        Py_IncRef(objects[i])


@native
def drop_all(objects: Array[ptr], n: i64) -> void:
    for i in range(n):
        Py_DecRef(objects[i])


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
def is_given_up(context: Context, donor: Donor) -> i64:
    """Whether nobody but the expression holds the memory of a leaf, nor a node that needs it, below the roots. No Python code may run between this
    and the program."""
    storage = Storage(Pointers(context.words)[LEAVES_AT + donor.leaf])
    if storage.owner is not None:
        return 0
    nodes = Pointers(context.words)
    set_slot(nodes[donor.node], expressions.node_array, process.none)  # which is remembered for readers, who have views of their own
    if storage.exports != 0 or storage.refcount != 1:
        return 0
    for i in range(donor.n_uses >> 1):
        if Object(nodes[donor.uses[2 * i]]).refcount != donor.uses[2 * i + 1]:
            return 0
    return 1


@native
def has_donor(context: Context, expression: Expression) -> i64:
    for i in range(expression.n_donors):
        if is_given_up(context, expression.donors[i]) != 0:
            return 1
    return 0


@native
def is_taken(storages: Array[ptr], n: i64, storage: ptr) -> i64:
    for i in range(n):
        if storages[i] == storage:
            return 1
    return 0


@native
def donated(context: Context, expression: Expression, storages: Array[ptr], root: i64) -> ptr:
    """The Storage that a root takes over from a leaf; None where it has one of its own."""
    for i in range(expression.n_donors):
        if expression.donors[i].root == root and is_given_up(context, expression.donors[i]) != 0:
            found = Pointers(context.words)[LEAVES_AT + expression.donors[i].leaf]
            if is_taken(storages, root, found) == 0:
                return shared(found)
    return None


@native
def take_roots(context: Context, expression: Expression, storages: Array[ptr], slots: Array[ptr]) -> i64:
    """Owned Storages for the results, and their addresses. Zero, and an exception, without memory."""
    for i in range(expression.n_roots):
        storages[i] = donated(context, expression, storages, i) if expression.n_donors != 0 else None
        if storages[i] is None:
            root = expression.roots[i]
            storages[i] = storage_take(root.aval, root.nbytes, root.size_class)
        if storages[i] is None:
            drop_all(storages, i)
            return 0
        slots[i] = Storage(storages[i]).data
    return 1


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


@native
def run_expression(context: Context, expression: Expression) -> i64:
    """Runs the program of the expression that was walked, and settles its nodes. Zero, and an exception, where it fails."""
    nodes = Pointers(context.words)
    slots = Pointers(offset(context.words, SLOTS_AT << 3))
    n = place_leaves(context, slots)
    copy(offset(slots, n << 3), expression.constants, expression.n_constants << 3)
    n += expression.n_constants
    storages = Pointers(offset(slots, (n + expression.n_roots) << 3))
    if take_roots(context, expression, storages, Pointers(offset(slots, n << 3))) == 0:
        return 0
    # What Python code that runs in between, a finaliser or the start of threads, may let go: the expression itself, too.
    count = context.position
    leaves = context.leaf
    program = expression.program
    kept = expression.kept
    n_roots = expression.n_roots
    Py_IncRef(program)
    Py_IncRef(kept)
    keep_all(nodes, count)
    keep_all(Pointers(offset(nodes, LEAVES_AT << 3)), leaves)
    context.steps = expression.steps
    context.n_steps = expression.n_steps
    done = execute(context, expression.graph, slots, expression.arena_bytes, expression.flags)
    if done != 0:
        done = settle_roots(context, expression, nodes, storages)
    drop_all(storages, n_roots)
    drop_all(Pointers(offset(nodes, LEAVES_AT << 3)), leaves)
    drop_all(nodes, count)
    Py_DecRef(kept)
    Py_DecRef(program)
    return done


@native
def visit_roots(context: Context, tensors: Array[ptr], n: i64) -> i64:
    """Visits the nodes of Tensors that are pending, in order. Zero where one is neither pending nor realised, or there are too many."""
    for i in range(n):
        if Object(tensors[i]).type != process.tensor_type or slot(tensors[i], process.tensor_weak) != process.false:
            return 0
        if slot(tensors[i], process.tensor_storage) == process.none and number_of(slot(tensors[i], process.tensor_node), context) < 0:
            return 0
    return context.position


@native
def realise_pending(context: Context, tensors: Array[ptr], count: i64) -> ptr:
    """True, False, or None, as :func:`expression_realise`, borrowed."""
    if visit_roots(context, tensors, count) == 0 or expressions.clock & PYTHONS_TURN == 0:
        return process.false
    n = walk(context)
    if n == 0:
        return process.false
    expression = find_expression(Words(offset(context.words, KEY_AT << 3)), n)
    if expression is None or expression.left == 0 or (expression.needs_donor != 0 and has_donor(context, expression) == 0):
        return process.false
    if expression.left > 0:
        expression.left -= 1
    if run_expression(context, expression) == 0:
        return None
    for i in range(count):
        if slot(tensors[i], process.tensor_storage) == process.none:
            adopt(tensors[i])
    return process.true


@exported
def expression_realise(module: ptr, tensors: Array[ptr], n: i64) -> ptr:
    """METH_FASTCALL: computes pending Tensors whose expression is known; True if it did, False where Python is to do it."""
    if expressions.known == 0 or process.tracing[0] != 0:
        return shared(process.false)
    context = begin_walk()
    if context is None:
        return None
    result = realise_pending(context, tensors, n)
    end_walk(context)
    return result if result is None else shared(result)


@exported
def expression_key(module: ptr, nodes: Array[ptr], n: i64) -> ptr:
    """METH_FASTCALL: the fingerprint and the key of the expression of pending nodes, as bytes; None for one that Python is to serve."""
    context = begin_walk()
    if context is None:
        return None
    visited = 1
    for i in range(n):
        if number_of(nodes[i], context) < 0:
            visited = 0
    words = walk(context) if visited != 0 else 0
    found: ptr = None
    if words == 0:
        found = shared(process.none)
    else:
        key = Words(offset(context.words, KEY_AT << 3))
        Words(context.words)[KEY_AT - 1] = fingerprint_of_key(key, words)  # the nodes are not wanted any more
        found = PyBytes_FromStringAndSize(offset(key, -8), (words + 1) << 3)
    end_walk(context)
    return found
