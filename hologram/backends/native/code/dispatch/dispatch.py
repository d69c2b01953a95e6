"""Native code between a caller and a compiled graph: runs the first specialisation that a call matches (:mod:`.match`), wraps the results.

Of many it is found by the call's fingerprint (:mod:`.fingerprint`).
"""

from __future__ import annotations

from hologram.backends.native.code.call import context_give, context_take, execute
from hologram.backends.native.code.capi import Py_DecRef, Py_IncRef, PyErr_Occurred, PyObject_CallOneArg, PyObject_Vectorcall
from hologram.backends.native.code.dispatch.fingerprint import fingerprint_call
from hologram.backends.native.code.dispatch.match import drop_kept, drop_leaves, match_call
from hologram.backends.native.code.dispatch.remote import run_remote
from hologram.backends.native.code.dispatch.result import build, drop_results
from hologram.backends.native.code.heap import storage_take
from hologram.backends.native.code.object_layout import layout
from hologram.backends.native.code.records import Context, Index, Object, Sized, Spec, Storage, heap, process
from hologram.backends.native.code.slots import set_slot
from hologram.backends.native_lang.language import (
    Array,
    copy,
    exported,
    i64,
    native,
    offset,
    ptr,
    void,
)

Pointers = Array[ptr]

MAX_TRIES = 32  # specialisations of one fingerprint that a call is compared with


@native
def donate(context: Context, spec: Spec) -> void:
    """Takes the Storage from each donated Tensor, unless something else reads it."""
    for i in range(spec.n_donated):
        leaf = spec.donated[i]
        tensor = context.arguments[leaf]
        if Object(tensor).type == process.tensor_type:
            set_slot(tensor, process.tensor_node, process.none)
            storage = Storage(context.held[leaf])
            if storage.refcount == 2 and storage.exports == 0:  # the Tensor's and this call's
                set_slot(tensor, process.tensor_storage, process.none)


@native
def take_result(context: Context, spec: Spec, i: i64) -> Storage:
    """An owned Storage for output i: an argument's own, a donated one, or a new one; None, and an exception, without memory."""
    output = spec.outputs[i]
    if output.source >= 0:
        shared = Storage(context.held[output.source])
        Py_IncRef(shared)
        return shared
    if output.donor >= 0:
        storage = Storage(context.held[output.donor])
        if storage is not None and storage.type == heap.storage_type and storage.refcount == 1 and storage.capacity != 0:
            Py_IncRef(storage)
            set_slot(storage, layout.storage_aval, output.aval)
            return storage
    return storage_take(output.aval, output.nbytes, output.size_class)


@native
def take_results(context: Context, spec: Spec) -> i64:
    """Owned Storages for all outputs; zero, and an exception, without memory."""
    slots = Pointers(offset(context.buffers, (spec.n_leaves + spec.n_constants) << 3))
    for i in range(spec.n_outputs):
        storage = take_result(context, spec, i)
        if storage is None:
            drop_results(context, i)
            return 0
        context.results[i] = storage
        slots[i] = storage.data
    return 1


@native
def run_spec(context: Context, spec: Spec) -> ptr:
    """The call's result, its leaves being matched; None, and an exception, where it fails."""
    donate(context, spec)
    if take_results(context, spec) == 0:
        return None
    copy(offset(context.buffers, spec.n_leaves << 3), spec.constants, spec.n_constants << 3)
    copy(offset(context.buffers, (spec.n_leaves + spec.n_constants + spec.n_outputs) << 3), spec.symbols, spec.n_symbols << 3)
    made: ptr = None
    if execute(context, spec.graph, context.buffers, spec.arena_bytes, spec.flags) != 0:
        context.code = spec.result
        context.position = 0
        made = build(context)
    drop_results(context, spec.n_outputs)
    return made


@native
def dispatch_matched(context: Context, spec: Spec) -> ptr:
    process.clock += 1
    spec.last_use = process.clock
    made = run_spec(context, spec) if spec.run is None else run_remote(context, spec)
    drop_leaves(context)
    drop_kept(context)
    context_give(context)
    return made


@native
def find_spec(context: Context, index: Index, args: Array[ptr], nargs: i64, kwnames: ptr) -> Spec:
    """The specialisation that a call matches, by its fingerprint; its leaves are then held. None if there is none, or many have this fingerprint, as
    those that differ within objects of classes."""
    wanted = fingerprint_call(args, nargs, kwnames)
    place = wanted & index.mask
    tries = MAX_TRIES
    while index.fingerprints[place] != 0 and tries != 0:
        if index.fingerprints[place] == wanted:
            tries -= 1
            spec = Spec(index.specs[place])
            if spec.epoch == process.epoch:
                if match_call(context, spec, args, nargs, kwnames) != 0:
                    return spec
                if PyErr_Occurred() is not None:
                    return None  # type: ignore[return-value]
        place = (place + 1) & index.mask
    return None  # type: ignore[return-value]  # the null pointer


@native
def scan_specs(context: Context, specs: ptr, count: i64, args: Array[ptr], nargs: i64, kwnames: ptr) -> Spec:
    """As :func:`find_spec`, trying the first ``count`` one after the other."""
    for i in range(count):
        spec = Spec(Storage(Pointers(offset(specs, layout.tuple_items))[i + i]).data)
        if spec.epoch == process.epoch:
            if match_call(context, spec, args, nargs, kwnames) != 0:
                return spec
            if PyErr_Occurred() is not None:
                return None  # type: ignore[return-value]
    return None  # type: ignore[return-value]


@exported
def dispatch_call(self: ptr, args: Array[ptr], nargs: i64, kwnames: ptr) -> ptr:
    """METH_FASTCALL | METH_KEYWORDS of every dispatcher: the first specialisation that fits, else the Python fallback."""
    specs = Pointers(offset(self, process.dispatcher_specs))[0]
    n = Sized(specs).size  # each specialisation is followed by what it keeps alive, and of many there is an index at the end
    if n != 0 and process.tracing[0] == 0:
        context = context_take()
        if context is None:
            return None
        Py_IncRef(specs)  # keeps the specialisations and their code alive while this call is in flight
        if n & 1 != 0:
            index = Index(Storage(Pointers(offset(specs, layout.tuple_items))[n - 1]).data)
            spec = find_spec(context, index, args, nargs, kwnames)
            if spec is None and PyErr_Occurred() is None:
                spec = scan_specs(context, specs, (n >> 1) - index.count, args, nargs, kwnames)
        else:
            spec = scan_specs(context, specs, n >> 1, args, nargs, kwnames)
        if spec is not None:
            made = dispatch_matched(context, spec)
            Py_DecRef(specs)
            return made
        Py_DecRef(specs)
        context_give(context)
        if PyErr_Occurred() is not None:
            return None
    return PyObject_Vectorcall(Pointers(offset(self, process.dispatcher_fallback))[0], args, nargs, kwnames)


@exported
def block_until_ready(fallback: ptr, x: ptr) -> ptr:
    """METH_O: ``x`` itself if it is a Tensor with a Storage; else what the Python fallback gives."""
    if Object(x).type == process.tensor_type:
        storage = Pointers(offset(x, process.tensor_storage))[0]
        if storage is not None and Object(storage).type == heap.storage_type:
            Py_IncRef(x)
            return x
    return PyObject_CallOneArg(fallback, x)
