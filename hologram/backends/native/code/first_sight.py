"""Native code that runs a small expression at first sight: one that is met for the first time, of ops whose steps are known.

The steps of an op on operands of given types are the same in every expression, as long as no rewrite rule looks further than at the op and what its
operands are (a *peephole*). Python finds the steps of a peephole once (:mod:`hologram.backends.op_by_op.native_peepholes`). Here expressions are made
of them: of elementwise ops and reductions of all elements, without two nodes that are equal, as these would be one. An expression that comes again
is Python's, which finds out whether it is worth a program of its own.
"""

from __future__ import annotations

from hologram.backends.native.code.call import execute
from hologram.backends.native.code.capi import (
    Py_DecRef,
    Py_IncRef,
    PyBytes_AsString,
    PyBytes_FromStringAndSize,
    PyErr_Clear,
    PyLong_AsLongLong,
)
from hologram.backends.native.code.expression_records import OpRules, Peephole, PeepholeStep, expressions
from hologram.backends.native.code.object_layout import layout
from hologram.backends.native.code.records import Context, Sized, Step, Storage, process
from hologram.backends.native.code.settling import place_leaves, settle_node
from hologram.backends.native.code.slots import drop_all, keep_all, set_slot, slot
from hologram.backends.native.code.structures import add_attributes, add_word, root_storage
from hologram.backends.native.code.walk import (
    KEY_AT,
    LEAVES_AT,
    MAX_KEY,
    MAX_SLOTS,
    MIXER,
    SIGHT_AT,
    SIGHT_NODES,
    SLOTS_AT,
    STEPS_AT,
    STEPS_WORDS,
    STRUCTURE_AT,
    fingerprint_of_key,
    is_equal,
)

# None is the null pointer.
# mypy: disable-error-code="return-value"
from hologram.backends.native_lang.language import Array, copy, i64, integer, native, offset, ptr, shift_right, size_of, u8, void
from hologram.primitives.reductions import PAGE

Pointers, Words, Bytes = Array[ptr], Array[i64], Array[u8]
Steps, PeepholeSteps = Array[Step], Array[PeepholeStep]

STEP_WORDS = size_of(Step) // 8
MAX_NS = 25_000  # of a run: what takes longer is worth counting
STEP_NS = 100  # of a step, besides its elements
MAX_ELEMENTS = 1 << 20  # of a node
ALIGNMENT = 64  # of intermediates
ELEMENT_BYTES = 8  # of the largest type

# Of each node: the place of its words in the exact key; the nodes by depth; the peephole; whether it is computed; where its value is; its elements.
OFFSETS, ORDER, FOUND, NEEDED, PLACES, COUNTS = 0, SIGHT_NODES, 2 * SIGHT_NODES, 3 * SIGHT_NODES, 4 * SIGHT_NODES, 5 * SIGHT_NODES
# Of an operand of a step: the number of an input, INNER + 2 i + j for input j of input i, CONSTANT + k, or -1 - k for what step k of the op gave.
INNER, CONSTANT = 16, 64
MAX_STEPS = 6  # of an op


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
def node_depth(context: Context, node: i64) -> i64:
    return PyLong_AsLongLong(slot(Pointers(context.words)[node], expressions.node_depth))


@native
def order_nodes(context: Context) -> void:
    """Orders the nodes by depth: inputs first."""
    order = nodes_of(context, ORDER)
    depths = nodes_of(context, PLACES)  # which are not yet known
    for i in range(context.position):
        depth = node_depth(context, i)
        at = i
        while at > 0 and depths[at - 1] > depth:
            order[at] = order[at - 1]
            depths[at] = depths[at - 1]
            at -= 1
        order[at] = i
        depths[at] = depth


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


# --- the program ----------------------------------------------------------------------------------------------------------------------------


@native
def peephole_of(context: Context, node: i64) -> Peephole:
    return Peephole(Pointers(offset(context.words, (SIGHT_AT + FOUND) << 3))[node])


@native
def operand_of(context: Context, node: i64, word: i64) -> i64:
    """The node that a step of another node reads, or an operand of it."""
    if word < INNER:
        return input_of(context, node, word)
    return input_of(context, input_of(context, node, (word - INNER) >> 1), (word - INNER) & 1)


@native
def mark_needed(context: Context) -> void:
    """Marks the nodes that steps read: not the products that sums alone take."""
    for k in range(context.position):
        node = nodes_of(context, ORDER)[context.position - 1 - k]
        if nodes_of(context, NEEDED)[node] != 0 and is_computed(context, node) != 0:
            found = peephole_of(context, node)
            for i in range(found.n_steps):
                step = found.steps[i]
                for j in range(step.n_operands):
                    if step.operands[j] >= 0 and step.operands[j] < CONSTANT:
                        nodes_of(context, NEEDED)[operand_of(context, node, step.operands[j])] = 1


