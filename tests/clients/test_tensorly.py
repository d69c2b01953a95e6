"""TensorLy's decompositions on Tensors: what they give on arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hologram as hg
from tests.support.runner.libraries import library

tl = library("tensorly")
decomposition, tenalg = library("tensorly.decomposition"), library("tensorly.tenalg")

R = np.random.default_rng(0)
A, M = R.normal(size=(6, 7, 8)), R.normal(size=(5, 7))
CASES: dict[str, Callable[[Any], Any]] = {
    "parafac": lambda x: tl.cp_to_tensor(decomposition.parafac(x, 3, init="svd", n_iter_max=8)),
    "line search": lambda x: tl.cp_to_tensor(decomposition.parafac(x, 3, init="svd", n_iter_max=8, linesearch=True, normalize_factors=True)),
    "non-negative": lambda x: tl.cp_to_tensor(decomposition.non_negative_parafac(abs(x), 3, init="svd", n_iter_max=5)),
    "tucker": lambda x: tl.tucker_to_tensor(decomposition.tucker(x, [3, 3, 3], n_iter_max=5)),
    "train": lambda x: tl.tt_to_tensor(decomposition.tensor_train(x, [1, 3, 4, 1])),
    "ring": lambda x: tl.tr_to_tensor(decomposition.tensor_ring(x, [2, 3, 2, 2])),
    "robust": lambda x: decomposition.robust_pca(x, n_iter_max=5)[0],
    "unfold": lambda x: tl.fold(tl.unfold(x, 1), 1, (6, 7, 8)),
    "mode product": lambda x: tenalg.mode_dot(x, tl.tensor(M), 1),
    "kronecker": lambda x: tenalg.kronecker([x[0], x[1]]),
    "khatri-rao": lambda x: tenalg.khatri_rao([x[0], x[1, :4]]),
    "svd": lambda x: tenalg.svd_interface(x[0], n_eigenvecs=3)[1],
    "norms": lambda x: tl.norm(x, 1, axis=0) + tl.norm(x, 2),
    "update": lambda x: tl.index_update(x, tl.index[0, :2], 0.0),
    "functions": lambda x: tl.digamma(abs(x)) + tl.logsumexp(tl.clip(x, -1, 1), 0) + tl.copy(x),
}


@pytest.fixture(autouse=True)
def numpy_afterwards() -> Iterator[None]:
    yield
    tl.set_backend("numpy")


@pytest.mark.costly(3)
@pytest.mark.parametrize("name", CASES)
def test_decompositions(name: str) -> None:
    tl.set_backend("numpy")
    wanted = CASES[name](tl.tensor(A))
    tl.set_backend("hologram")
    found = CASES[name](tl.tensor(A))
    assert type(found) is hg.Tensor
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)
    assert type(tl.to_numpy(found)) is np.ndarray


def test_gradient_of_a_reconstruction() -> None:
    tl.set_backend("hologram")
    weights, factors = decomposition.parafac(tl.tensor(A), 2, init="svd", n_iter_max=3)
    loss = hg.jit(lambda factors: tl.norm(tl.cp_to_tensor((weights, factors)) - A, 2) ** 2)
    slope = hg.jit(hg.grad(loss))(factors)[0]
    error = tl.to_numpy(tl.cp_to_tensor((weights, factors))) - A
    others = np.einsum("jr,kr->jkr", *(np.asarray(f) for f in factors[1:]))
    np.testing.assert_allclose(slope, 2 * np.einsum("ijk,jkr->ir", error, others), rtol=1e-9)


def test_its_types_and_names() -> None:
    tl.set_backend("hologram")
    assert tl.get_backend() == "hologram" and tl.context(tl.tensor(A, dtype=tl.float32)) == {"dtype": np.dtype("float32")}
    assert tl.is_tensor(tl.tensor(A)) and not tl.is_tensor(A) and tl.ndim(tl.tensor(A)) == 3
