"""Native code of programs that run op by op: a graph whose steps are ready kernels, inner loops of NumPy's ufuncs, and strided copies."""

from __future__ import annotations

from hologram.backends.native.code.capi import PyErr_Occurred
from hologram.backends.native.code.reading import copy_row
from hologram.backends.native.code.records import Context, Step
from hologram.backends.native_lang.language import Array, address, exported, i64, native, offset, ptr, void

Pointers, Words = Array[ptr], Array[i64]
Steps = Array[Step]

# Of a copy, among its strides: bytes of an element, of the offsets in the operand and in the result, and from a row of the result to the next; the
# rank, extents, and strides of the operand in bytes.
ELEMENT, FROM, TO, ROW, RANK, EXTENTS = 0, 1, 2, 3, 4, 5


@native
def place_of(word: i64, buffers: Array[ptr], context: Context) -> ptr:
    """The address of a value: in a slot of the program, or in the arena."""
    return buffers[word] if word >= 0 else offset(context.arena, -1 - word)


@native
def copy_strided(step: Step) -> void:
    """Copies a view of at least one axis, in the order of its elements, to rows of the result."""
    if step.count == 0:  # and rows of no element
        return
    nbytes = step.strides[ELEMENT]
    last = step.strides[RANK] - 1
    extents = Words(offset(step.strides, EXTENTS << 3))
    strides = Words(offset(extents, (last + 1) << 3))
    row = extents[last]
    to = offset(step.args[step.result_at], step.strides[TO])
    for i in range(step.count // row):
        at = step.strides[FROM]
        rest = i
        for d in range(last):
            axis = last - 1 - d
            outer = rest // extents[axis]
            at += (rest - outer * extents[axis]) * strides[axis]
            rest = outer
        copy_row(offset(to, i * step.strides[ROW]), offset(step.args[0], at), row, strides[last], nbytes)


@native
def run_step(step: Step, buffers: Array[ptr], context: Context) -> i64:
    """Nonzero where a kernel failed."""
    for i in range(step.n_operands):
        step.args[i] = place_of(step.places[i], buffers, context)
    step.args[step.result_at] = place_of(step.places[step.n_operands], buffers, context)
    if step.graph is not None:
        return step.graph(step.args, context)
    if step.loop is not None:
        step.loop(step.args, address(step.count), step.strides, step.data)
    else:
        copy_strided(step)
    return 0


@exported
def steps_graph(buffers: Array[ptr], context: Context) -> i64:
    """A graph: runs the steps of the context. Its caller has the GIL, lest another thread fill in the arguments of the same steps."""
    steps = Steps(context.steps)
    for i in range(context.n_steps):
        if run_step(steps[i], buffers, context) != 0:
            return 1
    return 0 if PyErr_Occurred() is None else 1
