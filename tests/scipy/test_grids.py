"""Interpolation, cosine transforms, vector quantization and minimization beside SciPy; and the names of jax.scipy."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import scipy as hs
from hologram.errors import ArgumentError, DTypeError, HologramError, ShapeError, UnsupportedError

scipy = pytest.importorskip("scipy", reason="SciPy, with which results are compared, is not installed")
rng = np.random.default_rng(9)
IMAGE = rng.standard_normal((5, 4))
PLACES = rng.uniform(-12, 14, (2, 5, 6))


@pytest.mark.parametrize("mode", ["nearest", "mirror", "reflect", "grid-constant", "grid-wrap", "grid-mirror"])
def test_coordinates_are_mapped(mode: str) -> None:
    ndimage = import_module("scipy.ndimage")
    for order in (0, 1) if mode != "grid-constant" else (1,):
        got = hg.jit(lambda c, o=order: hs.ndimage.map_coordinates(IMAGE, c, o, mode, 2.0))(PLACES)
        np.testing.assert_allclose(got.numpy(), ndimage.map_coordinates(IMAGE, PLACES, order=order, mode=mode, cval=2.0), atol=1e-12)


def test_mapped_integers_are_rounded_and_coordinates_differentiated() -> None:
    assert hs.ndimage.map_coordinates([10, 21], [[0.5, 0.9]], 1).numpy().tolist() == [16, 20]
    for dtype in ("int8", "int32", "uint8"):
        x, halves = (np.arange(6) - 3 * (dtype != "uint8")).astype(dtype), np.array([[0.5, 1.5, 2.5, 3.5, 4.25, 4.75]])
        np.testing.assert_array_equal(
            hs.ndimage.map_coordinates(x, halves, 1), import_module("scipy.ndimage").map_coordinates(x, halves, order=1), strict=True
        )
    slope = hg.grad(lambda c: hs.ndimage.map_coordinates(IMAGE, [c, 1.0], 1))(np.float64(2.25))
    np.testing.assert_allclose(float(slope), IMAGE[3, 1] - IMAGE[2, 1])


POINTS = (np.array([0.0, 1, 3]), np.array([-1.0, 0, 2, 5]))
VALUES = rng.standard_normal((3, 4, 2))


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_grids_are_interpolated(method: str) -> None:
    library, at = import_module("scipy.interpolate"), rng.uniform(-2, 6, (7, 2))
    at[0, 1] = np.nan
    for fill in (np.nan, None, 3.0):
        want = library.RegularGridInterpolator(POINTS, VALUES, method, bounds_error=False, fill_value=fill)(at)
        got = hg.jit(lambda x, f=fill: hs.interpolate.RegularGridInterpolator(POINTS, VALUES, method, fill_value=f)(x))(at)
        np.testing.assert_allclose(got.numpy(), want, atol=1e-12)


def test_a_vector_is_points_of_a_grid() -> None:
    library = import_module("scipy.interpolate").RegularGridInterpolator
    for points, values, at in ((POINTS, VALUES, [0.5, 1.0]), (POINTS, VALUES, [0.5, 1.0, 2.0, 3.0]), (POINTS[:1], VALUES, [0.5, 1.0, 2.5])):
        got, want = hs.interpolate.RegularGridInterpolator(points, values)(at), library(points, values)(at)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5)
    with pytest.raises(ShapeError):
        hs.interpolate.RegularGridInterpolator(POINTS, VALUES)([0.5, 1.0, 2.0])


def test_cosine_transforms() -> None:
    library, x = import_module("scipy.fft"), rng.standard_normal((3, 7))
    for kind in (2, 3):
        for norm in (None, "ortho", "forward"):
            for name in ("dct", "idct"):
                for n, axis in ((None, 0), (5, 1), (9, 1)):
                    got = getattr(hs.fft, name)(x, kind, n, axis, norm).numpy()
                    np.testing.assert_allclose(got, getattr(library, name)(x, kind, n, axis, norm), atol=1e-12)
            for name in ("dctn", "idctn"):
                for s in (None, (4,)):
                    np.testing.assert_allclose(
                        getattr(hs.fft, name)(x, kind, s, norm=norm).numpy(), getattr(library, name)(x, kind, s, norm=norm), atol=1e-12
                    )
    assert hs.fft.dct(x.astype(np.float32)).dtype == np.float32
    slope = hg.jit(hg.grad(lambda v: hnp.sum(hs.fft.dct(v, norm="ortho") ** 2)))(x).numpy()
    np.testing.assert_allclose(slope, 2 * x, atol=1e-12)  # the transform is orthogonal


def test_vectors_are_quantized() -> None:
    library, x, codes = import_module("scipy.cluster.vq"), rng.standard_normal((9, 3)), rng.standard_normal((4, 3))
    for got, want in zip(hs.cluster.vq.vq(x, codes), library.vq(x, codes), strict=True):
        np.testing.assert_allclose(np.asarray(got), want)


def rosenbrock(x: Any) -> Any:
    return hnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_functions_are_minimized(dtype: type) -> None:
    start = np.linspace(-1.2, 1, 5).astype(dtype)
    found = hg.jit(lambda x: hs.optimize.minimize(rosenbrock, x, method="BFGS"))(start)
    assert found.success.item() and found.x.dtype == dtype
    np.testing.assert_allclose(found.x.numpy(), np.ones(5), atol=1e-3)
    assert np.abs(found.jac.numpy()).max() < 1e-5 and 10 < found.nit.item() <= found.nfev.item() < 200


def test_minimization_stacks_stops_and_takes_arguments() -> None:
    ends = hg.vmap(lambda x: hs.optimize.minimize(rosenbrock, x).x)(rng.standard_normal((3, 2)))
    np.testing.assert_allclose(ends.numpy(), np.ones((3, 2)), atol=1e-4)
    few = hs.optimize.minimize(rosenbrock, np.zeros(4), options={"maxiter": 2})
    assert (few.status.item(), few.success.item(), few.nit.item()) == (1, False, 2)
    assert hs.optimize.minimize(lambda x: hnp.sum(hnp.log(x)), np.zeros(2)).status.item() == 3
    shifted = hs.optimize.minimize(lambda x, a, b: hnp.sum((x - a) ** 2) * b, np.zeros(2), args=(np.array([1.0, 2.0]), 3.0), tol=1e-8)
    np.testing.assert_allclose(shifted.x.numpy(), [1.0, 2.0])
    np.testing.assert_allclose(shifted.hess_inv.numpy() @ shifted.hess_inv.numpy().T, shifted.hess_inv.numpy() @ shifted.hess_inv.numpy())


WRONG: list[tuple[Callable[[], Any], type[HologramError], str]] = [
    (lambda: hs.ndimage.map_coordinates(IMAGE, [PLACES[0]], 1), ShapeError, "1 axes"),
    (lambda: hs.ndimage.map_coordinates(IMAGE, PLACES, 3), UnsupportedError, "orders 0 and 1"),
    (lambda: hs.ndimage.map_coordinates(IMAGE, PLACES, 1, "far"), ArgumentError, "mode"),
    (lambda: hs.interpolate.RegularGridInterpolator(POINTS, VALUES[:2]), ShapeError, "axis 0"),
    (lambda: hs.interpolate.RegularGridInterpolator(POINTS, VALUES, bounds_error=True), ArgumentError, "bounds_error"),
    (lambda: hs.interpolate.RegularGridInterpolator(POINTS, VALUES)(np.ones((2, 3))), ShapeError, "3 coordinates"),
    (lambda: hs.fft.dct(IMAGE, type=4), ArgumentError, "types 2 and 3"),
    (lambda: hs.fft.dct(IMAGE * 1j), DTypeError, "real"),
    (lambda: hs.cluster.vq.vq(IMAGE, IMAGE.T), ShapeError, "codes"),
    (lambda: hs.optimize.minimize(rosenbrock, IMAGE), ShapeError, "vector"),
    (lambda: hs.optimize.minimize(rosenbrock, IMAGE[0], method="Powell"), UnsupportedError, "BFGS"),
    (lambda: hs.optimize.minimize(rosenbrock, IMAGE[0], options={"ftol": 1}), ArgumentError, "ftol"),
]


@pytest.mark.parametrize(("call", "kind", "text"), WRONG)
def test_errors_are_kind_and_located(call: Callable[[], Any], kind: type[HologramError], text: str) -> None:
    with pytest.raises(kind, match=text) as found:
        call()
    assert "test_grids.py" in str(found.value)


# --- names -----------------------------------------------------------------------------------------------------------

NOT_THERE = {"spatial", "sparse"}  # modules of jax.scipy


def test_the_names_of_jax_are_there(everything: bool) -> None:
    """Those of ``hologram.special``, which this package gives on, are compared where it is tested."""
    jax = pytest.importorskip("jax.scipy", reason="JAX, whose names are compared, is not installed") if everything else None
    if jax is None:
        assert hs.special.erf is hg.special.erf and set(hs.special.__all__) == set(hg.special.__all__)
        return
    for module in ("cluster.vq", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "stats"):
        theirs, ours = import_module(f"jax.scipy.{module}"), import_module(f"hologram.scipy.{module}")
        assert {n for n in dir(theirs) if not n.startswith("_")} <= set(ours.__all__), module
        for name in dir(theirs) if module == "stats" else ():
            methods = {n for n in dir(getattr(theirs, name)) if not n.startswith("_")} if type(getattr(theirs, name)).__name__ == "module" else set()
            assert {n for n in methods if not hasattr(getattr(ours, name), n)} <= {"entropy"}, name
