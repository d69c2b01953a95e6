"""Native code that tunes loops while they run (autotuning): whether threads share the kernels of their steps, or one thread runs them.

Which is faster depends on what no model of ours knows: where steps hand arrays from core to core, how far apart these are, and what else runs on
them. So a loop tries both, by turns, and keeps the faster: results do not depend on it (empirical tuning, as in ATLAS; Whaley, Petitet and
Dongarra 2001). Each way first runs for a while unmeasured: workers wake, and arrays move to the caches of those who work on them. Then a few steps
are timed; the best of the rounds counts, since all that disturbs a step makes it longer. The choice is tried anew after a while, twice as long each
time, because the machine changes. It lives in the program's own memory, from call to call. Threads that run one program at a time may mix up their
trials, and choose badly for that while.
"""

from __future__ import annotations

from hologram.backends.llvm.abi import TRIAL_BYTES
from hologram.backends.native.code.records import pool
from hologram.backends.native_lang.language import Struct, acquire, at, exported, i64, native, release, ticks, void

WINDOW = 8  # steps that are timed
ROUNDS = 2  # of both ways
WINDOWS = 4 * ROUNDS  # of one trial: in even ones steps are not timed, in odd ones they are
WARM_PART = 8  # of the time between polls: so long a way runs before it is timed, at least
SHARED_PART = 31  # of 32 parts of the serial time: what threads share is to take less
FIRST_KEPT, LAST_KEPT = 8, 1024  # times between polls until the next trial


class StepTrial(Struct):
    """The trials of one loop: a record of its program, zero at first."""

    window: i64  # of the trial that runs; WINDOWS: none does
    left: i64  # steps until there is something to decide
    is_serial: i64  # how steps run
    started: i64  # ticks when the window or the loop began
    elapsed: i64  # ticks of the window in earlier runs of the loop
    shared: i64  # best ticks of a timed window; 0: none yet
    serial: i64
    kept: i64 = at(TRIAL_BYTES - 8)  # times between polls from the last trial to the next


@exported
def begin_trial(trial: StepTrial) -> void:
    """A loop begins. Nothing is timed between two runs of it."""
    if acquire(trial.window) < WINDOWS:
        release(trial.started, ticks())


@exported
def end_trial(trial: StepTrial) -> void:
    """A loop ends, maybe within a window."""
    if acquire(trial.window) < WINDOWS:
        release(trial.elapsed, acquire(trial.elapsed) + ticks() - acquire(trial.started))


@native
def begin_window(trial: StepTrial, window: i64) -> i64:
    """Starts on a window of a trial. In the second half of a round steps are serial."""
    is_serial = window >> 1 & 1
    release(trial.window, window)
    release(trial.is_serial, is_serial)
    release(trial.elapsed, 0)
    release(trial.started, ticks())
    release(trial.left, WINDOW - 1)
    return is_serial


@native
def best(before: i64, elapsed: i64) -> i64:
    return elapsed if before == 0 or elapsed < before else before


@native
def choose(trial: StepTrial) -> i64:
    """Ends a trial: the faster way is kept for a while."""
    shared = acquire(trial.shared)
    serial = acquire(trial.serial)
    is_serial = shared * 32 > serial * SHARED_PART
    kept = acquire(trial.kept) * 2
    if kept < FIRST_KEPT:
        kept = FIRST_KEPT
    if kept > LAST_KEPT:
        kept = LAST_KEPT
    release(trial.window, WINDOWS)
    release(trial.kept, kept)
    release(trial.is_serial, is_serial)
    release(trial.shared, 0)
    release(trial.serial, 0)
    release(trial.left, kept * pool.poll_ticks // ((serial if is_serial else shared) // WINDOW + 1))
    return is_serial


@native
def turn(trial: StepTrial) -> i64:
    """What follows so many steps of a window, or the time for which a choice was kept."""
    window = acquire(trial.window)
    if window == WINDOWS:
        return begin_window(trial, 0)
    elapsed = acquire(trial.elapsed) + ticks() - acquire(trial.started)
    if window & 1 == 0:
        if elapsed >= pool.poll_ticks // WARM_PART:
            return begin_window(trial, window + 1)
        release(trial.left, WINDOW - 1)
        return acquire(trial.is_serial)
    if window & 2 == 0:
        release(trial.shared, best(acquire(trial.shared), elapsed))
    else:
        release(trial.serial, best(acquire(trial.serial), elapsed))
    return choose(trial) if window == WINDOWS - 1 else begin_window(trial, window + 1)


@exported
def runs_serially(trial: StepTrial) -> i64:
    """Asked before each step of a loop: whether the caller is to run its kernels without the workers."""
    if acquire(pool.n_workers) == 0 and acquire(pool.guests) == 0:
        return 0  # :func:`parallel_for` sees to it
    left = acquire(trial.left)
    if left > 0:
        release(trial.left, left - 1)
        return acquire(trial.is_serial)
    return turn(trial)
