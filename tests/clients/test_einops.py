"""einops on Tensors, inside and outside of traces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from tests.support.runner.libraries import library

einops = library("einops")
A = np.random.default_rng(0).normal(size=(12, 8))
CASES: dict[str, Callable[[Any], Any]] = {
    "rearrange": lambda x: einops.rearrange(x, "(a b) c -> a c b", a=3),
    "ellipsis": lambda x: einops.rearrange(x.reshape(3, 4, 8), "... c -> c ..."),
    "list": lambda x: einops.rearrange([x, 2 * x], "n a b -> a n b"),
    "mean": lambda x: einops.reduce(x, "(a b) c -> a c", "mean", a=3),
    "max": lambda x: einops.reduce(x, "a b -> b", "max"),
    "prod": lambda x: einops.reduce(x, "a b -> 1 b", "prod"),
    "any": lambda x: einops.reduce(x > 1, "a b -> a", "any"),
    "repeat": lambda x: einops.repeat(x, "a b -> a c b", c=3),
    "einsum": lambda x: einops.einsum(x, x, "a b, c b -> a c"),
    "pack": lambda x: einops.pack([x, x[0]], "* b")[0],
    "unpack": lambda x: einops.unpack(x, [[4], [2, 4]], "* b")[1],
}


@pytest.mark.parametrize("name", CASES)
def test_einops_gives_what_it_gives_for_arrays(name: str) -> None:
    for found in (CASES[name](hg.tensor(A)), hg.jit(CASES[name])(A)):
        assert type(found) is hg.Tensor
        np.testing.assert_allclose(np.asarray(found), CASES[name](A))


def test_einops_under_transforms() -> None:
    gradient = hg.grad(lambda x: einops.reduce(x**2, "a b ->", "sum"))(A)
    np.testing.assert_allclose(np.asarray(gradient), 2 * A)
    stretched = hg.vmap(lambda x: einops.repeat(x, "a -> a b", b=2))(A)
    np.testing.assert_array_equal(np.asarray(stretched), np.repeat(A[:, :, None], 2, 2))


def test_values_and_types() -> None:
    x = hnp.asarray(A)
    assert type(einops.asnumpy(x)) is np.ndarray
    assert einops.parse_shape(x, "a _") == {"a": 12}
    with pytest.raises(NotImplementedError, match="reduce_mean is not available for non-floating"):
        einops.reduce(hnp.arange(6), "a ->", "mean")
