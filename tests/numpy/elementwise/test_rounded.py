"""Values that are rounded once, numbers at equal steps and decimals: NumPy's to the bit, with the signs of zeros."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError


def test_linspace_of_integers_rounds_down_and_geomspace_has_its_ends() -> None:
    ends = np.float64(0), np.float64(-3)
    np.testing.assert_array_equal(np.asarray(hg.jit(lambda a, b: hnp.linspace(a, b, 5, dtype=int))(*ends)), np.linspace(*ends, 5, dtype=int))
    exact = np.asarray(hg.jit(lambda a, b: hnp.geomspace(a, b, 7))(np.float64(3), np.float64(7000)))
    assert exact[0] == 3
    assert exact[-1] == 7000


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_rounded_decimals_are_the_nearest_numbers(kind: str) -> None:
    x = (np.arange(-3000, 3000) / 7).astype(kind)
    for decimals in (1, 2, 3, 5, -1, -2):
        f = functools.partial(hnp.round, decimals=decimals)
        for g in (f, hg.jit(f), hg.vmap(f)):
            np.testing.assert_array_equal(np.asarray(g(x.reshape(2, -1))), np.round(x.reshape(2, -1), decimals))
    assert hnp.round(hg.tensor(np.array([0.31, 0.58], kind)), 1).tolist() == np.array([0.3, 0.6], kind).tolist()


@pytest.mark.parametrize(
    "bounds",
    [
        (0.0, -3.0, -1.0),
        (0, -3, -0.5),
        (-0.0, 2.0, 1.0),
        (-0.0, -2.0, -1.0),
        (0, 2e-16, 1e308),
        (0, -2e-16, -1e308),
        (5.0, 4.0, 1e308),
        (1.0, -2.0, -1.0),
    ],
)
def test_arange_begins_with_its_start(bounds: tuple[float, ...]) -> None:
    for kind in ("float64", "float32", "float16", "int32"):
        want = np.arange(*bounds, dtype=kind)
        for got in (hnp.arange(*bounds, dtype=kind), hg.jit(lambda kind=kind: hnp.arange(*bounds, dtype=kind))()):
            np.testing.assert_array_equal(np.asarray(got), want)
            np.testing.assert_array_equal(np.signbit(np.asarray(got)), np.signbit(want))


@pytest.mark.parametrize("bounds", [(-1e308, 1e308, 1e307), (0.0, 1e308, 1e-308), (0, 10**400, 1.0), (0.5, 10**400)])
def test_arange_of_more_than_floats_can_count(bounds: tuple[float, ...]) -> None:
    with pytest.raises(ArgumentError, match="too many steps"):
        hnp.arange(*bounds)
