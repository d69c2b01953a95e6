"""Staged rows: rows come from memory once, by all items of a group, and results keep their bits."""

from __future__ import annotations

import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hologram.backends.c.dialects import DIALECTS
from hologram.backends.c.source import Program
from hologram.graph.pipeline import compile_to_plan
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate
from hologram.ir.node import Node
from tests.support.building import Draft, kernels, layer_norm, softmax
from tests.support.devices.c_harness import run
from tests.support.needs import needs_compilers
from tests.support.optable import mismatch, seeded

LENGTHS = st.one_of(st.integers(1, 9000), st.sampled_from([32, 128, 1024, 3072, 3073, 3076, 4096, 6144, 6148, 8192]))


def _masked(d: Draft, x: Node) -> Node:
    """Rows of which a part counts: the mask is read beside the row."""
    mask = d.spread(d.input(x.shape[1], dtype="bool"), x.shape, 1)
    return softmax(d, d("select", mask, x, d.spread(d.const(-1e30), x.shape)))


def _narrow(d: Draft, x: Node, dtype: str) -> Node:
    return d("cast", softmax(d, d("cast", d.input(*x.shape, dtype=dtype), "float32")), dtype)


def _several(d: Draft, x: Node) -> Node:
    """A sum, a position and a sum of roots, all over rows, and then the rows again."""
    first = d("add", d.over_rows("reduce_sum", x), d.over_rows("reduce_sum", d("sqrt", d("abs", x))))
    return d("sub", d("mul", x, first), d("cast", d.spread(d("argmax", x, 1), x.shape, 0), "float32"))


def _part(d: Draft, x: Node) -> Node:
    """Rows that begin off a vector's edge."""
    wide = d.input(x.shape[0], x.shape[1] + 3)
    return layer_norm(d, d.part(wide, 1, 1, x.shape[1] + 1), d.input(x.shape[1]), d.input(x.shape[1]))


def _whole(d: Draft, x: Node) -> Node:
    """One result for a whole array."""
    return d("reduce_sum", d("square", d("sub", x, d.over_rows("reduce_max", x))), (0, 1))


BODIES = {
    "softmax": softmax,
    "layer_norm": lambda d, x: layer_norm(d, x, d.input(x.shape[1]), d.input(x.shape[1])),
    "masked": _masked,
    "bfloat16": lambda d, x: _narrow(d, x, "bfloat16"),
    "float16": lambda d, x: _narrow(d, x, "float16"),
    "several": _several,
    "part": _part,
    "whole": _whole,
}


def _values(x: Node, rng: np.random.Generator) -> np.ndarray:
    if x.dtype.kind == "b":
        return rng.integers(0, 2, x.shape).astype(np.bool_)
    return rng.standard_normal(x.shape).astype(x.dtype.np)


def _run(graph: Graph, arrays: list[np.ndarray], folder: Path) -> list[np.ndarray]:
    return run(compile_to_plan(graph, "exact"), arrays, Path(tempfile.mkdtemp(dir=folder)), dialect="cuda")


def _unstaged(graph: Graph, arrays: list[np.ndarray], folder: Path) -> list[np.ndarray]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(DIALECTS, "cuda", replace(DIALECTS["cuda"], staged_bytes=0))
        return _run(graph, arrays, folder)


@needs_compilers
@pytest.mark.parametrize("name", BODIES)
def test_bits_stay(name: str, tmp_path: Path, everything: bool) -> None:
    @settings(max_examples=20 if everything else 2)
    @given(st.lists(LENGTHS, min_size=2, max_size=3, unique=True))
    def check(lengths: list[int]) -> None:
        d, rng = Draft(), seeded(f"{name}{lengths}")
        graph = d.graph(*[BODIES[name](d, d.input(rows, n)) for rows, n in zip((5, 2, 1), lengths, strict=False)])
        arrays = [_values(x, rng) for x in graph.inputs]
        got = _run(graph, arrays, tmp_path)
        for g, other, w in zip(got, _unstaged(graph, arrays, tmp_path), evaluate(graph, arrays), strict=True):
            assert g.tobytes() == other.tobytes()
            if name in ("layer_norm", "part", "several", "whole"):  # the others take exp, which the reference rounds in its own way
                assert not mismatch(g, w, 0).any()

    check()


def _text(make: Any, *shape: int, dtype: str = "float32") -> str:
    d = Draft()
    x = d.input(*shape, dtype=dtype)
    return Program(kernels(d.schedule(make(d, x if dtype == "float32" else d("cast", x, "float32")))), "cuda", "exact").text


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("shape", [(64, 1024), (64, 3072), (64, 4096), (64, 4099)])
@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
def test_a_row_is_read_once(name: str, shape: tuple[int, int], dtype: str) -> None:
    text = _text(BODIES[name], *shape, dtype=dtype)
    branches = 1 if shape[1] % 8 == 0 else 2  # of which an item takes one: whole vectors, and what is left of a row
    assert len(re.findall(r"\(b0 \+|\bb0\[", text)) == branches


def test_groups_have_the_items_that_elements_want() -> None:
    d = Draft()
    for n, width, items in ((1024, 32, 192), (4096, 256, 256)):
        (k,) = kernels(d.schedule(softmax(d, d.input(64, n))))
        (mapping,) = Program([k], "cuda").mappings.values()
        assert (mapping.width, mapping.items) == (width, items) and mapping.local <= DIALECTS["cuda"].local_bytes


def test_rows_that_are_read_once_or_do_not_fit_stay() -> None:
    d = Draft()
    for out in (d("reduce_sum", d.input(64, 4096), (1,)), layer_norm(d, d.input(8, 20_000), d.input(20_000), d.input(20_000))):
        text = Program(kernels(d.schedule(out)), "cuda", "exact").text
        assert "row0" not in text
