"""Chains of pending ops beyond the length at which they are computed: whatever op is the one too many gives what it gives after one op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.primitives.scalar.elementwise import add, neg
from hologram.trace import tree
from hologram.trace.operators import CUT_DEPTH, DEPTH_LIMIT, binary_operator, unary_operator

pytestmark = pytest.mark.costly(2)

A = np.arange(6.0).reshape(2, 3)
LONG = (DEPTH_LIMIT, CUT_DEPTH + 64)
OPS: dict[str, Callable[[Any], Any]] = {
    "T": lambda x: x.T, "reshape": lambda x: x.reshape(3, 2), "ravel": lambda x: x.ravel(), "slice": lambda x: x[::-1], "column": lambda x: x[:, 1],
    "element": lambda x: x[0, 1], "row": lambda x: x[-1], "indices": lambda x: x[[1, 0]], "new axis": lambda x: x[None, ..., None],
    "flip": hnp.flip, "rot90": hnp.rot90, "swapaxes": lambda x: hnp.swapaxes(x, 0, 1), "moveaxis": lambda x: hnp.moveaxis(x, 0, -1),
    "expand_dims": lambda x: hnp.expand_dims(x, 0), "squeeze": lambda x: hnp.squeeze(x[:1]), "diagonal": hnp.diagonal, "iter": lambda x: list(x),
    "broadcast_to": lambda x: hnp.broadcast_to(x, (2, 2, 3)), "broadcast_arrays": lambda x: hnp.broadcast_arrays(x, x[:1]),
    "split": lambda x: hnp.split(x, 3, 1), "unstack": hnp.unstack, "einsum": lambda x: hnp.einsum("ij->ji", x), "imag": lambda x: hnp.imag(x * 1j),
    "atleast_3d": hnp.atleast_3d, "meshgrid": lambda x: hnp.meshgrid(x[0], x[1]), "sum": lambda x: x.sum(0), "sort": lambda x: hnp.sort(-x),
    "concat": lambda x: hnp.concat([x, x]), "where": lambda x: hnp.where(x > 1, x, 0), "at": lambda x: x.at[0].set(1), "matmul": lambda x: x @ x.T,
    "windows": lambda x: hnp.lib.stride_tricks.sliding_window_view(x, 2, 1), "roll": lambda x: hnp.roll(x, 1), "qr": hnp.linalg.qr,
    "an op met first": lambda x: unary_operator(neg)(x), "two operands met first": lambda x: binary_operator(add)(x, x),
    "loop": lambda x: hg.fori_loop(0, 2, lambda i, c: c + i, x),
}  # fmt: skip


@pytest.mark.costly(2)
@pytest.mark.parametrize("name", OPS)
def test_any_op_may_be_the_one_too_many(name: str) -> None:
    f = OPS[name]
    for depth in [n + ahead for n in LONG for ahead in range(-2, 2)]:
        x = hg.tensor(A)
        for _ in range(depth):
            x = x + 0.0
        for found, wanted in zip(tree.leaves(f(x)), tree.leaves(f(hg.tensor(A))), strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_views_of_long_chains_are_views() -> None:
    for depth in [n + ahead for n in LONG for ahead in range(-2, 2)]:
        x = hg.tensor(A)
        for _ in range(depth):
            x = x + 0.0
        x.T[2] = 7.0
        x[:, 1][0] = 9.0
        np.testing.assert_array_equal(x, [[0, 9, 7], [3, 4, 7]])
