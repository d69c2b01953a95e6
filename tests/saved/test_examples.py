"""The examples' programs, trainings included, give the same bits out of a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from examples import charlm, digits, gaussian_process, heat, hmc, nbody, photo
from tests.support.comparing import same

RNG = np.random.default_rng(0)
KEY = hg.random.key(1)
MODEL = charlm.Model(7, width=16, heads=2, layers=1, length=8, batch=4)
TEXT = RNG.integers(0, 7, 200)


def _writer() -> tuple[Any, ...]:
    p = charlm.start(MODEL, KEY)
    zeros = hg.tree.map(hnp.zeros_like, p)
    return hg.tree.map(hg.tensor, (p, zeros, zeros, np.int32(0))), TEXT, KEY


def _perceptron() -> tuple[Any, ...]:
    layers = digits.start(RNG)
    zeros = hg.tree.map(np.zeros_like, layers)
    pictures = RNG.random((32, layers[0]["weight"].shape[0]), np.float32)
    return (layers, zeros, zeros), np.float32(1), pictures, RNG.integers(0, 10, 32)


def _line() -> tuple[Any, ...]:
    x = np.linspace(0, 1, 20)
    return np.zeros(3), x, np.sin(x)


def _measurements() -> tuple[Any, ...]:
    return KEY, RNG.normal(size=(30, 4)), RNG.integers(0, 2, 30).astype(np.float64)


PLATE = heat.plate(12, 20, 0.2)
SETTLE = hg.jit(lambda t, faces, tolerance: heat.settle(t, heat.Plate(*faces), tolerance, 200))
DEVELOP = hg.jit(lambda picture: photo.develop(hnp, picture))

# by name: the function, static arguments before the others, the others, and static options
PROGRAMS: dict[str, tuple[Any, tuple[Any, ...], Callable[[], tuple[Any, ...]], dict[str, Any]]] = {
    "charlm step": (charlm.step, (MODEL,), _writer, {}),
    "charlm sample": (charlm.sample, (MODEL, 5), lambda: (charlm.start(MODEL, KEY), TEXT[:8], KEY), {}),
    "digits adam": (digits.adam, (), _perceptron, {}),
    "gaussian process": (gaussian_process.fit, (), _line, {"steps": 5}),
    "heat": (SETTLE, (), lambda: (np.zeros((12, 20)), tuple(PLATE), 1e-2), {}),
    "hmc": (hmc.chain, (), _measurements, {"draws": 6, "warm_up": 3}),
    "nbody": (nbody.integrate, (), lambda: (10.0,), {"steps": 5}),
    "photo": (DEVELOP, (), lambda: (RNG.integers(0, 256, (24, 36, 3)).astype(np.uint8),), {}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_examples_come_back(name: str) -> None:
    function, before, arguments, static = PROGRAMS[name]
    given = arguments()
    data = hg.export(function, *before, *given, **static).to_bytes()
    loaded = hg.load(data)
    assert loaded.to_bytes() == data
    again = hg.tree.map(lambda x: hg.tensor(np.array(x)) if isinstance(x, hg.Tensor) else x, given)  # what is donated is given once
    same(loaded(*given), function(*before, *again, **static))
