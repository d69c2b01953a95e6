"""Native code that realises a pending Tensor whose expression has run before: a walk, a look-up, a run, without Python.

An expression is looked for by its exact key (:mod:`.walk`), then by its structure (:mod:`.structures`); one that is not known may run at first sight
(:mod:`.first_sight`).
"""

from __future__ import annotations

from hologram.backends.native.code.call import execute
from hologram.backends.native.code.capi import Py_DecRef, Py_IncRef, PyBytes_FromStringAndSize
from hologram.backends.native.code.expression_records import Donor, Expression, expressions
from hologram.backends.native.code.first_sight import run_at_sight
from hologram.backends.native.code.heap import storage_take
from hologram.backends.native.code.peepholes import keys_as_bytes
from hologram.backends.native.code.records import Context, Object, Storage, process
from hologram.backends.native.code.settling import adopt, place_leaves, settle_roots
from hologram.backends.native.code.slots import drop_all, keep_all, set_slot, shared, slot
from hologram.backends.native.code.structures import find_structure, run_structure, structure_key
from hologram.backends.native.code.walk import (
    KEY_AT,
    LEAVES_AT,
    REGISTERS_AT,
    SLOTS_AT,
    STRUCTURE_AT,
    begin_walk,
    end_walk,
    fingerprint_of_key,
    is_equal,
    number_of,
    walk,
)

# None is the null pointer.
# mypy: disable-error-code="return-value"
from hologram.backends.native_lang.language import Array, copy, exported, i64, native, offset, ptr, void

Pointers, Words = Array[ptr], Array[i64]

PYTHONS_TURN = 255  # one walk in so many is not looked for, so that Python sees which programs are in use


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
def adopt_all(tensors: Array[ptr], count: i64) -> void:
    for i in range(count):
        if slot(tensors[i], process.tensor_storage) == process.none:
            adopt(tensors[i])


@native
def realised_at_sight(context: Context, tensors: Array[ptr], count: i64, n_key: i64) -> ptr:
    """As :func:`realise_pending`, of an expression that is not known."""
    done = run_at_sight(context, n_key)
    if done <= 0:
        return process.false if done == 0 else None
    adopt_all(tensors, count)
    return process.true


@native
def realise_pending(context: Context, tensors: Array[ptr], count: i64) -> ptr:
    """True, False, or None, as :func:`expression_realise`, borrowed."""
    if visit_roots(context, tensors, count) == 0 or expressions.clock & PYTHONS_TURN == 0:
        return process.false
    n = walk(context)
    if n == 0:
        return process.false
    expression = find_expression(Words(offset(context.words, KEY_AT << 3)), n)
    if expression is None and expressions.structures != 0:
        expression = find_structure(context)
    if expression is None:
        return realised_at_sight(context, tensors, count, n) if expressions.n_peepholes != 0 else process.false
    if expression.left == 0 or (expression.needs_donor != 0 and has_donor(context, expression) == 0):
        return process.false
    if expression.left > 0:
        expression.left -= 1
    done = run_expression(context, expression) if expression.numbers is None else run_structure(context, expression)
    if done == 0:
        return None
    adopt_all(tensors, count)
    return process.true


@exported
def expression_realise(module: ptr, tensors: Array[ptr], n: i64) -> ptr:
    """METH_FASTCALL: computes pending Tensors whose expression is known; True if it did, False where Python is to do it."""
    if expressions.known + expressions.n_peepholes == 0 or process.tracing[0] != 0:
        return shared(process.false)
    context = begin_walk()
    if context is None:
        return None
    result = realise_pending(context, tensors, n)
    end_walk(context)
    return result if result is None else shared(result)


@native
def visit_nodes(context: Context, nodes: Array[ptr], n: i64) -> i64:
    """Walks the expression of pending nodes; the words of its exact key, 0 for one that Python is to serve."""
    for i in range(n):
        if number_of(nodes[i], context) < 0:
            return 0
    return walk(context)


@native
def key_as_bytes(context: Context, at: i64, words: i64, more: i64) -> ptr:
    """The fingerprint of a key of ``words`` words, which stands at ``at`` of the context's, the key, and ``more`` words behind it, as bytes. What is
    before the key is written over."""
    key = Words(offset(context.words, at << 3))
    Words(context.words)[at - 1] = fingerprint_of_key(key, words)
    return PyBytes_FromStringAndSize(offset(key, -8), (words + more + 1) << 3)


@exported
def expression_key(module: ptr, nodes: Array[ptr], n: i64) -> ptr:
    """METH_FASTCALL: the fingerprint and the key of the expression of pending nodes, as bytes; None for one that Python is to serve."""
    context = begin_walk()
    if context is None:
        return None
    words = visit_nodes(context, nodes, n)
    found = shared(process.none) if words == 0 else key_as_bytes(context, KEY_AT, words, 0)
    end_walk(context)
    return found


@exported
def expression_structure(module: ptr, nodes: Array[ptr], n: i64) -> ptr:
    """METH_FASTCALL: as :func:`expression_key` of the expression's structure, followed by the numbers."""
    context = begin_walk()
    if context is None:
        return None
    words = structure_key(context) if visit_nodes(context, nodes, n) != 0 else 0
    found: ptr = None
    if words == 0:
        found = shared(process.none)
    else:
        numbers = context.numbers
        copy(offset(context.words, (STRUCTURE_AT + words) << 3), offset(context.words, REGISTERS_AT << 3), numbers << 3)
        found = key_as_bytes(context, STRUCTURE_AT, words, numbers)
    end_walk(context)
    return found


@exported
def peephole_keys(module: ptr, nodes: Array[ptr], n: i64) -> ptr:
    """METH_FASTCALL: for each node of the expression of pending nodes the number of words of its peephole's key, and the key, as bytes; none where
    Python is to serve it."""
    context = begin_walk()
    if context is None:
        return None
    words = visit_nodes(context, nodes, n)
    found = shared(process.none) if words == 0 else keys_as_bytes(context)
    end_walk(context)
    return found
