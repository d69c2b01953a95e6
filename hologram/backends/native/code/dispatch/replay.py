"""Native code that puts a captured call in its queue: a table of addresses, one launch, an event, and objects that stand for what comes of it.

What is done for a call here is what :class:`hologram.backends.device.executable.Executable` does in Python, for calls where there is nothing else to
do: all operands are in memory of the queue, or written by work of others that has ended, as large copies from the host are; results find free
pieces, and events are there to be used again. Any other call is left to Python, and so is one that the driver refuses: until the driver has taken
it, nothing has happened that cannot be undone.
"""

from __future__ import annotations

from hologram.backends.native.code.capi import (
    Py_DecRef,
    Py_IncRef,
    PyDict_GetItemWithError,
    PyDict_New,
    PyDict_SetItem,
    PyErr_Clear,
    PyEval_RestoreThread,
    PyEval_SaveThread,
    PyList_Append,
    PyList_New,
    PyList_SetSlice,
    PyLong_AsLongLong,
    PyLong_FromLongLong,
    PyObject_CallNoArgs,
    PyObject_CallOneArg,
    PyObject_Size,
    PyType_GenericAlloc,
)
from hologram.backends.native.code.dispatch.result import drop_results
from hologram.backends.native.code.records import (
    Context,
    List,
    Object,
    Replay,
    ReplayResult,
    Sized,
    Spec,
    process,
    remote,
)
from hologram.backends.native.code.slots import first_value, set_slot, slot
from hologram.backends.native.code.submissions import COLLECTED, MAX_SUBMISSIONS
from hologram.backends.native_lang.language import Array, address, copy, i64, native, offset, ptr, void

# None is the null pointer.
# mypy: disable-error-code="return-value"

Words, Pointers = Array[i64], Array[ptr]


@native
def pop(items: ptr) -> ptr:
    """The last item of a list, owned; None, perhaps with an exception, where there is none."""
    n = Sized(items).size
    if n == 0:
        return None
    item = List(items).items[n - 1]
    Py_IncRef(item)
    if PyList_SetSlice(items, n - 1, n, None) != 0:
        Py_DecRef(item)
        return None
    return item


# --- where things are -----------------------------------------------------------------------------------------------------------------------


@native
def address_of(replay: Replay, handle: ptr) -> i64:
    return PyLong_AsLongLong(slot(handle, replay.address_slot))


@native
def follow(replay: Replay, submission: ptr, after: ptr) -> ptr:
    """``after``, a list of what is waited for, with ``submission``; None, and an exception, without memory. Takes and gives an owned list, or the
    empty tuple."""
    made = after
    if after == remote.nothing:
        made = PyList_New(0)
        Py_DecRef(after)
    elif List(after).items[Sized(after).size - 1] == submission:
        return after
    if made is not None and PyList_Append(made, submission) != 0:
        Py_DecRef(made)
        return None
    return made


@native
def place_operand(replay: Replay, storage: ptr, i: i64, after: ptr) -> ptr:
    """Notes where an operand is, and gives ``after`` with what writes it, as :func:`follow`. None where the operand cannot be used as it is, and
    where ``after`` is None."""
    memory = slot(storage, remote.storage_memory)
    made = slot(storage, remote.storage_made)
    if after is None:
        return None
    if Object(memory).type != remote.memory_type or slot(storage, remote.storage_owner) != process.none:
        Py_DecRef(after)
        return None
    replay.fresh[i] = address_of(replay, slot(memory, remote.memory_handle))
    if slot(made, remote.submission_event) != process.none:
        if slot(memory, remote.memory_queue) == replay.queue:
            return follow(replay, made, after)
        Py_DecRef(after)  # the queue is to wait for another
        return None
    if slot(made, remote.submission_error) != process.none:
        Py_DecRef(after)
        return None
    return after


@native
def place_operands(context: Context, replay: Replay) -> ptr:
    """Notes where all operands are. Gives an owned list of submissions that write them, or the empty tuple; None where they cannot be used."""
    after = remote.nothing
    Py_IncRef(after)
    for i in range(replay.n_inputs):
        after = place_operand(replay, context.held[i], i, after)
    for i in range(replay.n_constants):
        after = place_operand(replay, replay.constants[i], replay.n_inputs + i, after)
    return after


@native
def note_use(replay: Replay, storage: ptr, event: ptr) -> void:
    """Notes until when the call uses memory of another queue, as :meth:`Memory.used` does."""
    memory = slot(storage, remote.storage_memory)
    if slot(memory, remote.memory_queue) == replay.queue:
        return
    if slot(memory, remote.memory_uses) == process.none:
        uses = PyDict_New()
        if uses is not None:
            set_slot(memory, remote.memory_uses, uses)
            Py_DecRef(uses)
    known = slot(memory, remote.memory_uses)
    if known != process.none and PyDict_GetItemWithError(known, replay.queue) == process.none:
        return  # in use as long as anybody holds it
    if known == process.none or PyDict_SetItem(known, replay.queue, event) != 0:
        Py_IncRef(memory)  # nobody could say when it is free: it never is
        PyErr_Clear()


