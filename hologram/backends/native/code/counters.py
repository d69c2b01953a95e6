"""Native code of counters: how long each step of a program took, on which thread.

Generated code of a profiled program calls these functions around its steps. What they write belongs to the thread that runs them: each thread has a
*lane*, found by the address of its scratch memory, of which no two threads have one at one time. A lane has a :class:`Counter` for each step of each
program, and a ring of the latest events. So threads share no cache line, and write without atomic instructions. Threads that find no lane free share
lane 0, whose counters are added to atomically.

Python alone allocates: this code runs on threads that may not wait for the GIL.
"""

from __future__ import annotations

from hologram.backends.native.code.capi import (
    Py_DecRef,
    PyErr_Clear,
    PyEval_RestoreThread,
    PyEval_SaveThread,
    PyLong_FromLongLong,
    PyObject_CallOneArg,
    PyThread_get_thread_ident,
)
from hologram.backends.native.code.records import CACHE_LINE, Context, Kernel

# None is the null pointer.
# mypy: disable-error-code="return-value"
from hologram.backends.native_lang.language import (
    Array,
    Struct,
    acquire,
    at,
    compare_exchange,
    exported,
    fetch_add,
    i64,
    instance,
    integer,
    native,
    offset,
    ptr,
    release,
    size_of,
    ticks,
    void,
)

LANES = 256  # a power of two: of threads that count at one time; number 0 is that of all others
EVENTS = 4096  # a power of two: of the latest events that a lane keeps
MAX_STEPS = 1 << 20  # of a program
LANE_BITS = 7  # scratch memory starts at multiples of so many bits
# What ends: a call of a program; a step that threads share, or that the calling thread runs alone, or so short that it is no event; work of one
# thread on a step. In events this is in the low bits of what they are about.
CALL, SHARED, ALONE, UNLOGGED, CHUNK = 0, 1, 2, 3, 4


class Lane(Struct):
    """``owner`` is the scratch memory of its thread, 0 for nobody's; ``thread`` the identity of the thread that last began a call here; ``logged``
    counts events. ``launch`` is when the step began that this thread last worked on, ``until`` when it last did so."""

    owner: i64 = at(0)
    thread: i64
    logged: i64
    launch: i64
    until: i64
    end_of_record: i64 = at(CACHE_LINE - 8)


class Counter(Struct):
    """One step on one thread. ``calls`` that the thread made, which took ``wall`` ticks from begin to end, the ``longest`` of them; ``busy`` ticks
    in ``chunks``, of ``iterations``, that it ran of calls of its own or of others."""

    calls: i64 = at(0)
    wall: i64
    busy: i64
    chunks: i64
    iterations: i64
    longest: i64
    end_of_record: i64 = at(56)


class Event(Struct):
    """``sequence`` is the number of the event, plus one, written last; ``what`` the address of the step's counter in lane 0, plus the kind."""

    sequence: i64 = at(0)
    what: i64
    start: i64
    end: i64
    thread: i64
    amount: i64
    end_of_record: i64 = at(56)


class Counters(Struct):
    """Of one program: ``stride`` bytes a lane; the lanes follow, :data:`CACHE_LINE` bytes from here on."""

    stride: i64 = at(0)


class Recorder(Struct):
    """Of the process. ``hook`` is a Python callable that is told when steps begin and end, or None."""

    lanes: Array[Lane]
    events: ptr
    hook: ptr


class Launch(Struct):
    """The arguments of :func:`profile_chunk`: a kernel and its arguments, the counters of its program, its step, when that began, and the call."""

    kernel: Kernel
    args: ptr
    counters: Counters
    step: i64
    started: i64
    context: Context


COUNTER_BYTES = size_of(Counter)
EVENT_BYTES = size_of(Event)
recorder = instance(Recorder, "hg_recorder")


@native
def lane_of(scratch: ptr) -> i64:
    """The lane of the thread whose scratch memory this is."""
    key = integer(scratch)
    n = (key >> LANE_BITS) ^ (key >> (2 * LANE_BITS)) ^ (key >> (3 * LANE_BITS))
    for _ in range(LANES):
        n = n & (LANES - 1)
        lane = recorder.lanes[n]
        owner = acquire(lane.owner)
        if owner == key and n != 0:
            return n
        if n != 0 and owner == 0 and compare_exchange(lane.owner, 0, key) != 0:
            return n
        n += 1
    return 0


@native
def counter_of(counters: Counters, lane: i64, step: i64) -> Counter:
    return Counter(offset(counters, CACHE_LINE + lane * counters.stride + step * COUNTER_BYTES))


