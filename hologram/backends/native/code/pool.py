"""Native code of the thread pool: how a caller and whoever is awake share the chunks of a kernel.

A caller claims a job slot, publishes the kernel there and starts on it at once, ``grain`` chunks to begin with; workers that see the job join.
Pieces are a part of what is left, long at first and at last a grain (guided self-scheduling, Polychronopoulos and Kuck 1987): each thread then
reads long stretches of memory on its own, which the hardware foresees twice as well as neighbouring rows dealt out in turn.
The caller takes its pieces from the front, workers theirs from the back: in the steps of a loop a core meets again what is in its own cache.
Which thread runs which chunk never shows in the results. Once the caller finds no chunk left it closes the job and waits for those that
have joined, never for one that has not. A worker joins by counting itself in *before* it looks at the state, so that a slot whose state is
``CLOSED`` and whose count is zero is nobody's.

A worker without work spins for a while and then sleeps. It announces its sleep before it looks for work a last time, and a caller
publishes its job before it looks for sleepers, so no sleeper is overlooked: of two threads that each store and then load what the other
stores, one sees the other's, if all four are sequentially consistent (Dekker). Such stores are ``exchange`` and ``fetch_add``, never
``release``, and such loads ``acquire``, never plain ones. Waking costs microseconds, so the caller first runs one grain and wakes others
only if what remains will take longer than that, or if jobs follow each other closely.
"""

from __future__ import annotations

# None is the null pointer.
# mypy: disable-error-code="return-value"
from hologram.backends.native.code.capi import (
    PyErr_CheckSignals,
    PyEval_RestoreThread,
    PyEval_SaveThread,
    PyThread_acquire_lock,
    PyThread_acquire_lock_timed,
    PyThread_release_lock,
)
from hologram.backends.native.code.records import (
    CLAIMED,
    CLOSED,
    FREE,
    JOB_SLOTS,
    OPEN,
    Context,
    Job,
    Kernel,
    Worker,
    pool,
)
from hologram.backends.native_lang.language import (
    acquire,
    compare_exchange,
    exchange,
    exported,
    fetch_add,
    i64,
    native,
    pause,
    ptr,
    release,
    ticks,
    void,
)

SHARES = 4  # pieces that each thread would make of what is left
LONGEST_PIECE = 8  # parts of the time between polls: a piece takes one of them at most
WAKE_WIDTH = 2  # each thread that finds much work left wakes so many others
PATIENCE = 4000  # spins before a caller that waits for a joined worker yields its core
NAP_MICROSECONDS = 50


@exported
def poll(context: Context) -> i64:
    """Lets Python handle signals if the caller runs without the GIL and it is time. Nonzero: the call is cancelled."""
    if context.thread_state is None or context.polls == 0:
        return context.cancelled
    now = ticks()
    if now - context.last_poll > pool.poll_ticks and context.cancelled == 0:
        PyEval_RestoreThread(context.thread_state)
        if PyErr_CheckSignals() != 0:
            context.cancelled = 1
        context.thread_state = PyEval_SaveThread()
        context.last_poll = ticks()
    return context.cancelled


@native
def wake(count: i64) -> void:
    """Wakes up to ``count`` sleeping workers."""
    for i in range(acquire(pool.n_workers)):
        if count == 0:
            return
        worker = pool.workers[i]
        if acquire(worker.sleeping) != 0 and compare_exchange(worker.sleeping, 1, 0) != 0:
            PyThread_release_lock(worker.lock)
            count -= 1


@native
def wake_for(job: Job, started: i64, count: i64) -> void:
    """Wakes workers if what is left of a job will take long, judging by the ``count`` chunks that were run since ``started``; none where guests take
    their place.

    Short jobs that nobody joined add up: in a dense row of them a worker is woken too, which then stays awake from job to job.
    """
    left = acquire(job.chunks) - acquire(job.next)
    if left <= 0 or acquire(pool.guests) != 0:
        return
    now = ticks()
    expected = (now - started) * left // count
    if expected > pool.wake_ticks:
        wake(WAKE_WIDTH)
    elif acquire(job.joined) == 0:
        unmet = expected
        if now - acquire(pool.last_unmet) <= pool.poll_ticks:
            unmet += acquire(pool.unmet)  # other callers' updates may be lost: it is an estimate
        release(pool.last_unmet, now)
        if unmet > pool.wake_ticks:
            unmet = 0
            wake(1)
        release(pool.unmet, unmet)


@native
def piece(job: Job) -> i64:
    """How many chunks a thread takes next."""
    count = (acquire(job.chunks) - acquire(job.next)) // (SHARES * (acquire(pool.n_workers) + 1))
    longest = acquire(job.longest)
    if count > longest:
        count = longest
    if count < job.grain:
        count = job.grain
    return count


@native
def clipped(job: Job, taken: i64, count: i64) -> i64:
    """``count``, or as many chunks as are left from ``taken`` on: none where it is not positive. So together threads take no more than there are, and
    front and back do not meet."""
    left = acquire(job.chunks) - taken
    return count if count < left else left


@native
def claim() -> Job:
    """A free job slot, or None."""
    for i in range(JOB_SLOTS):
        job = pool.jobs[i]
        if acquire(job.state) == FREE and compare_exchange(job.state, FREE, CLAIMED) != 0:
            return job
    return None


