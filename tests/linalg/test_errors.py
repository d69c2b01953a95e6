"""hologram.linalg: errors name the function, what is wrong and the user's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, DifferentiationError, DTypeError, ShapeError

la = hg.linalg

ERRORS: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: la.inv(np.ones((2, 3))), ShapeError, r"inv takes square matrices, not shape \[2, 3\]"),
    (lambda: la.cholesky(np.ones(3)), ShapeError, "cholesky takes matrices"),
    (lambda: la.solve(np.eye(3), np.ones((2, 2))), ShapeError, "a right side of 2 rows"),
    (lambda: la.solve(np.eye(3), 1.0), ShapeError, "the right side is a scalar"),
    (lambda: la.svd(np.ones((2, 2), np.float16)), DTypeError, "svd does not take float16: cast to float32"),
    (lambda: la.qr(np.ones((2, 2)), mode="raw"), ArgumentError, "mode is 'reduced' or 'complete' or 'r', not 'raw'"),
    (lambda: la.matrix_norm(np.ones((2, 2)), ord=3), ArgumentError, "no order 3"),
    (lambda: la.vector_norm(np.ones(2), ord="fro"), ArgumentError, "the order is a number"),
    (lambda: la.norm(np.ones((2, 2, 2)), 2), ShapeError, "3 axes"),
    (lambda: la.matrix_power(np.eye(2), 0.5), ArgumentError, "an integer, not float"),  # type: ignore[arg-type]
    (lambda: la.cross(np.ones(2), np.ones(2)), ShapeError, "vectors of three components"),
    (lambda: la.outer(np.ones((2, 2)), np.ones(2)), ShapeError, "outer takes vectors"),
    (lambda: la.matrix_rank(np.eye(2), rtol=0.1, tol=0.1), ArgumentError, "two thresholds"),
    (lambda: la.pinv(np.eye(2), rtol=0.1, rcond=0.1), ArgumentError, "two names"),
    (lambda: la.multi_dot([np.eye(2)]), ArgumentError, "at least two"),
    (lambda: la.multi_dot([np.eye(2), np.ones(2), np.eye(2)]), ShapeError, "between two ends"),
    (lambda: la.lstsq(np.eye(3), np.ones(2)), ShapeError, "one matrix and its right sides"),
    (lambda: hg.grad(lambda x: hnp.sum(la.svd(x).U))(np.ones((3, 2))), DifferentiationError, "full_matrices=True has no derivative"),
    (lambda: hg.grad(lambda x: hnp.sum(la.qr(x, mode="complete").Q))(np.ones((3, 2))), DifferentiationError, "mode='complete' has no derivative"),
]


@pytest.mark.parametrize(("act", "kind", "message"), ERRORS)
def test_error(act: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        act()
    assert "test_errors.py" in str(caught.value)
