"""Branch fusion: choices by one index become one, and only where neither needs what is made of the other outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.graph.pipeline import canonicalise
from hologram.ir.graph import Graph, bodies
from hologram.primitives.control import switch
from tests.support.comparing import same_canonically


def switches(graph: Graph) -> int:
    inside = (b.graph for n in graph.nodes() if n.op.kind == "control" for b in bodies(n))
    return sum(n.op is switch for n in graph.nodes()) + sum(map(switches, inside))


def fused(f: Callable[..., Any], *args: Any) -> int:
    """How many choices are left of those of ``f``."""
    return switches(canonicalise(hg.make_graph(f)(*args), "standard"))


def side_by_side(p: Any, x: Any) -> Any:
    return hg.cond(p, hnp.sin, hnp.cos, x) + hg.cond(p, hnp.exp, lambda x: x, x)


def in_turn(p: Any, x: Any) -> Any:
    y, z = hg.cond(p, lambda x: (x * 2, x + 1), lambda x: (x, x * 3), x)
    return hg.cond(p, lambda y, z: y * z, lambda y, z: y - z, y, z)


def outside(p: Any, x: Any) -> Any:
    """The second choice needs a sum that is no branch's own."""
    y = hg.cond(p, hnp.sin, hnp.cos, x)
    return hg.cond(p, lambda y, s: y * s, lambda y, s: y - s, y, hnp.cumsum(y).sum())


def other_index(p: Any, x: Any) -> Any:
    return hg.cond(p, hnp.sin, hnp.cos, x) + hg.cond(x[0] > 0, hnp.exp, lambda x: x, x)


@pytest.mark.parametrize(("f", "left"), [(side_by_side, 1), (in_turn, 1), (outside, 2), (other_index, 2)])
def test_choices_by_one_index_become_one(f: Any, left: int) -> None:
    x = np.linspace(-1, 2, 7)
    assert fused(f, True, x) == left
    for p in (True, False):
        same_canonically(f, [np.asarray(p), x])
        np.testing.assert_allclose(np.asarray(hg.jit(f)(p, x)), np.asarray(f(p, hnp.asarray(x))), rtol=1e-12)


def test_a_branch_and_its_derivative_are_one_choice() -> None:
    def f(p: Any, x: Any) -> Any:
        return hg.jvp(lambda x: hg.cond(p, lambda x: hnp.exp(hnp.sin(x)), lambda x: x, x), (x,), (x,))

    assert fused(f, True, np.ones(5)) == 1
    g = hg.value_and_grad(lambda x, p: hg.cond(p, lambda x: hnp.exp(hnp.sin(x)), lambda x: x, x).sum())
    assert fused(g, np.ones(5), True) <= 2  # one forward, one on the way back
