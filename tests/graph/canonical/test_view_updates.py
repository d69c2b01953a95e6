"""Updates of views: which become updates of the arrays, and values beside NumPy's, whatever the starts."""

from __future__ import annotations

from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import hologram as hg
from hologram import numpy as hnp
from hologram.graph.pipeline import canonicalise
from tests.support.optable import seeded

X = seeded("updates of views").standard_normal((4, 12, 6))
ROW, PART = np.arange(6.0), np.arange(48.0).reshape(4, 2, 6)


def layer(x: Any, i: Any) -> Any:
    return x.at[2].set(x[2].at[i].set(ROW))


def first_rows(x: Any, i: Any) -> Any:
    return x.at[:, :8].set(x[:, :8].at[:, i].add(ROW))


def inner_block(x: Any, i: Any) -> Any:
    """A window of several elements, of which none is written where it does not lie in the block."""
    block = x[1:3, 2:9, 1:5]
    return x.at[1:3, 2:9, 1:5].set(hnp.dynamic_update_slice(block, hnp.ones((2, 3, 2)), (0, i, 1)))


def transposed(x: Any, i: Any) -> Any:
    return hnp.permute_dims(hnp.permute_dims(x, (1, 2, 0)).at[i].set(ROW[:, None]), (2, 0, 1))


def layer_of_transposed(x: Any, i: Any) -> Any:
    turned = hnp.permute_dims(x, (0, 2, 1))
    return hnp.permute_dims(turned.at[1].set(turned[1].at[:, i].multiply(ROW)), (0, 2, 1))


def two_layers(x: Any, i: Any) -> Any:
    x = x.at[0].set(x[0].at[i].set(ROW))
    return x.at[1].set(x[1].at[i].set(ROW * 2))


def beside_ones(x: Any, i: Any) -> Any:
    turned = hnp.permute_dims(x, (1, 0, 2))[None, :, None]
    return hnp.permute_dims(turned.at[:, i].set(ROW)[0, :, 0], (1, 0, 2))


def part_beside_ones(x: Any, i: Any) -> Any:
    wide = x[None]
    return wide.at[:, :, :8].set(wide[:, :, :8].at[:, :, i].set(ROW))[0]


FORMS = [part_beside_ones, layer, first_rows, inner_block, transposed, layer_of_transposed, beside_ones, two_layers]


@pytest.mark.parametrize("form", FORMS)
def test_scatters_are_to_the_array(form: Any) -> None:
    traced = hg.jit(form).lower(X, np.int64(3)).graph
    nodes = canonicalise(traced, "standard").nodes()
    scatters = [n for n in nodes if n.op.kind == "scatter"]
    assert scatters and all(n.shape == X.shape for n in scatters) and not any(n.op.name in ("transpose", "pad") for n in nodes)


@pytest.mark.parametrize("form", FORMS)
@hypothesis.given(index=st.integers(-20, 20))
def test_values(form: Any, index: int) -> None:
    """As without the pass, for starts outside of the view too."""
    with hg.settings.override(disabled_passes=("view_updates",)):
        want = np.asarray(hg.jit(form)(X, np.int64(index)))
    np.testing.assert_array_equal(np.asarray(hg.jit(form)(X, np.int64(index))), want)


def test_other_readers_read_the_view_of_the_updated_array() -> None:
    def both(x: Any, i: Any) -> Any:
        part = x[2].at[i].set(ROW)
        return x.at[2].set(part), part * 2, hnp.sum(x)

    whole, part, total = hg.jit(both)(X, np.int64(5))
    want = X.copy()
    want[2, 5] = ROW
    np.testing.assert_array_equal(np.asarray(whole), want)
    np.testing.assert_array_equal(np.asarray(part), want[2] * 2)
    np.testing.assert_allclose(np.asarray(total), X.sum())


def test_views_of_other_arrays_stay() -> None:
    def other(x: Any, y: Any, i: Any) -> Any:
        return x.at[2].set(y[2].at[i].set(ROW)), x.at[1].set(x[2].at[i].set(ROW))

    found = hg.jit(other)(X, X + 1, np.int64(5))
    want = np.array([X, X])
    want[0, 2], want[1, 1] = X[2] + 1, X[2]
    want[0, 2, 5] = want[1, 1, 5] = ROW
    for got, w in zip(found, want, strict=True):
        np.testing.assert_array_equal(np.asarray(got), w)
