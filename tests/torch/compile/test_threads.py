"""Long calls on torch's OpenMP threads: many at a time, beside jitted functions and eager ops, after a fork."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
import torch

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.native.pool import the_pool
from hologram_torch.bridge import threads

pytestmark = pytest.mark.skipif(not threads.share() or not the_pool().state.fork, reason="torch works without OpenMP, or with one thread")


def work(x):
    return hnp.tanh(x @ x.T).sum(axis=1) + hnp.exp(-x).sum()


def test_calls_of_many_threads_at_one_time():
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal((400, 400)).astype(np.float32) for _ in range(6)]
    f = hg.jit(work)
    expected = [np.array(f(x)) for x in inputs]
    wrong: list[int] = []

    def call(i: int) -> None:
        for _ in range(30):
            eager = torch.from_numpy(inputs[i]) * 2  # an OpenMP region of torch's own
            if not np.array_equal(f(inputs[i]), expected[i]) or eager[0, 0] != 2 * inputs[i][0, 0]:
                wrong.append(i)

    callers = [threading.Thread(target=call, args=(i,)) for i in range(len(inputs))]
    for t in callers:
        t.start()
    for t in callers:
        t.join()
    assert not wrong
    assert the_pool().state.guests == 0


def test_results_are_those_of_our_own_threads():
    x = np.random.default_rng(1).standard_normal((500, 300)).astype(np.float32)
    state = the_pool().state
    shared = np.array(hg.jit(work)(x))
    fork, state.fork = state.fork, 0
    try:
        assert np.array_equal(hg.jit(work)(x), shared)
    finally:
        state.fork = fork


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_has_threads_of_its_own():
    x = np.random.default_rng(2).standard_normal((500, 300)).astype(np.float32)
    f = hg.jit(work)
    expected = np.array(f(x))
    child = os.fork()
    if child == 0:
        code = 2  # of an exception: a child that went on would run the other tests as well
        try:
            code = 0 if the_pool().state.fork == 0 and np.array_equal(f(x), expected) else 1
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert np.array_equal(f(x), expected)
