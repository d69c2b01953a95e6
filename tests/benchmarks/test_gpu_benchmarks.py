"""The benchmarks of a GPU, on the CPU: cases run in Hologram as they are written, a worker answers, and figures become tables."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import gpu
from benchmarks.gpu_cases import CASES, PEAKS, predicted
from benchmarks.gpu_worker import FIRST, RUNNERS, Runner, measured

N = 1 << 12


@pytest.fixture(scope="module")
def runner() -> Runner:
    return RUNNERS["hologram"]("cpu")


@pytest.mark.parametrize("name", ["gelu", "softmax", "adam", "block gradient"])
def test_a_case_is_measured(name: str, runner: Runner) -> None:
    found = measured(runner, CASES[name], N, 0.01)
    assert 0 < found["host"] <= found["time"] and found["first"] > 0


def test_arrays_are_of_the_numbers(runner: Runner) -> None:
    x = np.asarray(runner.array((3, 50), "bfloat16"))
    assert x.shape == (3, 50) and x.dtype.name == "bfloat16"
    assert np.array_equal(x, np.asarray(runner.block)[:150].reshape(3, 50).astype(x.dtype))


def test_a_worker_answers_and_is_replaced_when_it_dies() -> None:
    worker = gpu.Worker("hologram", "cpu", 12)
    try:
        assert worker.ask(FIRST)["first"] > 0
        assert worker.process is not None
        worker.process.kill()
        worker.process.wait()
        assert "status" in worker.ask("gelu")["error"]
        assert worker.ask("nothing")["error"].startswith("KeyError")
    finally:
        worker.end()


def test_figures_become_tables() -> None:
    n = 1 << 28
    ours, theirs = {"time": 1e-3, "host": 1e-5, "first": 0.1}, {"time": 2e-3, "host": 1e-5, "first": 0.1}
    found = {
        "copy": {"hologram": ours},
        "gelu": {"hologram": ours, "jax": theirs, "torch": {"error": "none"}},
        FIRST: {"jax": {"start": 1, "first": 0.2}},
    }
    text = gpu.markdown("A device", found, n)
    assert "| gelu | 1,000.0 | 2,000.0 | 100% | 2.00 | 10.0 |" in text and "- gelu, torch: none" in text and "| jax | 1,000 | 200 |" in text
    assert gpu.rates(found, n) == (8 * n / 1e-3, PEAKS)
    assert predicted(CASES["gelu"], n) == pytest.approx(499e-6, rel=0.01)