@native
def log(number: i64, what: i64, start: i64, end: i64, amount: i64) -> void:
    """Adds an event to the ring of a lane."""
    lane = recorder.lanes[number]
    n = lane.logged
    if number == 0:
        n = fetch_add(lane.logged, 1)
    else:
        release(lane.logged, n + 1)
    event = Event(offset(recorder.events, (number * EVENTS + (n & (EVENTS - 1))) * EVENT_BYTES))
    release(event.sequence, 0)
    event.what = what
    event.start = start
    event.end = end
    event.thread = lane.thread
    event.amount = amount
    release(event.sequence, n + 1)


@native
def goes_on(number: i64, launch: Launch, scratch: ptr) -> i64:
    """Since when a thread has worked on a step without a pause; 0 where it begins to. The calling thread pauses to handle signals."""
    lane = recorder.lanes[number]
    if number == 0 or lane.launch != launch.started:
        return 0
    if scratch == launch.context.scratch and launch.context.last_poll > lane.until:
        return 0
    return lane.until


@native
def log_chunk(number: i64, launch: Launch, start: i64, end: i64, amount: i64, is_new: i64) -> void:
    """Adds work on a step to the latest event of a lane, which it goes on with, or as an event."""
    lane = recorder.lanes[number]
    if is_new != 0:
        log(number, integer(counter_of(launch.counters, 0, launch.step)) + CHUNK, start, end, amount)
        lane.launch = launch.started
    else:
        event = Event(offset(recorder.events, (number * EVENTS + ((lane.logged - 1) & (EVENTS - 1))) * EVENT_BYTES))
        event.end = end
        event.amount += amount
    lane.until = end


@native
def tell(context: Context, what: i64) -> void:
    """Calls the hook, with the GIL."""
    released = context.thread_state
    if released is not None:
        context.thread_state = None
        PyEval_RestoreThread(released)
    hook = recorder.hook
    where = PyLong_FromLongLong(what) if hook is not None else None
    if where is not None:
        done = PyObject_CallOneArg(hook, where)
        Py_DecRef(where)
        if done is None:
            PyErr_Clear()
        else:
            Py_DecRef(done)
    if released is not None:
        context.thread_state = PyEval_SaveThread()


@exported
def profile_enter(context: Context, counters: Counters) -> i64:
    """A call of a program begins."""
    recorder.lanes[lane_of(context.scratch)].thread = PyThread_get_thread_ident()
    if recorder.hook is not None:
        tell(context, integer(counter_of(counters, 0, 0)))
    return ticks()


@exported
def profile_begin(context: Context, counters: Counters, step: i64) -> i64:
    """A step begins: when that is."""
    if recorder.hook is not None:
        tell(context, integer(counter_of(counters, 0, step)))
    return ticks()


@exported
def profile_end(context: Context, counters: Counters, step: i64, start: i64, kind: i64) -> void:
    """A step, or a call, ends."""
    end = ticks()
    number = lane_of(context.scratch)
    counter = counter_of(counters, number, step)
    took = end - start
    busy = 0 if kind == SHARED else took
    if number == 0:
        fetch_add(counter.calls, 1)
        fetch_add(counter.wall, took)
        fetch_add(counter.busy, busy)
    else:
        counter.calls += 1
        counter.wall += took
        counter.busy += busy
    if took > counter.longest:
        counter.longest = took
    if kind != UNLOGGED:
        log(number, integer(counter_of(counters, 0, step)) + kind, start, end, 1)
    if recorder.hook is not None:
        tell(context, -integer(counter_of(counters, 0, step)))


@exported
def profile_iterations(context: Context, counters: Counters, step: i64, count: i64) -> void:
    """A loop has run so many steps."""
    number = lane_of(context.scratch)
    counter = counter_of(counters, number, step)
    if number == 0:
        fetch_add(counter.iterations, count)
    else:
        counter.iterations += count


@exported
def profile_chunk(launch: Launch, begin: i64, end: i64, scratch: ptr) -> void:
    """Runs iterations [begin, end) of a kernel, called as one. A thread that goes on with a step reads the clock once for each piece: what it takes
    to get the next is a part of it."""
    number = lane_of(scratch)
    start = goes_on(number, launch, scratch)
    is_new = 1 if start == 0 else 0
    if is_new != 0:
        start = ticks()
    launch.kernel(launch.args, begin, end, scratch)
    stop = ticks()
    counter = counter_of(launch.counters, number, launch.step)
    if number == 0:
        fetch_add(counter.busy, stop - start)
        fetch_add(counter.chunks, 1)
        fetch_add(counter.iterations, end - begin)
    else:
        counter.busy += stop - start
        counter.chunks += 1
        counter.iterations += end - begin
    log_chunk(number, launch, start, stop, end - begin, is_new)


@exported
def profile_now() -> i64:
    """The counter that times are measured with."""
    return ticks()
