"""Index notation by lists of indices beside the operands, as NumPy takes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError

RNG = np.random.default_rng(0)
A, B, C = RNG.standard_normal((3, 5)), RNG.standard_normal((5, 4)), RNG.standard_normal((4, 4))
CALLS: list[Callable[..., Any]] = [
    lambda xp, a, b, c: xp.einsum(a, [0, 1], b, [1, 2]),
    lambda xp, a, b, c: xp.einsum(a, [0, 1], b, [1, 2], [2, 0]),
    lambda xp, a, b, c: xp.einsum(a, (7, 30), b, (30, 2)),
    lambda xp, a, b, c: xp.einsum(a, [50, 3], [3, 50]),
    lambda xp, a, b, c: xp.einsum(a, [26, 25]),
    lambda xp, a, b, c: xp.einsum(c, [0, 0]),
    lambda xp, a, b, c: xp.einsum(c, [0, 0], [0]),
    lambda xp, a, b, c: xp.einsum(c, [Ellipsis, 1], c, [1, Ellipsis]),
    lambda xp, a, b, c: xp.einsum(a, [..., 3], [3, ...]),
    lambda xp, a, b, c: xp.einsum(a, [0, 1], b, [1, 2], c, [2, 3], [0, 3], optimize="optimal"),
    lambda xp, a, b, c: xp.einsum(a, [0, 1], []),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("dynamic", [None, False, True])
def test_lists_of_indices(call: Callable[..., Any], dynamic: bool | None) -> None:
    f = (lambda a, b, c: call(hnp, a, b, c)) if dynamic is None else hg.jit(lambda a, b, c: call(hnp, a, b, c), dynamic=dynamic)
    np.testing.assert_allclose(f(A, B, C), call(np, A, B, C), rtol=1e-12)


def test_lists_of_indices_are_differentiated_and_have_a_path() -> None:
    gradient = hg.jit(hg.grad(lambda a: hnp.sum(hnp.einsum(a, [0, 1], B, [1, 2]) ** 2)))(A)
    np.testing.assert_allclose(gradient, 2 * (A @ B) @ B.T, rtol=1e-12)
    assert hnp.einsum_path(A, [0, 1], B, [1, 2], C, [2, 3])[0] == np.einsum_path(A, [0, 1], B, [1, 2], C, [2, 3])[0]


@pytest.mark.parametrize(
    "work",
    [
        lambda: hnp.einsum(A),
        lambda: hnp.einsum(A, [0, 52]),
        lambda: hnp.einsum(A, [0, -1]),
        lambda: hnp.einsum(A, [0, "i"]),
        lambda: hnp.einsum(A, 3),
        lambda: hnp.einsum(A, [0, 1], [2]),
    ],
)
def test_refused(work: Callable[[], Any]) -> None:
    with pytest.raises(ArgumentError, match="einsum"):
        work()