@native
def note_uses(context: Context, replay: Replay, event: ptr) -> void:
    for i in range(replay.n_inputs):
        note_use(replay, context.held[i], event)
    for i in range(replay.n_constants):
        note_use(replay, replay.constants[i], event)


@native
def scratch_address(replay: Replay, kind: i64, nbytes: i64) -> i64:
    """Where memory is that all calls of the queue share; 0 where there is none of that size yet."""
    memory = List(replay.scratch).items[kind]
    if memory == process.none or PyLong_AsLongLong(slot(slot(memory, remote.memory_piece), remote.piece_size)) < nbytes:
        return 0
    return address_of(replay, slot(memory, remote.memory_handle))


@native
def place_scratch(replay: Replay) -> i64:
    """Notes where the arena, the workspace and the memory of the captured call itself are. Zero where there is not enough."""
    at = replay.n_inputs + replay.n_constants + replay.n_results
    fresh = replay.fresh
    fresh[at] = fresh[0] if replay.arena_bytes < 0 else scratch_address(replay, 0, replay.arena_bytes)
    fresh[at + 1] = 0 if replay.workspace_bytes < 0 else scratch_address(replay, 1, replay.workspace_bytes)
    copy(offset(fresh, (at + 2) << 3), replay.own, replay.n_own << 3)
    return 1 if fresh[at] != 0 and (fresh[at + 1] != 0 or replay.workspace_bytes < 0) else 0


# --- what comes of a call -------------------------------------------------------------------------------------------------------------------


@native
def new_event(replay: Replay) -> ptr:
    """An event that was used before; None where there is none."""
    number = pop(replay.spare_events)
    if number is None:
        return None
    event = PyType_GenericAlloc(replay.event_type, 0)
    if event is None:
        PyList_Append(replay.spare_events, number)
    else:
        first_value(event, replay.event_device_slot, replay.event_device)
        first_value(event, replay.event_api_slot, replay.event_api)
        first_value(event, replay.event_slot, number)
    Py_DecRef(number)
    return event


@native
def new_submission(replay: Replay, event: ptr, after: ptr) -> ptr:
    submission = PyType_GenericAlloc(remote.submission_type, 0)
    if submission is not None:
        first_value(submission, remote.submission_queue, replay.queue)
        first_value(submission, remote.submission_error, process.none)
        first_value(submission, remote.submission_event, event)
        first_value(submission, remote.submission_after, after)
        first_value(submission, remote.submission_kept, remote.nothing)
    return submission


@native
def new_memory(replay: Replay, result: ReplayResult) -> ptr:
    """A free piece, taken; None where there is none."""
    piece = pop(result.home)
    if piece is None:
        return None
    memory = PyType_GenericAlloc(remote.memory_type, 0)
    if memory is None:
        PyList_Append(result.home, piece)
    else:
        first_value(memory, remote.memory_handle, slot(piece, remote.piece_handle))
        first_value(memory, remote.memory_pool, replay.pool)
        first_value(memory, remote.memory_queue, replay.queue)
        first_value(memory, remote.memory_piece, piece)
        first_value(memory, remote.memory_uses, process.none)
        set_slot(piece, remote.piece_nbytes, result.nbytes)
        set_slot(piece, remote.piece_what, result.what)
    Py_DecRef(piece)
    return memory


@native
def new_storage(result: ReplayResult, memory: ptr, submission: ptr) -> ptr:
    storage = PyType_GenericAlloc(remote.storage_type, 0)
    if storage is not None:
        first_value(storage, remote.storage_aval, result.aval)
        first_value(storage, remote.storage_memory, memory)
        first_value(storage, remote.storage_made, submission)
        first_value(storage, remote.storage_owner, process.none)
        first_value(storage, remote.storage_exports, remote.zero)
        first_value(storage, remote.storage_host, process.none)
    return storage


@native
def new_result(context: Context, replay: Replay, i: i64, submission: ptr) -> i64:
    """Takes memory for a result, and notes where it is. Zero where there is none."""
    memory = new_memory(replay, replay.results[i])
    if memory is None:
        return 0
    replay.fresh[replay.n_inputs + replay.n_constants + i] = address_of(replay, slot(memory, remote.memory_handle))
    context.results[i] = new_storage(replay.results[i], memory, submission)
    Py_DecRef(memory)
    return 0 if context.results[i] is None else 1


# --- the driver -----------------------------------------------------------------------------------------------------------------------------


@native
def has_changed(replay: Replay, words: i64) -> i64:
    """Whether the device has another table than the call's."""
    if replay.state[1] == 0:
        return 1
    latest = Words(offset(replay.copies, (replay.state[0] * words) << 3))
    for i in range(words):
        if latest[i] != replay.fresh[i]:
            return 1
    return 0


