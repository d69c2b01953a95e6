"""Choices between an array and its update: which become updates that may be dropped, and which must not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.graph.pipeline import canonicalise

X, LONG = np.where(np.arange(300) % 3 == 0, -0.0, np.arange(300.0)), np.arange(300).repeat(200)


def chosen(p: Any, x: Any, i: Any) -> Any:
    return hnp.where(p, x.at[i].set(5.0).at[i + 1].add(1.0), x)


def otherwise(p: Any, x: Any, i: Any) -> Any:
    return hnp.where(p, x, x.at[i].multiply(3.0))


def read_elsewhere(p: Any, x: Any, i: Any) -> Any:
    y = x.at[i].set(5.0)
    return hnp.where(p, y, x) + y


def by_element(p: Any, x: Any, i: Any) -> Any:
    return hnp.where((x > 3) == p, x.at[i].set(5.0), x)


def another_array(p: Any, x: Any, i: Any) -> Any:
    return hnp.where(p, x.at[i].set(5.0), x + i)


def added_in_pieces(p: Any, x: Any, i: Any) -> Any:
    """Such a scatter adds 0 to what no update meets, and -0 + 0 is 0."""
    return hnp.where(p, x.at[LONG + i].add(1.0), x)


@pytest.mark.parametrize(
    ("f", "whole"), [(chosen, 0), (otherwise, 0), (read_elsewhere, 1), (by_element, 1), (another_array, 1), (added_in_pieces, 1)]
)
def test_selects_over_whole_arrays(f: Any, whole: int) -> None:
    graph = canonicalise(hg.make_graph(f)(True, X, 3), "exact")
    assert sum(n.op.name == "select" and n.shape == X.shape for n in graph.nodes()) == whole
    for p in (True, False):
        for i in (3, -1, 299):
            found, wanted = np.asarray(hg.jit(f)(p, X, i)), np.asarray(f(p, hnp.asarray(X), hnp.asarray(i)))
            np.testing.assert_array_equal(found, wanted)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


def test_examples_choose_for_themselves() -> None:
    p, xs, at = np.array([True, False, True]), np.stack([X, X + 1, X + 2]), np.array([1, 2, 299])
    graph = canonicalise(hg.make_graph(hg.vmap(chosen))(p, xs, at), "exact")
    assert not any(n.op.name == "select" and n.shape == xs.shape for n in graph.nodes())
    wanted = [np.asarray(chosen(bool(b), hnp.asarray(x), hnp.asarray(i))) for b, x, i in zip(p, xs, at, strict=True)]
    np.testing.assert_array_equal(np.asarray(hg.jit(hg.vmap(chosen))(p, xs, at)), np.stack(wanted))
