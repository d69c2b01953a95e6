"""Native code of a call in flight: its context, and how a compiled graph is run."""

from __future__ import annotations

from hologram.backends.native.code.blocks import block_free, block_new
from hologram.backends.native.code.capi import (
    Py_DecRef,
    PyErr_Fetch,
    PyErr_NoMemory,
    PyErr_Occurred,
    PyErr_Restore,
    PyEval_RestoreThread,
    PyEval_SaveThread,
    PyMem_RawCalloc,
    PyMem_RawFree,
    PyObject_CallNoArgs,
    PyThread_get_thread_ident,
)
from hologram.backends.native.code.checked import raise_violation
from hologram.backends.native.code.heap import bytes_of_class, out_of_memory, size_class_of
from hologram.backends.native.code.object_layout import layout
from hologram.backends.native.code.progress import bars_drop, with_gil
from hologram.backends.native.code.records import LONG, PARALLEL, SCRATCH_BYTES, TEAM, Context, Graph, pool, process
from hologram.backends.native.code.team import run_in_team

# None is the null pointer.
# mypy: disable-error-code="return-value"
from hologram.backends.native_lang.language import (
    Array,
    address,
    exported,
    i64,
    integer,
    native,
    ptr,
    read_fp_control,
    size_of,
    ticks,
    void,
    write_fp_control,
)

Words = Array[i64]
CONTEXT_BYTES = size_of(Context)
INITIAL_WORDS = 256
THREAD_BITS = 0xFFFFFFFF  # of a thread's number: it is a C long, which has 32 bits on Windows


@native
def context_new() -> Context:
    context = Context(PyMem_RawCalloc(1, CONTEXT_BYTES))
    if context is None:
        return None
    context.scratch = block_new(SCRATCH_BYTES)
    context.words = Words(block_new(INITIAL_WORDS * 8))
    context.capacity = INITIAL_WORDS
    if context.scratch is None or context.words is None:
        context_free(context)
        return None
    return context


@native
def context_free(context: Context) -> void:
    block_free(context.scratch, SCRATCH_BYTES)
    block_free(context.arena, context.arena_bytes)
    block_free(context.words, context.capacity * 8)
    PyMem_RawFree(context)


@native
def context_take() -> Context:
    """A context from the free list, or a new one; None, and an exception, where there is no memory."""
    context = Context(process.free_contexts)
    if context is None:
        context = context_new()
        if context is None:
            PyErr_NoMemory()
        return context
    process.free_contexts = context.next
    return context


@native
def context_give(context: Context) -> void:
    context.next = process.free_contexts
    process.free_contexts = context


@exported
def context_trim() -> void:
    """Frees the contexts that no call uses."""
    context = Context(process.free_contexts)
    process.free_contexts = None
    while context is not None:
        following = Context(context.next)
        context_free(context)
        context = following


@native
def need_words(context: Context, words: i64) -> i64:
    """Room for ``words`` in ``context.words``, whose content is lost. Zero, and an exception, where there is no memory."""
    if words <= context.capacity:
        return 1
    block_free(context.words, context.capacity * 8)
    context.capacity = 0
    context.words = Words(block_new(words * 8))
    if context.words is None:
        PyErr_NoMemory()
        return 0
    context.capacity = words
    return 1


@native
def need_arena(context: Context, nbytes: i64) -> i64:
    """An arena of at least ``nbytes``. Zero, and an exception, where there is no memory."""
    if nbytes <= context.arena_bytes:
        return 1
    block_free(context.arena, context.arena_bytes)
    capacity = bytes_of_class(size_class_of(nbytes))
    context.arena = block_new(capacity)
    context.arena_bytes = capacity
    if context.arena is None:
        context.arena_bytes = 0
        out_of_memory(nbytes)
        return 0
    return 1


@native
def collectives_settle(context: Context) -> void:
    """Waits until nothing reads or writes the memory of a call that was cancelled. An exception that is set stays set."""
    PyErr_Fetch(address(context.raised), address(context.raised_value), address(context.raised_trace))
    if with_gil(context, process.settle, integer(context)) != 0:
        PyErr_Restore(None, None, None)
    context.pending = 0
    PyErr_Restore(context.raised, context.raised_value, context.raised_trace)
    context.raised = None
    context.raised_value = None
    context.raised_trace = None


@native
def execute(context: Context, graph: Graph, buffers: ptr, arena_bytes: i64, flags: i64) -> i64:
    """Runs a graph, without the GIL if it is long. Zero, and an exception, where it was cancelled, lacks memory or violates bounds."""
    if need_arena(context, arena_bytes) == 0:
        return 0
    hosted = flags & TEAM != 0 and pool.fork is not None
    if flags & PARALLEL != 0 and not hosted and pool.wanted != 0:
        started = PyObject_CallNoArgs(pool.start)
        if started is None:
            return 0
        Py_DecRef(started)
    control = read_fp_control()
    if control != layout.fp_control:
        write_fp_control(layout.fp_control)
    context.cancelled = 0
    if flags & LONG != 0:
        context.polls = 1 if (PyThread_get_thread_ident() ^ pool.main_thread) & THREAD_BITS == 0 else 0
        context.last_poll = ticks()
        context.thread_state = PyEval_SaveThread()
    status = run_in_team(context, graph, buffers) if hosted else graph(buffers, context)
    if flags & LONG != 0:
        PyEval_RestoreThread(context.thread_state)
        context.thread_state = None
    if control != layout.fp_control:
        write_fp_control(control)
    if status | context.cancelled == 0:
        return 1
    if context.bars != 0:
        bars_drop(context)
    if context.pending != 0:
        collectives_settle(context)
    raise_violation(context)
    if PyErr_Occurred() is None:
        PyErr_NoMemory()
    return 0


@exported
def call_host(context: Context, args: ptr) -> i64:
    """Runs a host op through Python, with the GIL. ``args`` says which, and where its operands and results are. Nonzero: an exception is set."""
    return with_gil(context, process.host, integer(args))


@exported
def run_graph(graph: Graph, buffers: ptr, arena_bytes: i64, flags: i64) -> i64:
    """For Python: runs a graph in a context of its own. Zero, and an exception, where it was cancelled or lacks memory."""
    context = context_take()
    if context is None:
        return 0
    done = execute(context, graph, buffers, arena_bytes, flags)
    context_give(context)
    return done
