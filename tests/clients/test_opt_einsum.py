"""opt_einsum on Tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
from tests.support.runner.libraries import library

opt_einsum = library("opt_einsum")
A = np.random.default_rng(0).normal(size=(5, 4))


@pytest.mark.parametrize("subscripts", ["ij,kj->ik", "ij,ij->", "ij->j", "ij,kj,kl->il", "ij,kj,km,nm->in"])
@pytest.mark.parametrize("options", [{}, {"backend": "hologram"}])
def test_contractions(subscripts: str, options: dict[str, Any]) -> None:
    terms = subscripts.partition("->")[0].split(",")
    arrays = [A] * len(terms)
    found = opt_einsum.contract(subscripts, *map(hg.tensor, arrays), **options)
    assert type(found) is hg.Tensor
    np.testing.assert_allclose(np.asarray(found), np.einsum(subscripts, *arrays))


def test_expressions_with_constants_and_traces() -> None:
    expression = opt_einsum.contract_expression("ij,kj->ik", A, (5, 4), constants=[0])
    found = expression(hg.tensor(A), backend="hologram")
    assert type(found) is hg.Tensor
    np.testing.assert_allclose(np.asarray(found), A @ A.T)
    traced = hg.jit(lambda x: opt_einsum.contract("ij,kj,kl->il", x, x, x, backend="hologram"))(A)
    np.testing.assert_allclose(np.asarray(traced), A @ A.T @ A)