@native
def longest_piece(chunks: i64, elapsed: i64) -> i64:
    """How many chunks may be run between two polls, by the time that so many have taken."""
    return pool.poll_ticks // LONGEST_PIECE * chunks // (elapsed + 1)


@native
def run_alone(context: Context, kernel: Kernel, args: ptr, chunks: i64, grain: i64) -> i64:
    begin = 0
    end = grain
    started = ticks()
    while begin < chunks:
        if end > chunks:
            end = chunks
        kernel(args, begin, end, context.scratch)
        if poll(context) != 0:
            return 1
        count = longest_piece(end, ticks() - started)
        if count < grain:
            count = grain
        begin = end
        end = begin + count
    return 0


@native
def close(job: Job) -> void:
    """Ends a job: waits for the workers that joined it and frees the slot."""
    exchange(job.state, CLOSED)
    fetch_add(pool.open, -1)
    spins = 0
    while acquire(job.joined) != 0:
        pause()
        spins += 1
        if spins > PATIENCE:
            PyThread_acquire_lock_timed(pool.nap, NAP_MICROSECONDS, 0)
    exchange(job.state, FREE)


@exported
def parallel_for(context: Context, kernel: Kernel, args: ptr, chunks: i64, grain: i64) -> i64:
    """Runs chunks [0, chunks) of a kernel, shared with the workers; by the caller alone where ``grain`` is negative. Nonzero: the call is
    cancelled."""
    if grain < 0:
        return run_alone(context, kernel, args, chunks, -grain)
    if chunks <= grain:
        kernel(args, 0, chunks, context.scratch)
        return context.cancelled
    if acquire(pool.n_workers) == 0 and acquire(pool.guests) == 0:
        return run_alone(context, kernel, args, chunks, grain)
    job = claim()
    if job is None:
        return run_alone(context, kernel, args, chunks, grain)
    job.kernel = kernel
    job.args = args
    job.grain = grain
    release(job.chunks, chunks)  # workers may look at these in a slot that they think is another job's
    release(job.longest, grain)  # until it is known how long one takes
    release(job.next, grain)  # the caller's own first grain is taken
    release(job.back, 0)
    exchange(job.state, OPEN)
    fetch_add(pool.open, 1)
    started = ticks()
    kernel(args, 0, grain, context.scratch)
    exchange(job.longest, longest_piece(grain, ticks() - started))
    wake_for(job, started, grain)
    taken = 0
    front = grain
    while poll(context) == 0:
        count = piece(job)
        taken = fetch_add(job.next, count)
        count = clipped(job, taken, count)
        if count <= 0:
            break
        kernel(args, front, front + count, context.scratch)
        front += count
    if taken < chunks:
        exchange(job.next, chunks)  # cancelled: nobody takes more
    close(job)
    return context.cancelled


@native
def join(job: Job, worker: Worker) -> i64:
    """Works on a job, if it is open, until it is done or the pool stops. Nonzero: at least one grain was run."""
    fetch_add(job.joined, 1)
    ran = 0
    if acquire(job.state) == OPEN:
        while acquire(pool.stop) == 0:
            count = piece(job)
            taken = fetch_add(job.next, count)
            count = clipped(job, taken, count)
            if count <= 0:
                break
            begin = acquire(job.chunks) - fetch_add(job.back, count) - count
            started = ticks()
            job.kernel(job.args, begin, begin + count, worker.scratch)
            if ran == 0:
                wake_for(job, started, count)
            ran = 1
    fetch_add(job.joined, -1)
    return ran


@native
def find_job() -> Job:
    """A job with chunks left, or None."""
    if acquire(pool.open) > 0:
        for i in range(JOB_SLOTS):
            job = pool.jobs[i]
            if acquire(job.state) == OPEN and acquire(job.next) < acquire(job.chunks):
                return job
    return None


@native
def find_work() -> Job:
    """A job for a worker, or None; guests take the place of workers."""
    return find_job() if acquire(pool.guests) == 0 else None


@native
def sleep(worker: Worker) -> void:
    exchange(worker.sleeping, 1)
    if (acquire(pool.stop) != 0 or find_work() is not None) and compare_exchange(worker.sleeping, 1, 0) != 0:
        return
    PyThread_acquire_lock(worker.lock, 1)


@native
def patience() -> i64:
    """How long a worker without work stays awake: longer while a job is under way. Who falls asleep during its last pieces is awake too late for the
    next job, too, and so for all that follow."""
    return pool.tail_ticks if acquire(pool.open) > 0 and acquire(pool.guests) == 0 else pool.spin_ticks


@exported
def worker_main(worker: Worker) -> void:
    """The life of a worker thread, without the GIL, until the pool stops."""
    idle_since = ticks()
    while acquire(pool.stop) == 0:
        job = find_work()
        if job is not None:
            if join(job, worker) != 0:
                idle_since = ticks()
        elif ticks() - idle_since < patience():
            pause()
        else:
            sleep(worker)
            idle_since = ticks()


@exported
def stop_workers() -> void:
    """Tells every worker to return; those that run a kernel do so after their grain."""
    exchange(pool.stop, 1)
    wake(acquire(pool.n_workers))


@exported
def now() -> i64:
    """The counter that times are measured with."""
    return ticks()
