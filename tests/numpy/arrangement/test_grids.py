"""Grids of numbers: the points that NumPy has, to the bit, however the ends are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp

ENDS = ((-0.5, 0.5), (-1.0, 1.0), (-0.3, 0.7), (-np.pi, np.pi), (-1e3, 1e3), (3.0, -3.0))
NUMBERS = (1, 2, 3, 10, 11, 101)
COMPLEX = ((1.0, 1j), (1j, -1j), (1 + 1j, -3 + 2j))


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with hg.settings.override(default_float="float64"):
        yield


def _ways(grid: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """How a grid may be asked for: with known ends, with known ends in a program that goes on, with computed ends."""
    return {
        "known": grid,
        "in a program": lambda a, b: hg.jit(lambda: grid(a, b) * 1.0)(),
        "computed": lambda a, b: hg.jit(grid)(np.float64(a), np.float64(b)),
        "one by one": lambda a, b: grid(hg.tensor(np.float64(a)), hg.tensor(np.float64(b))),
    }


@pytest.mark.parametrize("way", _ways(hnp.linspace))
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("endpoint", [False, True])
def test_linspace_has_the_points_of_numpy(number: int, endpoint: bool, way: str) -> None:
    for a, b in ENDS:
        found = _ways(lambda a, b: hnp.linspace(a, b, number, endpoint=endpoint))[way](a, b)
        np.testing.assert_array_equal(np.asarray(found), np.linspace(a, b, number, endpoint=endpoint))


@pytest.mark.parametrize("number", NUMBERS)
def test_bins_have_the_edges_of_numpy(number: int) -> None:
    x = np.concatenate([np.linspace(a, b, 23) for a, b in ENDS])
    for a, b in ENDS[:-1]:
        inside = x[(a <= x) & (x <= b)]
        for range_ in (None, (a, b)):
            for found, wanted in zip(hnp.histogram(inside, number, range_), np.histogram(inside, number, range_), strict=True):
                np.testing.assert_array_equal(found.numpy(), wanted)


def test_arange_adds_rounded_multiples() -> None:
    for start, step in ((-0.5, 0.1), (-1.0, 0.1), (-3.0, 0.3), (0.0, 1 / 3)):
        found = hnp.arange(start, -start + 1, step).numpy()
        np.testing.assert_array_equal(found, [start + i * step for i in range(len(found))])


@pytest.mark.parametrize("way", _ways(hnp.geomspace))
@pytest.mark.parametrize("ends", COMPLEX)
def test_complex_geomspace_is_complex(ends: tuple[complex, complex], way: str) -> None:
    a, b = (np.complex128(x) for x in ends)
    grids = {
        "known": lambda: hnp.geomspace(*ends, 5),
        "in a program": lambda: hg.jit(lambda: hnp.geomspace(*ends, 5) * 1.0)(),
        "computed": lambda: hg.jit(lambda a, b: hnp.geomspace(a, b, 5))(a, b),
        "one by one": lambda: hnp.geomspace(hg.tensor(a), hg.tensor(b), 5),
    }
    found = grids[way]()
    assert found.dtype == "complex128"
    np.testing.assert_allclose(found.numpy(), np.geomspace(*ends, 5), rtol=1e-12, atol=1e-12)


def test_complex_logspace_is_complex() -> None:
    found = hnp.logspace(1j, 2.0, 4)
    assert found.dtype == "complex128"
    np.testing.assert_allclose(found.numpy(), np.logspace(1j, 2.0, 4), rtol=1e-12)
