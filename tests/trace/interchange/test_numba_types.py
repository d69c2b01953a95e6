"""Tensors as arguments of Numba's functions."""

from __future__ import annotations

import gc
import importlib.metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
from hologram.backends.native import storage
from hologram.errors import TracedValueError
from hologram.trace.interchange import numba_types

numba = pytest.importorskip("numba", reason="Numba is not installed")


@pytest.fixture(scope="module")
def total() -> Any:
    numba_types.when_needed()  # what Numba calls by the entry point

    @numba.njit
    def total(x: Any) -> Any:
        found = 0.0
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                found += x[i, j] * (i + 1)
        return found + np.sum(x) + x[0].mean() + x.T[1, 0]

    return total


def test_arguments(total: Any) -> None:
    for dtype in ("float64", "float32", "int32", "uint8", "bool"):
        x = (np.arange(6).reshape(2, 3) % 4).astype(dtype)
        for t, array in ((hg.tensor(x), x), (hg.tensor(x.T.copy()).T, x), (hg.tensor(x)[:, 1:], x[:, 1:]), (hg.tensor(x) + hg.tensor(x), x + x)):
            assert total(t) == pytest.approx(total(np.ascontiguousarray(array)))


def test_results_and_containers() -> None:
    @numba.njit
    def several(xs: Any) -> Any:
        return xs[0] + xs[1], xs[0]

    t = hg.tensor(np.arange(3.0))
    added, same = several((t, np.ones(3)))
    np.testing.assert_array_equal(added, [1.0, 2.0, 3.0])
    assert type(same) is np.ndarray and same.ctypes.data == t.ctypes.data and not same.flags.writeable


def test_tensors_are_read_only() -> None:
    @numba.njit
    def write(x: Any) -> None:
        x[0] = 1.0

    with pytest.raises(numba.TypingError, match="Cannot modify readonly array"):
        write(hg.tensor(np.zeros(3)))


def test_references_are_given_back(total: Any) -> None:
    total(hg.tensor(np.zeros((2, 3))))
    gc.collect()
    before = storage.statistics()["live"]
    for _ in range(5):
        total(hg.tensor(np.zeros((200, 300))))
        total(hg.tensor(np.zeros((300, 200))).T)
    gc.collect()
    assert storage.statistics()["live"] == before


def test_traced_tensors_are_refused(total: Any) -> None:
    with pytest.raises(TracedValueError):
        hg.jit(lambda x: total(x))(np.ones((2, 3)))


def test_numba_finds_the_types_by_itself() -> None:
    entry = 'init = "hologram.trace.interchange.numba_types:when_needed"'
    written = (Path(__file__).parents[3] / "pyproject.toml").read_text().partition("[project.entry-points.numba_extensions]\n")[2]
    assert written.startswith(entry)
    found = [e for e in importlib.metadata.entry_points(group="numba_extensions") if e.module.startswith("hologram.")]
    if not found:
        pytest.skip("Hologram was installed before it had this entry point")
    assert found[0].load() is numba_types.when_needed
