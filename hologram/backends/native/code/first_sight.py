"""Native code that runs a small expression at first sight: one that is met for the first time, of ops whose steps are known.

The steps of an op on operands of given types are the same in every expression, as long as no rewrite rule looks further than at the op and what its
operands are (a *peephole*). Python finds the steps of a peephole once (:mod:`hologram.backends.op_by_op.native_peepholes`). Here expressions are made
of them: of elementwise ops and reductions of all elements, without two nodes that are equal, as these would be one. An expression that comes again
is Python's, which finds out whether it is worth a program of its own.
"""

from __future__ import annotations

from hologram.backends.native.code.call import execute
from hologram.backends.native.code.capi import Py_DecRef, Py_IncRef, PyBytes_AsString, PyLong_AsLongLong
from hologram.backends.native.code.expression_records import Peephole, expressions
from hologram.backends.native.code.peepholes import (
    CONSTANT,
    COUNTS,
    FOUND,
    INNER,
    NEEDED,
    ORDER,
    PLACES,
    constant_bits,
    count_elements,
    exact_key,
    find_nodes,
    find_peepholes,
    has_equal_nodes,
    input_of,
    is_computed,
    is_constant,
    nodes_of,
    op_of,
    work_of,
)
from hologram.backends.native.code.records import Context, Step, Storage, process
from hologram.backends.native.code.settling import place_leaves, settle_node
from hologram.backends.native.code.slots import drop_all, keep_all, set_slot, slot
from hologram.backends.native.code.structures import root_storage
from hologram.backends.native.code.walk import LEAVES_AT, MAX_SLOTS, SIGHT_AT, SLOTS_AT, STEPS_AT, STEPS_WORDS, fingerprint_of_key

# None is the null pointer.
# mypy: disable-error-code="return-value"
from hologram.backends.native_lang.language import Array, copy, i64, native, offset, ptr, size_of, void

Pointers, Words, Steps = Array[ptr], Array[i64], Array[Step]

STEP_WORDS = size_of(Step) // 8
MAX_NS = 25_000  # of a run: what takes longer is worth counting
STEP_NS = 100  # of a step, besides its elements
ALIGNMENT = 64  # of intermediates
ELEMENT_BYTES = 8  # of the largest type
MAX_STEPS = 6  # of an op


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