@native
def next_copy(replay: Replay, words: i64) -> i64:
    """Puts the call's table in the next copy that is not under way any more. Zero, perhaps with an exception, where the device fails."""
    turn = replay.state[0] + 1
    if turn == replay.n_copies:
        turn = 0
    if turn == 0 or turn + turn == replay.n_copies:
        latest = replay.state[0]
        turned = PyObject_CallNoArgs(replay.turn_over)
        Py_DecRef(turned)
        if turned != process.true or replay.state[0] != latest:  # a finaliser has made a call
            return 0
    copy(offset(replay.copies, (turn * words) << 3), replay.fresh, words << 3)
    replay.state[0] = turn
    replay.state[1] = 0  # until the driver has taken it
    return 1


@native
def put_in_stream(replay: Replay, event: i64, words: i64, changed: i64) -> i64:
    """What the driver says: 0 where it has taken everything. In the context of the device."""
    status = 0
    if changed != 0:
        source = offset(replay.copies, (replay.state[0] * words) << 3)
        status = replay.copy_in(replay.device_table, source, words << 3, replay.stream)
        if status == 0:
            replay.state[1] = 1
    if status == 0:
        status = replay.launch(replay.graph, replay.stream)
    if status == 0:
        status = replay.record(event, replay.stream)
    return status


@native
def put(replay: Replay, event: i64, words: i64, changed: i64) -> i64:
    """As :func:`put_in_stream`, whatever the thread's context is."""
    status = replay.get_current(address(replay.current))
    if status != 0:
        return status
    if replay.current == replay.context:
        return put_in_stream(replay, event, words, changed)
    status = replay.push_current(replay.context)
    if status != 0:
        return status
    status = put_in_stream(replay, event, words, changed)
    left = replay.pop_current(address(replay.current))
    return status | left


@native
def submit(replay: Replay, event: ptr) -> i64:
    """Puts the call in its stream, without the GIL. Zero where the driver refuses it, perhaps with an exception."""
    words = replay.n_inputs + replay.n_constants + replay.n_results + 2 + replay.n_own
    changed = has_changed(replay, words)
    if changed != 0 and next_copy(replay, words) == 0:
        return 0
    number = PyLong_AsLongLong(slot(event, replay.event_slot))
    state = PyEval_SaveThread()
    status = put(replay, number, words, changed)
    PyEval_RestoreThread(state)
    return 1 if status == 0 else 0


# --- the call -------------------------------------------------------------------------------------------------------------------------------


@native
def count(replay: Replay) -> void:
    """One launch more."""
    before = PyDict_GetItemWithError(replay.counts, replay.launches)
    number = 0 if before is None else PyLong_AsLongLong(before)
    now = PyLong_FromLongLong(number + 1)
    if now is not None:
        PyDict_SetItem(replay.counts, replay.launches, now)
        Py_DecRef(now)
    PyErr_Clear()


@native
def note(replay: Replay, submission: ptr) -> void:
    """The call is under way; every so many calls it is asked which have ended. An exception is a signal's, that came while it was waited for one."""
    count(replay)
    appended = PyObject_CallOneArg(replay.begun, submission)
    if appended is None:
        PyErr_Clear()  # its results hold it; that it has ended is found when one is asked for
    Py_DecRef(appended)
    under_way = PyObject_Size(replay.under_way)
    if under_way & (COLLECTED - 1) == 0 or under_way > MAX_SUBMISSIONS:
        Py_DecRef(PyObject_CallNoArgs(replay.collect))


@native
def put_results(context: Context, replay: Replay, event: ptr, submission: ptr) -> i64:
    """Takes memory for the results, and puts the call in its stream. Zero where it cannot; then nothing is left."""
    made = 0
    for i in range(replay.n_results):
        if new_result(context, replay, i, submission) == 0:
            break
        made += 1
    done = 0
    if made == replay.n_results:
        arena = List(replay.scratch).items[0]
        workspace = List(replay.scratch).items[1]
        Py_IncRef(arena)
        Py_IncRef(workspace)
        if place_scratch(replay) != 0:
            done = submit(replay, event)
        Py_DecRef(arena)
        Py_DecRef(workspace)
    if done == 0:
        drop_results(context, made)
    return done


@native
def replayed(context: Context, spec: Spec, replay: Replay) -> i64:
    """Puts the call in its queue, and its results, owned, in the context. Zero where it cannot, perhaps with an exception: then nothing has happened.
    Where it could, an exception is a signal's."""
    if spec.n_results != replay.n_results or spec.n_leaves != replay.n_inputs or PyObject_Size(replay.returned) != 0:
        return 0
    after = place_operands(context, replay)
    if after is None:
        return 0
    event = new_event(replay)
    submission: ptr = None
    if event is not None:
        submission = new_submission(replay, event, after)
    done = 0
    if submission is not None:
        done = put_results(context, replay, event, submission)
    if done != 0:
        note_uses(context, replay, event)
        note(replay, submission)
    Py_DecRef(submission)
    Py_DecRef(event)
    Py_DecRef(after)
    return done
