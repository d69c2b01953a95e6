"""scikit-learn under its Array API dispatch, by its own checks; SciPy, which it calls, reads the switch at its import, so in another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hologram as hg

pytestmark = pytest.mark.costly(2)

ROOT = Path(__file__).parents[2]
PROGRAM = "tests.support.clients.sklearn_checks"
SAMPLE = 5  # checks in a run without --all
# Calls without the dispatch, which the checks make too: Cython code that takes no read-only memory. With the dispatch they are right.
REFUSED = {"additive_chi2_kernel metric_pairwise", "chi2_kernel metric_pairwise"}


def test_checks_of_estimators_and_metrics(everything: bool) -> None:
    pytest.importorskip("sklearn", minversion="1.8", reason="scikit-learn 1.8 is not installed: pip install -e '.[clients]'")
    pytest.importorskip("scipy", minversion="1.17", reason="SciPy 1.17 is not installed")
    count = [] if everything else [str(SAMPLE)]
    done = subprocess.run([sys.executable, "-m", PROGRAM, *count], cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    wrong = {name: text for name, text in found.items() if text != "right"}
    assert all(name in REFUSED and text == "ValueError: buffer source array is read-only" for name, text in wrong.items()), wrong
    if everything:
        assert wrong.keys() == REFUSED and len(found) >= 110


def test_metrics_of_weighted_samples_without_the_dispatch() -> None:
    """scikit-learn then computes with NumPy's functions, on arrays and on Tensors that it was not asked to convert."""
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    truth, weights = np.array([0, 1, 2, 3]), np.array([1.0, 2.0, 3.0, 1.0])
    chances = np.array([[0.5, 0.2, 0.2, 0.1], [0.4, 0.4, 0.1, 0.1], [0.1, 0.1, 0.7, 0.1], [0.1, 0.2, 0.6, 0.1]])
    for name in ("d2_log_loss_score", "brier_score_loss", "log_loss"):
        f = getattr(metrics, name)
        found = f(hg.tensor(truth), hg.tensor(chances), sample_weight=hg.tensor(weights))
        assert found == pytest.approx(f(truth, chances, sample_weight=weights), rel=1e-12)
