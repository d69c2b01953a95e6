"""The fuzzer: a seeded slice of it, and that it finds what it is for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
from tests.fuzz import judge, meaning
from tests.fuzz.campaign import campaign
from tests.fuzz.executors import run as running
from tests.fuzz.generate import Case, generate
from tests.fuzz.program import Input, Program, Ref, Step, source
from tests.fuzz.script import script
from tests.fuzz.shrink import Alike, shrunk
from tests.fuzz.thresholds import FIXED, overridden, thresholds
from tests.fuzz.trial import Failure, run_case

pytestmark = pytest.mark.usefixtures("fully_compiled")

SLICE = 25  # cases in ``make test``
LONG = 3000  # with ``--all``


def test_slice(everything: bool, tmp_path: Path) -> None:
    """Random programs, in a process of their own, by every executor that their seeds draw."""
    tally = campaign(1_000_000, LONG if everything else SLICE, None, 1, tmp_path, quiet=True)
    assert tally.cases == (LONG if everything else SLICE)
    assert not tally.failures, {key: [f["seed"] for f in found] for key, found in tally.failures.items()}


def test_cases_follow_from_their_seeds() -> None:
    for seed in range(20):
        a, b = generate(seed), generate(seed)
        assert source(a.program) == source(b.program) and (a.transform, a.thresholds) == (b.transform, b.thresholds)


def test_scripts_run_by_themselves(tmp_path: Path) -> None:
    case = generate(3)
    path = tmp_path / "case.py"
    path.write_text(script(Failure(3, "none", "", "as found", case.program)))
    done = subprocess.run([sys.executable, "-W", "ignore", str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def _broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled programs that are wrong in one element."""
    exact = running.arrays

    def wrong(x: Any) -> list[np.ndarray]:
        out = [np.array(a) for a in exact(x)]
        for a in out:
            if a.size > 3 and a.dtype.kind == "f":
                a.ravel()[3] += 1
        return out

    monkeypatch.setattr(running, "arrays", wrong)


def test_a_wrong_element_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    _broken(monkeypatch)
    steps = (Step("v1", "numpy.sin", (Ref("x1"),)), Step("v2", "numpy.add", (Ref("v1"), 1.0)), Step("v3", "numpy.roll", (Ref("v2"), 1)))
    case = Case(5, Program((Input("float32", (40,), "normal", 1, "reversed", name="x1"),), steps, (Ref("v3"), Ref("v1"))))
    found = run_case(case, only=lambda x: x.name == "exact jit")
    assert len(found.failures) == 1 and "1 of 40 differ" in found.failures[0].text
    small = shrunk(case, Alike(found.failures[0].key, "exact jit"))
    assert len(small.program.steps) == 0 and small.program.inputs[0].layout == "plain" and small.program.inputs[0].shape[0] < 10


def test_thresholds_are_set_everywhere_and_put_back() -> None:
    import hologram.graph.lower.group as lower
    import hologram.graph.schedule.nest as nest

    users = thresholds()["hologram.graph.schedule.nest.NARROW"].users
    assert len(users) > 1  # modules that import it by name
    with overridden({"hologram.graph.schedule.nest.NARROW": 3}):
        assert nest.NARROW == 3 and not hg.settings.cache
        assert all(getattr(sys.modules[m], n) == 3 for m, n in users)
    assert nest.NARROW == 8 and lower is not None
    assert all(getattr(sys.modules[m], n) == 8 for m, n in users)


def test_fixed_numbers_are_there() -> None:
    assert thresholds()
    assert not [name for name in thresholds() if name.endswith((".fft.plan.WORK", ".fft.program.MEMORY"))], (
        "members of enumerations are no thresholds"
    )
    for name in FIXED:
        module, _, constant = name.rpartition(".")
        assert hasattr(sys.modules[module], constant), f"{name} is gone: tests/fuzz/thresholds.py"


def test_rounding_is_measured() -> None:
    """Order of sums is no difference; a wrong element is; what lies behind a comparison of what is rounded is left open."""
    x = np.random.default_rng(0).standard_normal(3000).astype(np.float32)
    graph = hg.make_graph(lambda x: x.sum())(x)
    moved = meaning.spread(graph, [x])
    want = meaning.bits(graph, [x])
    judge.near("sum", [np.float32(x.astype(np.float64).sum())], want, lambda: moved)
    with pytest.raises(judge.Mismatch):
        judge.near("sum", [np.float32(x.sum() + 1e-2)], want, lambda: moved)
    graph = hg.make_graph(lambda x: (x * 3.0) / 3.0 > x)(x)
    other = [np.asarray((x.astype(np.float64) * 3 / 3).astype(np.float32) > x)]
    judge.near("compared", other, meaning.bits(graph, [x]), lambda: meaning.spread(graph, [x], trials=12))


def test_errors_of_routines_that_bound_norms_may_be_in_any_element() -> None:
    want, moved = [np.ones(3)], [[np.array([1.0, 1.0, 1.0 + 1e-12])]]
    judge.near("vectors", [np.array([1.0 + 1e-12, 1.0, 1.0])], want, lambda: moved, norms=True)
    judge.near("number", [np.float64(1.0 + 1e-12)], [np.float64(1.0)], lambda: [[np.float64(1.0 + 1e-12)]], norms=True)
    for got, norms in ((1.0 + 1e-12, False), (1.0 + 1e-10, True)):
        with pytest.raises(judge.Mismatch):
            judge.near("vectors", [np.array([got, 1.0, 1.0])], want, lambda: moved, norms=norms)
