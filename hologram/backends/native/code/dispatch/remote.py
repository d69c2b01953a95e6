"""Native code of calls of programs on devices: what stands between a caller and :meth:`Specialisation.tensors`, or a captured call."""

from __future__ import annotations

# None is the null pointer.
# mypy: disable-error-code="return-value"
from hologram.backends.native.code.capi import (
    Py_DecRef,
    Py_IncRef,
    PyErr_Fetch,
    PyErr_Occurred,
    PyErr_Restore,
    PyList_New,
    PyList_SetItem,
    PyObject_CallNoArgs,
    PyObject_CallOneArg,
)
from hologram.backends.native.code.dispatch.match import drop_leaves
from hologram.backends.native.code.dispatch.replay import replayed, slot
from hologram.backends.native.code.dispatch.result import build
from hologram.backends.native.code.object_layout import layout
from hologram.backends.native.code.records import Context, List, Object, Replay, Sized, Spec, Storage, process, remote
from hologram.backends.native.code.slots import set_slot
from hologram.backends.native_lang.language import Array, address, i64, native, offset, ptr, void

Pointers = Array[ptr]


@native
def build_results(context: Context, spec: Spec) -> ptr:
    context.code = spec.result
    context.position = 0
    return build(context)


@native
def run_in_python(context: Context, spec: Spec) -> ptr:
    """What the specialisation's Python callable gives for the leaves; None, and an exception, where it fails."""
    drop_leaves(context)  # a donation counts who holds a storage; the arguments hold them
    leaves = context.leaf
    context.leaf = 0
    given = PyList_New(leaves)
    if given is None:
        return None
    for i in range(leaves):
        Py_IncRef(context.arguments[i])
        PyList_SetItem(given, i, context.arguments[i])
    results = PyObject_CallOneArg(spec.run, given)
    Py_DecRef(given)
    if results is None:
        return None
    for i in range(spec.n_results):
        context.results[i] = List(results).items[i]
    made = build_results(context, spec)
    Py_DecRef(results)
    return made


@native
def give_up(context: Context, spec: Spec) -> void:
    """Takes the storages from donated Tensors, unless something else reads them."""
    for i in range(spec.n_donated):
        leaf = spec.donated[i]
        tensor = context.arguments[leaf]
        storage = context.held[leaf]
        set_slot(tensor, process.tensor_node, process.none)
        if Object(storage).refcount == 2 and slot(storage, remote.storage_exports) == remote.zero:  # the Tensor's and this call's
            if slot(tensor, process.tensor_storage) == storage:
                set_slot(tensor, process.tensor_storage, process.none)


@native
def replay_for(known: ptr, queue: ptr) -> Replay:
    """The one of the queue, of a tuple in which each record is followed by what it needs; None if there is none."""
    for i in range(Sized(known).size >> 1):
        found = Replay(Storage(Pointers(offset(known, layout.tuple_items))[i + i]).data)
        if found.queue == queue:
            return found
    return None


@native
def unlock(context: Context, replay: Replay) -> void:
    """Gives the lock of the device back. An exception on its way is put aside: a function that is called under one is said to fail."""
    PyErr_Fetch(address(context.raised), address(context.raised_value), address(context.raised_trace))
    Py_DecRef(PyObject_CallNoArgs(replay.release))
    PyErr_Restore(context.raised, context.raised_value, context.raised_trace)


@native
def replay_locked(context: Context, spec: Spec, replay: Replay) -> i64:
    """Replays the call with its device's lock, if that is free. Zero where it was not replayed, perhaps with an exception."""
    taken = PyObject_CallOneArg(replay.acquire, process.false)
    Py_DecRef(taken)
    if taken != process.true:
        return 0
    done = 0
    if replay.busy == 0:
        replay.busy = 1
        done = replayed(context, spec, replay)
        replay.busy = 0
    unlock(context, replay)
    return done


@native
def try_replay(context: Context, spec: Spec) -> i64:
    """Whether the call was replayed: its results, owned, are in the context. An exception is the caller's either way: a signal's, or of memory. What
    the driver refuses is none here: the way through Python finds it again, and says what it means."""
    known = slot(spec.replays, remote.replays_known)
    if Sized(known).size == 0:
        return 0
    queue = PyObject_CallNoArgs(slot(spec.replays, remote.replays_queue))
    done = 0
    if queue is not None:
        known = slot(spec.replays, remote.replays_known)  # once more: Python code has run
        Py_IncRef(known)
        replay = replay_for(known, queue)
        if replay is not None:
            done = replay_locked(context, spec, replay)
        Py_DecRef(known)
        Py_DecRef(queue)
    return done


@native
def run_held(context: Context, spec: Spec) -> ptr:
    if spec.replays is None or try_replay(context, spec) == 0:
        return run_in_python(context, spec) if PyErr_Occurred() is None else None
    give_up(context, spec)
    made: ptr = None
    if PyErr_Occurred() is None:
        made = build_results(context, spec)
    for i in range(spec.n_results):
        Py_DecRef(context.results[i])
    return made


@native
def run_remote(context: Context, spec: Spec) -> ptr:
    """The call's result, its leaves being matched; None, and an exception, where it fails."""
    leaves = context.leaf
    for i in range(leaves):
        Py_IncRef(context.arguments[i])  # finalisers, and others while a driver is called, may take them out of the caller's containers
    made = run_held(context, spec)
    for i in range(leaves):
        Py_DecRef(context.arguments[i])
    return made
