"""Images resampled: against direct sums over the elements, in a wider type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import image
from hologram.errors import ArgumentError, ShapeError
from tests.support.optable import seeded

X = seeded("image").standard_normal((2, 7, 5)).astype(np.float32)
KERNELS: dict[str, Callable[[float], float]] = {
    "linear": lambda d: max(0.0, 1 - d),
    "lanczos3": lambda d: float(np.sinc(d) * np.sinc(d / 3)) if d < 3 else 0.0,
    "lanczos5": lambda d: float(np.sinc(d) * np.sinc(d / 5)) if d < 5 else 0.0,
    "cubic": lambda d: 1.5 * d**3 - 2.5 * d**2 + 1 if d < 1 else -0.5 * d**3 + 2.5 * d**2 - 4 * d + 2 if d < 2 else 0.0,
}


def row(method: str, n: int, scale: float, at: float, antialias: bool) -> np.ndarray:
    """Weights of ``n`` elements for the value at ``at``, in elements."""
    if not -0.5 <= at <= n - 0.5:
        return np.zeros(n)
    if method == "area":
        found = np.array([max(0.0, min(i + 0.5, at + 0.5 / scale) - max(i - 0.5, at - 0.5 / scale)) for i in range(n)])
    else:
        width = max(1.0, 1 / scale) if antialias else 1.0
        found = np.array([KERNELS[method](abs(at - i) / width) for i in range(n)])
    return found / found.sum() if abs(found.sum()) > 1e-4 else 0 * found


def resampled(x: np.ndarray, axis: int, count: int, scale: float, shift: float, method: str, antialias: bool) -> np.ndarray:
    n = x.shape[axis]
    weights = np.stack([row(method, n, scale, (k + 0.5 - shift) / scale - 0.5, antialias) for k in range(count)])
    return np.moveaxis(np.tensordot(x, weights, ((axis,), (1,))), -1, axis)


@pytest.mark.crossed
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("method", [*KERNELS, "area"])
def test_images_are_sums_of_weighted_elements(method: str, antialias: bool) -> None:
    for shape in ((2, 14, 5), (2, 3, 9), (1, 7, 1)):
        want = X.astype(np.float64)
        for axis, m in enumerate(shape):
            if m != X.shape[axis]:
                want = resampled(want, axis, m, m / X.shape[axis], 0.0, method, antialias)
        np.testing.assert_allclose(image.resize(X, shape, method, antialias), want, atol=1e-5)
    scale, shift = np.array([1.3, 0.4], np.float32), np.array([0.7, -0.6], np.float32)
    run = lambda x, s, t: image.scale_and_translate(x, (2, 8, 4), (1, -1), s, t, method, antialias)  # noqa: E731
    want = resampled(resampled(X.astype(np.float64), 1, 8, 1.3, 0.7, method, antialias), 2, 4, 0.4, -0.6, method, antialias)
    np.testing.assert_allclose(hg.jit(run)(X, scale, shift), want, atol=3e-5)


def test_pytorchs_cubic_images() -> None:
    torch = pytest.importorskip("torch")
    for shape in ((11, 3), (4, 12)):
        given = torch.tensor(X)[None]
        for antialias in (False, True):
            want = torch.nn.functional.interpolate(given, shape, mode="bicubic", antialias=antialias)[0].numpy()
            got = image.resize(X, (2, *shape), "cubic-pytorch", antialias).numpy()
            inner = slice(2, -2) if antialias else slice(None)  # which cuts kernels elsewhere at edges
            np.testing.assert_allclose(got[:, inner, inner], want[:, inner, inner], atol=2e-2 if antialias else 1e-5)


def test_the_nearest_element_keeps_its_type() -> None:
    for dtype in (np.uint8, np.int32, np.float16, np.float32, np.complex64, np.bool_):
        x = (X * 50).astype(dtype)
        got = image.resize(x, (2, 14, 3), "nearest").numpy()
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, x[:, np.arange(14) // 2][:, :, [0, 2, 4]])
    assert image.resize(X.astype(np.float16) * 50, (2, 3, 5)).dtype == np.float16
    assert image.resize((X * 50).astype(np.int32), (2, 3, 5)).dtype == np.float32


def test_narrow_floats_are_summed_in_float32() -> None:
    x = (X * 50).astype(np.float16)
    np.testing.assert_allclose(image.resize(x, (2, 3, 9)), image.resize(x.astype(np.float32), (2, 3, 9)), rtol=1e-3, atol=1e-2)


def test_derivatives_by_the_image_and_by_where_it_comes() -> None:
    y = seeded("image", "y").standard_normal((2, 3, 9)).astype(np.float32)
    pulled = hg.vjp(lambda x: image.resize(x, y.shape, "cubic"), X)[1](y)[0]
    np.testing.assert_allclose((pulled.numpy() * X).sum(), (image.resize(X, y.shape, "cubic").numpy() * y).sum(), rtol=1e-4)
    loss = lambda t: (image.scale_and_translate(X, (2, 7, 5), (1,), hnp.asarray([1.1]), t, "cubic") ** 2).sum()  # noqa: E731
    t, e = np.array([0.33], np.float64), 1e-4
    np.testing.assert_allclose(hg.grad(loss)(t), (float(loss(t + e)) - float(loss(t - e))) / (2 * e), rtol=2e-2)
    np.testing.assert_allclose(hg.vmap(lambda x: image.resize(x, (3, 9)))(X), image.resize(X, (2, 3, 9)), atol=1e-6)


@pytest.mark.parametrize(
    ("error", "work"),
    [
        (ArgumentError, lambda: image.resize(X, (2, 3, 4), "cubical")),
        (ShapeError, lambda: image.resize(X, (3, 4))),
        (ShapeError, lambda: image.resize(np.zeros((0, 3)), (2, 3))),
        (ArgumentError, lambda: image.scale_and_translate(X, X.shape, (1,), [1.0], [0.0], "nearest")),
        (ShapeError, lambda: image.scale_and_translate(X, X.shape, (1,), [1.0, 2.0], [0.0], "linear")),
        (ShapeError, lambda: image.scale_and_translate(X, (3, 7, 5), (1,), [1.0], [0.0], "linear")),
    ],
)
def test_errors(error: Any, work: Callable[[], Any]) -> None:
    with pytest.raises(error):
        work()
