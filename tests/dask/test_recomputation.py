"""``hologram.dask``: what ``fuse(recompute=True)`` computes again has the same values, and no large block waits for its second use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from dask.callbacks import Callback

import hologram as hg
from tests.support.runner.libraries import library

pytestmark = pytest.mark.filterwarnings("ignore::hologram.errors.FallbackWarning")  # for NumPy's functions that Dask calls on blocks
dask = library("dask")
da = library("dask.array")

ROWS, COLUMNS, BLOCKS = 32, 16, 6


def source(made: list[Any], tensors: bool = True) -> Any:
    """An array whose blocks are made by a function, which leaves a note in ``made``."""

    def block(block_info: Any = None) -> Any:
        place = block_info[None]["chunk-location"][0]
        made.append(place)
        return np.random.default_rng(place).normal(size=block_info[None]["chunk-shape"])

    array = da.map_blocks(block, chunks=((ROWS,) * BLOCKS, (COLUMNS,)), dtype=np.float64, meta=np.empty((0, 0)))
    return array.map_blocks(hg.asarray, meta=hg.tensor(np.empty((0, 0)))) if tensors else array


def iterated(x: Any) -> Any:
    for _ in range(4):
        x = (x - x.mean(axis=0)) * 0.9 + np.sin(x)
    return x.sum()


PROGRAMS: dict[str, tuple[Callable[[Any], Any], int]] = {  # and how often it makes each block
    "mean": (lambda x: x.mean(axis=0), 1),
    "centred": (lambda x: (x - x.mean(axis=0)).sum(), 2),
    "standardised": (lambda x: abs((x - x.mean(axis=0)) / x.std(axis=0)).sum(), 3),
    "product": (lambda x: (lambda z: z.T @ z)(np.tanh(x - x.mean(axis=0))), 2),
    "singular values": (lambda x: da.linalg.svd(np.tanh(x) + 0.1)[1], 1),
    "diamonds": (lambda x: (lambda y, z: (y * z + y / (1 + z * z)).sum())(np.sin(x), np.cos(x)), 1),
    "iterated": (iterated, 5),
    "two results of one array": (lambda x: da.stack([x.sum(axis=0), x.max(axis=0)]), 2),
    "blocks are rearranged": (lambda x: x[5:].sum() + x.sum(), 1),
    "reductions of reductions": (lambda x: (lambda s: (s / s.max()).sum() + s.min())(x.sum(axis=1)), 1),
}


@pytest.mark.costly(2)
@pytest.mark.parametrize("tensors", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_the_same(name: str, tensors: bool) -> None:
    program, times = PROGRAMS[name]
    wanted = program(source([], False)).compute(scheduler="sync")
    made: list[Any] = []
    found = hg.dask.fuse(program(source(made, tensors)), recompute=True)
    made.clear()
    np.testing.assert_allclose(np.asarray(found.compute(scheduler="sync")), wanted, rtol=1e-10, atol=1e-10)
    assert sorted(made) == sorted(list(range(BLOCKS)) * times)


class _Held(Callback):
    """The most bytes that results of tasks take at one time."""

    def __init__(self) -> None:
        super().__init__(posttask=self.look)
        self.most = 0

    def look(self, key: Any, result: Any, dsk: Any, state: Any, worker: Any) -> None:
        self.most = max(self.most, sum(x.nbytes for x in state["cache"].values() if hasattr(x, "nbytes")))


@pytest.mark.parametrize("name", ["centred", "standardised", "product", "iterated"])
def test_large_blocks_are_not_kept(name: str) -> None:
    array = PROGRAMS[name][0](source([]))
    held = {}
    for recompute in (False, True):
        with _Held() as watch:
            hg.dask.fuse(array, recompute=recompute).compute(scheduler="sync")
        held[recompute] = watch.most
    block = ROWS * COLUMNS * 8
    assert held[False] >= BLOCKS * block
    assert held[True] < 4 * block


def test_results_keep_their_names() -> None:
    made: list[Any] = []
    x = source(made)
    total = (x - x.mean(axis=0)).sum()
    both = hg.dask.fuse(x, total, recompute=True)
    assert [a.name for a in both] == [x.name, total.name]
    made.clear()
    values = dask.compute(*both, scheduler="sync")
    assert len(made) == BLOCKS  # what is a result is kept anyway
    assert abs(float(values[1])) < 1e-9 and values[0].shape == (ROWS * BLOCKS, COLUMNS)


def test_the_optimiser_recomputes() -> None:
    made: list[Any] = []
    array = PROGRAMS["centred"][0](source(made))
    made.clear()
    with dask.config.set(array_optimize=lambda *args, **options: hg.dask.optimize(*args, recompute=True, **options)):
        array.compute(scheduler="sync")
    assert len(made) == 2 * BLOCKS
