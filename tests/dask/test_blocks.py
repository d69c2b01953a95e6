"""Functions of layers as they travel: a pickle of one, read twice, is one function."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import hologram as hg
from hologram.support.lru_cache import Recent
from tests.support.runner.libraries import library

dask = library("dask")
da = library("dask.array")
tokenize = library("dask.base").tokenize


def source() -> Any:
    """An array whose blocks are there, so that functions of layers take blocks alone."""
    return da.from_array(hg.tensor(np.ones((8, 4))), chunks=(4, 4)).persist(scheduler="sync")


def compiled(array: Any) -> Any:
    from hologram.dask.blocks import CompiledLayer

    with dask.config.set({"optimization.fuse.active": False}):  # into larger tasks
        graph = hg.dask.fuse(array).__dask_graph__()
    tasks = {id(f): f for node in dict(graph).values() if isinstance(f := getattr(node, "func", None), CompiledLayer)}
    (found,) = tasks.values()  # one function for all blocks
    return found


def test_pickles_of_one_function_are_one_function() -> None:
    d = source()
    function = compiled(d * 2 + 1)
    text = pickle.dumps(function)
    assert pickle.loads(text) is pickle.loads(text) is function
    assert tokenize(function) == tokenize(pickle.loads(text))


def test_functions_of_closures_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = hg.tensor(np.arange(4.0))
    d = source()
    function = compiled(d.map_blocks(lambda b: b * weights, meta=d._meta))
    text = pickle.dumps(function)
    monkeypatch.setattr("hologram.dask.blocks._restored", Recent(4))
    restored = pickle.loads(text)
    assert restored is not function
    np.testing.assert_array_equal(np.asarray(restored(hg.tensor(np.ones((4, 4))))), np.arange(4.0) * np.ones((4, 4)))
