"""joblib: jitted functions in threads and processes, hashes and files of Tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from tests.support.runner.libraries import library

joblib = library("joblib")
A = np.random.default_rng(0).normal(size=(4, 5))


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_jitted_functions_run_in_parallel(backend: str) -> None:
    scale = hg.tensor(2.0)
    function = hg.jit(lambda x: hnp.sin(x) * scale)
    function(A[0])  # a program that is there is left behind
    found = joblib.Parallel(2, backend=backend)(joblib.delayed(function)(hg.tensor(row)) for row in A)
    np.testing.assert_allclose(np.asarray(hnp.stack(found)), 2 * np.sin(A))


def test_hashes_follow_values() -> None:
    assert joblib.hash(hg.tensor(A)) == joblib.hash(hg.tensor(A.copy())) != joblib.hash(hg.tensor(A + 1))


def test_files_and_memory(tmp_path: Path) -> None:
    joblib.dump({"w": hg.tensor(A), "f": hg.jit(np.sin)}, tmp_path / "model")
    read = joblib.load(tmp_path / "model")
    np.testing.assert_allclose(np.asarray(read["f"](read["w"])), np.sin(A))
    calls = []

    def costly(x: Any) -> Any:
        calls.append(1)
        return x * 2

    remembered = joblib.Memory(tmp_path, verbose=0).cache(costly)
    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(remembered(hg.tensor(A))), 2 * A)
    assert len(calls) == 1
