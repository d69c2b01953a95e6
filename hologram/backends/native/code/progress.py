"""Native code of progress bars: the slots in which loops count their steps.

A loop with a bar takes a slot when it begins, stores the number of steps that are done there, with plain stores, and gives the slot back. A thread of
Python's reads the slots (:mod:`hologram.backends.native.progress_bars`) and draws. The first loop that finds it asleep wakes it, through Python.
Loop and reader each store before they look (Dekker; see :mod:`.pool`): a loop takes its slot before it asks whether anybody watches, and says that it
ends before it asks whether it has been shown. A loop whose bar has been shown ends it through Python, so that nothing of it is drawn later.
"""

from __future__ import annotations

from hologram.backends.llvm.abi import BAR_LABEL_BYTES
from hologram.backends.native.code.capi import (
    Py_DecRef,
    PyErr_Fetch,
    PyErr_Restore,
    PyEval_RestoreThread,
    PyEval_SaveThread,
    PyLong_FromLongLong,
    PyObject_CallOneArg,
    PyThread_get_thread_ident,
)
from hologram.backends.native.code.records import (
    BAR_CLAIMED,
    BAR_ENDING,
    BAR_FREE,
    BAR_RUNNING,
    BAR_SLOTS,
    Bar,
    Context,
    pool,
    progress,
)
from hologram.backends.native_lang.language import (
    acquire,
    address,
    compare_exchange,
    copy,
    exchange,
    exported,
    i64,
    integer,
    native,
    ptr,
    release,
    ticks,
    void,
)

QUIET_POLLS = 100  # times between looks for signals, a second in all, for which a loop that nobody wants to see asks no more

# None is the null pointer.
# mypy: disable-error-code="return-value"


@native
def with_gil(context: Context, function: ptr, word: i64) -> i64:
    """Calls a Python function of an integer, with the GIL. Nonzero: an exception is set."""
    released = context.thread_state
    if released is not None:
        context.thread_state = None
        PyEval_RestoreThread(released)
    failed = 1
    argument = PyLong_FromLongLong(word)
    if argument is not None:
        done = PyObject_CallOneArg(function, argument)
        Py_DecRef(argument)
        if done is not None:
            Py_DecRef(done)
            failed = 0
    if released is not None:
        context.thread_state = PyEval_SaveThread()
    return failed


@native
def bar_claim() -> Bar:
    """A free slot; the spare one, at which nobody looks, where there is none or no bar is to be drawn."""
    if acquire(progress.off) == 0:
        for i in range(BAR_SLOTS):
            bar = progress.bars[i]
            if acquire(bar.state) == BAR_FREE and compare_exchange(bar.state, BAR_FREE, BAR_CLAIMED) != 0:
                return bar
    return progress.bars[BAR_SLOTS]


@exported
def bar_begin(context: Context, label: ptr, total: i64) -> Bar:
    """The slot of a loop that begins, of ``total`` steps or, negative, nobody knows how many. Cancels the call where Python raises."""
    bar = bar_claim()
    if acquire(bar.state) != BAR_CLAIMED:
        return bar
    bar.serial += 1
    copy(address(bar.label), label, BAR_LABEL_BYTES)
    bar.total = total
    bar.owner = integer(context)
    bar.thread = PyThread_get_thread_ident()
    bar.shown = 0
    release(bar.done, 0)
    context.bars += 1
    exchange(bar.state, BAR_RUNNING)
    if acquire(progress.watched) == 0 and ticks() > progress.quiet_until:
        if with_gil(context, progress.wake, integer(bar)) != 0:
            context.cancelled = 1
        if acquire(progress.watched) == 0:
            progress.quiet_until = ticks() + QUIET_POLLS * pool.poll_ticks
    return bar


@exported
def bar_end(context: Context, bar: Bar) -> void:
    """Gives a slot back. Cancels the call where Python raises."""
    if acquire(bar.state) != BAR_RUNNING:
        return
    context.bars -= 1
    exchange(bar.state, BAR_ENDING)
    if acquire(bar.shown) != 0 and with_gil(context, progress.finish, integer(bar)) != 0:
        context.cancelled = 1
    release(bar.state, BAR_FREE)


@native
def bars_drop(context: Context) -> void:
    """Gives back the slots of a call that was cancelled. An exception that is set stays set."""
    PyErr_Fetch(address(context.raised), address(context.raised_value), address(context.raised_trace))
    for i in range(BAR_SLOTS):
        bar = progress.bars[BAR_SLOTS - 1 - i]  # inner loops before those around them
        if acquire(bar.state) == BAR_RUNNING and bar.owner == integer(context):
            exchange(bar.state, BAR_ENDING)
            if acquire(bar.shown) != 0 and with_gil(context, progress.finish, integer(bar)) != 0:
                PyErr_Restore(None, None, None)
            release(bar.state, BAR_FREE)
    context.bars = 0
    PyErr_Restore(context.raised, context.raised_value, context.raised_trace)
    context.raised = None
    context.raised_value = None
    context.raised_trace = None
