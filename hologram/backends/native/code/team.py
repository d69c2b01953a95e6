"""Native code of calls that run on another runtime's threads.

OpenMP's threads spin for a while after a parallel region, on cores that workers of ours would need. So where a library that works by OpenMP is at
work in the process (:func:`pool.share_openmp`), a call that is not short is an OpenMP region itself: its first thread, the caller, runs the graph,
the others take part in its jobs as workers do, until the graph is done. The region ends when all have left it.
"""

from __future__ import annotations

from hologram.backends.native.code.object_layout import layout
from hologram.backends.native.code.pool import find_job, join
from hologram.backends.native.code.records import Context, Graph, Worker, pool

# None is the null pointer.
# mypy: disable-error-code="return-value"
from hologram.backends.native_lang.language import (
    Function,
    acquire,
    address,
    compare_exchange,
    exchange,
    fetch_add,
    i32,
    i64,
    native,
    pause,
    ptr,
    read_fp_control,
    release,
    void,
    write_fp_control,
)


class Fork(Function):
    """GOMP_parallel: runs ``region(data)`` on each of ``threads`` threads, the caller's among them."""

    def __call__(self, region: ptr, data: ptr, threads: i32, flags: i32) -> void:
        raise NotImplementedError


class Number(Function):
    """omp_get_thread_num: 0 for the thread that began the region."""

    def __call__(self) -> i32:
        raise NotImplementedError


@native
def take_seat() -> Worker:
    """Scratch for a guest, or None if all is taken."""
    for i in range(pool.n_seats):
        seat = pool.seats[i]
        if acquire(seat.sleeping) == 0 and compare_exchange(seat.sleeping, 0, 1) != 0:
            return seat
    return None


@native
def serve(context: Context) -> void:
    """Takes part in jobs until the graph of ``context`` is done."""
    seat = take_seat()
    if seat is None:
        return
    control = read_fp_control()
    write_fp_control(layout.fp_control)
    while acquire(context.done) == 0:
        job = find_job()
        if job is not None:
            join(job, seat)
        else:
            pause()
    write_fp_control(control)
    release(seat.sleeping, 0)


@native
def region(context: Context) -> void:
    """What each thread of the team runs."""
    if Number(pool.thread_number)() == 0:
        context.status = Graph(context.graph)(context.slots, context)
        exchange(context.done, 1)
    else:
        serve(context)


@native
def run_in_team(context: Context, graph: ptr, slots: ptr) -> i64:
    """Runs a graph as a region; what it gives."""
    context.graph = graph
    context.slots = slots
    context.done = 0
    fetch_add(pool.guests, 1)
    Fork(pool.fork)(address(region), context, pool.team, 0)
    fetch_add(pool.guests, -1)
    return context.status
