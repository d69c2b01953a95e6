"""Updates of elements that are known: selects where the array is computed or read as a whole, scatters that touch a window elsewhere."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes
from hologram.graph.canonical.constant_windows import select_windows
from hologram.graph.pipeline import canonicalise
from hologram.ir.interpreter import evaluate
from tests.support.building import Draft
from tests.support.optable import assert_agree, rows, seeded, tame_values

X = seeded("constant windows").standard_normal((40, 30))


def canonical(f: Any, *args: Any) -> str:
    return hg.jit(f).lower(*(args or (X,))).as_text("canonical")


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.at[3].set(1.0),
        lambda x: x.at[3, 2:4].add(1.0),
        lambda x: x.at[0].set(x[-1]).at[-1].set(x[0]),
        lambda x: hg.fori_loop(0, 9, lambda i, x: x.at[2, 5].set(x[2, 4] + 1), x),
        lambda x: hg.cond(x[0, 0] > 0, lambda x: x.at[2].set(0.0), lambda x: x, x),
    ],
)
def test_what_is_left_alone_is_not_touched(f: Any) -> None:
    text = canonical(f)
    assert "scatter" in text and "pad" not in text
    np.testing.assert_array_equal(hg.jit(f)(X).numpy(), f(hnp.asarray(X)).numpy())


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (2 * x).at[3].set(1.0),
        lambda x: x.at[3].set(1.0) * 2,
        lambda x: x.at[3].set(1.0).sum(),
        lambda x: x.at[1:-1].set(x[2:] - x[:-2]),
        lambda x: x[:5].at[0].add(1.0),
        lambda x: x.at[3].set(1.0)[1:] + 0.5,
        lambda x: hg.fori_loop(0, 9, lambda i, x: (x / 2).at[0].set(1.0), x),
        lambda x: hnp.zeros((40, 30)).at[2].set(x[0]),
    ],
)
def test_what_is_computed_anyway_is_selected(f: Any) -> None:
    text = canonical(f)
    assert "scatter" not in text
    np.testing.assert_allclose(hg.jit(f)(X).numpy(), f(hnp.asarray(X)).numpy())


@given(st.sampled_from(rows("scatter")), st.sampled_from(["int32", "float32", "float64"]), st.data())
def test_both_forms_mean_the_same(row: Any, dtype: str, data: Any) -> None:
    shape = (4, 9)
    size, batch = data.draw(st.tuples(st.integers(0, 4), st.integers(0, 9))), data.draw(st.integers(0, 1))
    axes = (1,) if batch else data.draw(st.sampled_from([(0,), (1,), (0, 1)]))
    window = tuple(size[a] if a in axes else n for a, n in enumerate(shape) if a >= batch)
    starts = [data.draw(st.integers(-1, shape[a] - window[a - batch] + 1)) for a in axes]
    rng = seeded(dtype, starts, size)
    d = Draft()
    nodes = d.input(*shape, dtype=dtype), d.input(*shape[:batch], *window, dtype=dtype)
    arrays = [tame_values(dtypes.of(dtype), int(np.prod(x.shape)), rng).reshape(x.shape) for x in nodes]
    at = [d.spread(d.const(s, "int64"), shape[:batch]) if batch else d.const(s, "int64") for s in starts]
    graph = d.graph(d("mul", d(row.name, *nodes, *at, axes, batch), d.const(2, dtype)))
    found = select_windows(graph, count := Counter[str]())
    inside = all(0 <= s <= shape[a] - window[a - batch] for s, a in zip(starts, axes, strict=True))
    assert (count["select-windows"] == 1) == inside
    for other in (found, canonicalise(graph, "exact")):
        assert_agree((row, (axes, batch), arrays), evaluate(other, arrays)[0], evaluate(graph, arrays)[0])