@native
def place_sources(context: Context, slots: Array[ptr]) -> i64:
    """Fills in the slots of leaves and constants; how many there are."""
    place_leaves(context, slots)
    leaf = 0
    scalar = context.leaf
    constant = context.leaf + context.overflow
    places = nodes_of(context, PLACES)
    for i in range(context.position):
        if op_of(context, i) == expressions.leaf:
            places[i] = leaf
            leaf += 1
        elif is_constant(context, i) != 0:
            slots[constant] = PyBytes_AsString(constant_bits(context, i))
            places[i] = constant
            constant += 1
        elif is_computed(context, i) == 0:
            places[i] = scalar
            scalar += 1
    return constant


@native
def cost_and_scratch(context: Context) -> i64:
    """Bytes that kernels take of the arena, aligned; -1 where a run takes too long."""
    ps = 0
    scratch = 0
    for i in range(context.position):
        if nodes_of(context, NEEDED)[i] != 0 and is_computed(context, i) != 0:
            found = peephole_of(context, i)
            ps += found.n_steps * STEP_NS * 1000 + found.cost_ps * work_of(context, i)
            if found.arena_bytes > scratch:
                scratch = found.arena_bytes
    return -1 if ps > MAX_NS * 1000 else (scratch + ALIGNMENT - 1) & -ALIGNMENT


@native
def bytes_of(n: i64) -> i64:
    """Room for ``n`` elements, aligned."""
    return (n * ELEMENT_BYTES + ALIGNMENT - 1) & -ALIGNMENT


@native
def place_results(context: Context, first: i64, scratch: i64) -> i64:
    """Places of what is computed: roots in slots from the ``first`` on, others in the arena, whose bytes it gives."""
    end = scratch
    places = nodes_of(context, PLACES)
    for i in range(context.position):
        if nodes_of(context, NEEDED)[i] != 0 and is_computed(context, i) != 0:
            if i < exact_key(context)[0]:
                places[i] = first + i
            else:
                places[i] = -1 - end
                end += bytes_of(nodes_of(context, COUNTS)[i])
    return end


@native
def constant_slot(context: Context, address: ptr) -> i64:
    """The slot of a number that a step reads, which is filled in."""
    Pointers(offset(context.words, SLOTS_AT << 3))[context.numbers] = address
    context.numbers += 1
    return context.numbers - 1


@native
def place_between(context: Context, node: i64, between: i64, step: i64) -> i64:
    """The place of what a step of a node gives to later ones; the first is ``between`` bytes from the start of the arena."""
    return -1 - (between + step * bytes_of(work_of(context, node)))


@native
def operand_place(context: Context, node: i64, word: i64, between: i64) -> i64:
    if word < 0:
        return place_between(context, node, between, -1 - word)
    if word >= CONSTANT:
        return constant_slot(context, peephole_of(context, node).constants[word - CONSTANT])
    return nodes_of(context, PLACES)[operand_of(context, node, word)]


@native
def write_step(context: Context, node: i64, i: i64, record: Step, words: Array[i64], between: i64) -> void:
    """Fills in the record of step ``i`` of a node, whose arrays are at ``words``."""
    step = peephole_of(context, node).steps[i]
    record.graph = step.graph
    record.loop = step.loop
    record.data = step.data
    record.count = nodes_of(context, COUNTS)[node] if step.is_array != 0 else 1
    record.n_operands = step.n_operands
    record.result_at = step.result_at
    record.places = words
    for j in range(step.n_operands):
        words[j] = operand_place(context, node, step.operands[j], between)
    is_last = i + 1 == peephole_of(context, node).n_steps
    words[step.n_operands] = nodes_of(context, PLACES)[node] if is_last else place_between(context, node, between, i)
    args = Words(offset(words, (step.n_operands + 1) << 3))
    copy(args, step.args, step.n_args << 3)
    if step.size_at != 0:
        args[step.size_at] = work_of(context, node)
    record.args = Pointers(args)
    record.strides = step.strides


