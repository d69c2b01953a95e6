"""Native code of graphs that are run on memory named by its address."""

from __future__ import annotations

from hologram.backends.native.code.call import context_give, context_take, execute, need_words
from hologram.backends.native.code.capi import Py_IncRef, PyErr_BadArgument, PyErr_Occurred, PyLong_AsLongLong
from hologram.backends.native.code.object_layout import layout
from hologram.backends.native.code.records import Bound, Context, Storage, process
from hologram.backends.native_lang.language import Array, copy, exported, i64, native, offset, ptr

Pointers = Array[ptr]


@native
def place_addresses(words: Array[i64], at: i64, objects: ptr, first: i64, count: i64) -> i64:
    """Writes ``count`` Python integers of ``objects``, from ``first`` on, as words. Zero, and an exception, where one is no integer."""
    for i in range(count):
        word = PyLong_AsLongLong(Pointers(objects)[first + i])
        if word == -1 and PyErr_Occurred() is not None:
            return 0
        words[at + i] = word
    return 1


@native
def run_bound(context: Context, bound: Bound, args: ptr) -> i64:
    """Fills the slots of the graph and runs it. Zero, and an exception, where it fails."""
    results = bound.n_inputs + bound.n_constants
    symbols = results + bound.n_results
    if need_words(context, symbols + bound.n_symbols) == 0:
        return 0
    words = context.words
    if place_addresses(words, 0, args, 0, bound.n_inputs) == 0 or place_addresses(words, results, args, bound.n_inputs, bound.n_results) == 0:
        return 0
    copy(offset(words, bound.n_inputs << 3), bound.constants, bound.n_constants << 3)
    copy(offset(words, symbols << 3), bound.symbols, bound.n_symbols << 3)
    return execute(context, bound.graph, words, bound.arena_bytes, bound.flags)


@exported
def call_at(self: ptr, args: Array[ptr], nargs: i64) -> ptr:
    """METH_FASTCALL of a bound graph: ``self`` is a tuple whose first item holds the Bound record, the arguments are addresses."""
    bound = Bound(Storage(Pointers(offset(self, layout.tuple_items))[0]).data)
    if nargs != bound.n_inputs + bound.n_results:
        PyErr_BadArgument()
        return None
    context = context_take()
    if context is None:
        return None
    done = run_bound(context, bound, args)
    context_give(context)
    if done == 0:
        return None
    Py_IncRef(process.none)
    return process.none


@exported
def copy_graph(buffers: Array[i64], context: Context) -> i64:
    """A graph of its own: copies bytes. Slots: source, an input that is not read, the result, the number of bytes."""
    copy(Pointers(buffers)[2], Pointers(buffers)[0], buffers[3])
    return 0
