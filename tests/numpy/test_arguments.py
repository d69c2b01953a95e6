"""Arguments that NumPy's functions share: ``where`` and ``initial`` of reductions, ``axis1`` and ``axis2``, and what may be given by position."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, ShapeError
from tests.support.optable import seeded

RNG = seeded("arguments")
X = RNG.normal(size=(3, 4))
CUBE = RNG.normal(size=(2, 3, 4))
MASK = RNG.random((3, 4)) > 0.4
AXES = [{}, {"axis": 0}, {"axis": 1, "keepdims": True}, {"axis": (0, 1)}]


def agree(f: Callable[[Any, Any], Any], *arrays: Any) -> None:
    """``hologram.numpy``'s result is NumPy's, and so is NumPy's function's of Tensors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy warns of means of nothing
        want = f(np, arrays)
    for xp, given in ((hnp, arrays), (np, [hg.tensor(a) for a in arrays])):
        got = f(xp, given)
        assert got.shape == want.shape
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, err_msg=xp.__name__)


@pytest.mark.crossed
@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("mask", [MASK, MASK[0], np.zeros((3, 4), bool)], ids=["whole", "broadcast", "nothing"])
@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "std", "any", "all"])
def test_where(name: str, mask: np.ndarray, axes: dict[str, Any]) -> None:
    agree(lambda xp, a: getattr(xp, name)(a[0], where=mask, **axes), X)


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_initial(name: str, axes: dict[str, Any]) -> None:
    agree(lambda xp, a: getattr(xp, name)(a[0], initial=0.3, where=MASK, **axes), X)
    agree(lambda xp, a: getattr(xp, name)(a[0], initial=0.3, **axes), X[:0])


def test_types_stay() -> None:
    assert hnp.mean(X.astype(np.float16), where=MASK).dtype == np.float16
    assert hnp.sum(np.ones(3, np.int32), where=[True, False, True], initial=2).item() == 4
    assert hnp.max(np.ones(3, np.int8), initial=2).dtype == np.int8


def test_derivatives_are_of_what_is_included() -> None:
    np.testing.assert_allclose(hg.grad(lambda x: hnp.mean(x, where=MASK))(X).numpy(), MASK / MASK.sum(), rtol=1e-12)


@pytest.mark.parametrize("offset", [-1, 0, 2, 9])
@pytest.mark.parametrize("axes", [(), (1, 2), (2, 0), (-1, 0)], ids=str)
def test_diagonals_of_any_two_axes(axes: tuple[int, ...], offset: int) -> None:
    agree(lambda xp, a: xp.diagonal(a[0], offset, *axes), CUBE)
    agree(lambda xp, a: xp.trace(a[0], offset, *axes), CUBE)
    np.testing.assert_array_equal(hg.linalg.diagonal(CUBE, offset=offset), np.linalg.diagonal(CUBE, offset=offset))
    np.testing.assert_allclose(hg.linalg.trace(CUBE, offset=offset), np.linalg.trace(CUBE, offset=offset), rtol=1e-12)


POSITIONAL: dict[str, Callable[[Any, Any], Any]] = {
    "concat": lambda xp, a: xp.concat([a[0], a[0]], 1),
    "stack": lambda xp, a: xp.stack([a[0], a[0]], 1),
    "flip": lambda xp, a: xp.flip(a[0], 1),
    "roll": lambda xp, a: xp.roll(a[0], 1, 1),
    "repeat": lambda xp, a: xp.repeat(a[0], 2, 1),
    "take": lambda xp, a: xp.take(a[0], np.array([2, 0]), 1),
    "diff": lambda xp, a: xp.diff(a[0], 2, 0),
    "diff of nothing": lambda xp, a: xp.diff(a[0][:0], 1, 0),
    "tril": lambda xp, a: xp.tril(a[0], -1),
    "triu": lambda xp, a: xp.triu(a[0], 1),
    "tensordot": lambda xp, a: xp.tensordot(a[0], a[0].T, 1),
    "fft": lambda xp, a: xp.fft.fft(a[0], 6, 0).real,
    "fftshift": lambda xp, a: xp.fft.fftshift(a[0], 0),
}


@pytest.mark.parametrize("name", POSITIONAL)
def test_by_position(name: str) -> None:
    f = POSITIONAL[name]
    got = f(hg if name.startswith("fft") else hnp, [X])  # hologram.fft stands beside hologram.numpy
    np.testing.assert_allclose(got.numpy(), f(np, [X]), rtol=1e-12, atol=1e-12)


def test_creation_by_position() -> None:
    assert hnp.zeros(3, np.int32).dtype == hnp.ones(3, np.int32).dtype == hnp.full(3, 1.5, np.int32).dtype == np.int32
    np.testing.assert_array_equal(hnp.arange(1, 9, 2, np.float32), np.arange(1, 9, 2, np.float32))
    np.testing.assert_array_equal(hnp.eye(3, 4, 1), np.eye(3, 4, 1))
    np.testing.assert_allclose(hnp.linspace(0, 1), np.linspace(0, 1), rtol=1e-6)
    assert hnp.ones_like(X, shape=(2,)).shape == hnp.full_like(X, 3, shape=2).shape == (2,)


def test_where_alone_gives_places() -> None:
    for got, want in zip(hnp.where(MASK), np.where(MASK), strict=True):
        np.testing.assert_array_equal(got, want)
    for got, want in zip(np.where(hg.tensor(MASK)), np.where(MASK), strict=True):
        np.testing.assert_array_equal(got, want)
    first = hg.jit(lambda m: hnp.where(m, size=2))(MASK)
    np.testing.assert_array_equal(np.stack([np.asarray(i) for i in first]), np.stack(np.where(MASK))[:, :2])
    with pytest.raises(ArgumentError, match="where takes a condition and two values"):
        hnp.where(MASK, X)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("act", "kind", "message"),
    [
        (lambda: hnp.max(X, where=MASK), ArgumentError, "max: with where it takes initial"),
        (lambda: hnp.sum(X, initial=[1, 2]), ShapeError, r"sum: initial is a scalar, not of shape \[2\]"),
        (lambda: hnp.sum(X, where=np.ones((2, 3, 4), bool)), ShapeError, "sum: a mask for shape"),
        (lambda: hnp.diagonal(CUBE, 0, 1, -2), ArgumentError, "diagonal takes two axes, not 1 twice"),
    ],
)
def test_errors(act: Callable[[], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        act()


def test_types_are_not_none() -> None:
    """NumPy takes None for float64; a name of Hologram's, which tables of types look up, does not."""
    assert not any(getattr(hnp, name) == None for name in ("float64", "float32", "bool", "complex128"))  # noqa: E711
    assert hnp.float64 != None and hnp.float64 == np.dtype("float64") == hnp.float64  # noqa: E711