@native
def write_steps(context: Context, between: i64) -> i64:
    """Writes the steps of the nodes that are needed; how many there are, 0 where there is no room."""
    records = offset(context.words, STEPS_AT << 3)
    count = 0
    end = STEPS_WORDS
    for k in range(context.position):
        node = nodes_of(context, ORDER)[k]
        if nodes_of(context, NEEDED)[node] != 0 and is_computed(context, node) != 0:
            found = peephole_of(context, node)
            for i in range(found.n_steps):
                step = found.steps[i]
                end -= step.n_operands + 1 + step.n_args
                if end < (count + 1) * STEP_WORDS or context.numbers + step.n_operands > MAX_SLOTS:
                    return 0
                write_step(context, node, i, Steps(records)[count], Words(offset(records, end << 3)), between)
                count += 1
    return count


@native
def most_work(context: Context) -> i64:
    found = 1
    for i in range(context.position):
        if nodes_of(context, COUNTS)[i] > found:
            found = nodes_of(context, COUNTS)[i]
    return found


@native
def flags_of(context: Context) -> i64:
    flags = 0
    for i in range(context.position):
        if nodes_of(context, NEEDED)[i] != 0 and is_computed(context, i) != 0:
            flags = flags | peephole_of(context, i).flags
    return flags


@native
def take_root_storages(context: Context, storages: Array[ptr], slots: Array[ptr]) -> i64:
    """Owned Storages for the roots, and their addresses. Zero, and an exception, without memory."""
    for i in range(exact_key(context)[0]):
        storages[i] = root_storage(Pointers(context.words)[i], Pointers(offset(storages, (i + 1) << 3)))
        if storages[i] is None:
            drop_all(storages, i)
            return 0
        slots[i] = Storage(storages[i]).data
    return 1


@native
def settle_nodes(context: Context, storages: Array[ptr]) -> i64:
    """Values for the roots; the other nodes are marked as seen. Zero, and an exception, without memory."""
    nodes = Pointers(context.words)
    for i in range(context.position):
        set_slot(nodes[i], expressions.node_seen, process.true)
    for i in range(exact_key(context)[0]):
        name = slot(slot(nodes[i], expressions.node_dtype), expressions.dtype_name)
        if settle_node(nodes[i], storages[i], name) == 0:
            return 0
    return 1


@native
def run_steps_of(context: Context, slots: Array[ptr], first: i64, arena_bytes: i64, flags: i64) -> i64:
    """Runs the steps that have been written, and settles the nodes. Zero, and an exception, where that fails."""
    nodes = Pointers(context.words)
    leaves = Pointers(offset(nodes, LEAVES_AT << 3))
    roots = exact_key(context)[0]
    storages = Pointers(offset(slots, (first + roots) << 3))
    # What Python code that runs in between may let go.
    count = context.position
    n_leaves = context.leaf
    kept = expressions.peepholes_kept
    Py_IncRef(kept)
    keep_all(nodes, count)
    keep_all(leaves, n_leaves)
    done = take_root_storages(context, storages, Pointers(offset(slots, first << 3)))
    if done != 0:
        context.steps = offset(nodes, STEPS_AT << 3)
        done = execute(context, expressions.run_steps, slots, arena_bytes, flags)
        if done != 0:
            done = settle_nodes(context, storages)
        drop_all(storages, roots)
    drop_all(leaves, n_leaves)
    drop_all(nodes, count)
    Py_DecRef(kept)
    return done


@native
def compose(context: Context, scratch: i64) -> i64:
    """Writes the program of an expression whose peepholes are known, and runs it. As :func:`run_at_sight`."""
    slots = Pointers(offset(context.words, SLOTS_AT << 3))
    first = place_sources(context, slots)
    end = place_results(context, first, scratch)
    context.numbers = first + 2 * exact_key(context)[0] + 2  # of slots: those for numbers follow the roots, their Storages, and room for a call
    context.n_steps = write_steps(context, end)
    if context.n_steps == 0:
        return 0
    arena_bytes = end + MAX_STEPS * bytes_of(most_work(context))
    return 1 if run_steps_of(context, slots, first, arena_bytes, flags_of(context)) != 0 else -1


@native
def run_at_sight(context: Context, n_key: i64) -> i64:
    """Runs the expression that was walked, whose exact key has ``n_key`` words. 1 where it has, 0 where Python is to, -1 and an exception where it
    fails."""
    fingerprint = fingerprint_of_key(exact_key(context), n_key)
    if expressions.sights[fingerprint & expressions.sights_mask] == fingerprint or find_nodes(context) == 0:
        return 0
    if count_elements(context) == 0 or has_equal_nodes(context) != 0 or find_peepholes(context) == 0:
        return 0
    order_nodes(context)
    mark_needed(context)
    scratch = cost_and_scratch(context)
    if scratch < 0:
        return 0
    done = compose(context, scratch)
    if done > 0:
        expressions.sights[fingerprint & expressions.sights_mask] = fingerprint
        expressions.n_sights += 1
    return done


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
