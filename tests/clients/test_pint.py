"""pint's quantities of Tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
from tests.support.runner.libraries import library

pint = library("pint")
units = pint.UnitRegistry()
A = np.random.default_rng(0).normal(size=(6, 4))
CASES: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda q: (q + q) * q / units("2 s") - q**2 / units("s"),
    "conversion": lambda q: q.to("km").to_base_units(),
    "mean": lambda q: np.mean(q, axis=0),
    "std": lambda q: np.std(q),
    "sum": lambda q: q.sum(axis=1),
    "sine": lambda q: np.sin(q / units("m")),
    "concatenate": lambda q: np.concatenate([q, q.to("cm")]),
    "product": lambda q: q @ q.T,
    "where": lambda q: np.where(q > q.mean(), q, 0 * q),
    "clip": lambda q: np.clip(q, units("0 m"), units("100 cm")),
    "diff": lambda q: np.diff(q, axis=0),
    "trapezoid": lambda q: np.trapezoid(q, axis=0),
    "part": lambda q: q[2:4, 0],
}


@pytest.mark.parametrize("name", CASES)
def test_quantities_keep_tensors_and_units(name: str) -> None:
    found, wanted = CASES[name](units.Quantity(hg.tensor(A), "m")), CASES[name](units.Quantity(A, "m"))
    assert type(found.magnitude) is hg.Tensor
    assert found.units == wanted.units
    np.testing.assert_allclose(np.asarray(found.magnitude), wanted.magnitude)


def test_units_inside_a_jitted_function() -> None:
    found = hg.jit(lambda x: (units.Quantity(x, "m") ** 2).to("km^2").magnitude)(A)
    np.testing.assert_allclose(np.asarray(found), A**2 / 1e6)
    doubled = units.wraps("m", "m")(hg.jit(lambda x: 2 * x))(units.Quantity(A, "km"))
    np.testing.assert_allclose(np.asarray(doubled.magnitude), 2000 * A)
