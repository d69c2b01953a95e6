"""Comparing results with what is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import hologram as hg
from hologram import tree
from hologram.graph.pipeline import canonicalise
from hologram.graph.verify_graph import verify_graph
from hologram.ir.interpreter import evaluate
from tests.support.optable import mismatch


def close(got: Any, want: Any, rtol: float = 1e-6, atol: float = 1e-7) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=rtol, atol=atol)


def same_canonically(f: Callable[..., Any], args: list[np.ndarray]) -> None:
    """By the reference, the canonical graph gives what the traced one does: bit for bit in ``exact``, else nearly."""
    graph = hg.make_graph(f)(*args)
    want = evaluate(graph, args)
    for precision in ("exact", "standard"):
        canonical = canonicalise(graph, precision)
        verify_graph(canonical)
        for a, b in zip(evaluate(canonical, args), want, strict=True):
            if precision == "exact":
                np.testing.assert_array_equal(a, b)
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


def same_values(f: Callable[..., Any], *args: Any, exact: bool = True) -> None:
    """``f`` has the reference's values: in ``exact``, unless its functions round, its bits; before and after canonical reduction, and compiled."""
    graph = hg.make_graph(f)(*args)
    leaves = [np.asarray(a) for a in hg.tree.leaves(args)]
    want = evaluate(graph, leaves)
    for precision in ("exact", "standard", "fast"):
        canonical = canonicalise(graph, precision)
        verify_graph(canonical)
        assert str(canonicalise(canonical, precision)) == str(canonical)
        compiled = [np.asarray(x) for x in hg.tree.leaves(hg.jit(f, precision=precision)(*args))]
        for got in (evaluate(canonical, leaves), compiled):
            for a, b in zip(got, want, strict=True):
                if precision == "exact" and exact:
                    np.testing.assert_array_equal(a, b)
                np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3 * max(1.0, float(np.abs(b).max(initial=0))))


def same(got: Any, want: Any) -> None:
    """Equal structures of equal bits."""
    assert tree.structure(got) == tree.structure(want)
    for g, w in zip(tree.leaves(got), tree.leaves(want), strict=True):
        g, w = np.asarray(g), np.asarray(w)
        assert g.dtype == w.dtype and g.shape == w.shape
        assert not mismatch(g, w, 0).any()


def differences(f: Callable[[np.ndarray], Any], x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """The gradient of a function with one scalar result, by central differences in float64."""
    found = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        moved = np.zeros_like(x)
        moved[at] = step
        found[at] = (float(f(x + moved)) - float(f(x - moved))) / (2 * step)
    return found
