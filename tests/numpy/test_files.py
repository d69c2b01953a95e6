"""Files, buffers, texts and printing, against NumPy; condition numbers and systems of tensors."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, ShapeError, TracedValueError
from tests.support.optable import seeded

X = seeded("files").standard_normal((3, 4)).astype(np.float32)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    hnp.save(tmp_path / "x.npy", hnp.asarray(X) * 2)
    for found in (hnp.load(tmp_path / "x.npy"), np.load(tmp_path / "x.npy")):
        np.testing.assert_array_equal(found, 2 * X, strict=True)
    file = io.BytesIO()
    hnp.savez(file, hnp.asarray(X), b=hnp.arange(3))
    file.seek(0)
    archive = hnp.load(file)
    np.testing.assert_array_equal(archive["arr_0"], X)
    np.testing.assert_array_equal(archive["b"], np.arange(3))
    with pytest.raises(TracedValueError):
        hg.jit(lambda x: hnp.save(io.BytesIO(), x))(X)


def test_elements_of_bytes_texts_and_iterables(tmp_path: Path) -> None:
    X.tofile(tmp_path / "x")
    np.testing.assert_array_equal(hnp.fromfile(str(tmp_path / "x"), np.float32, offset=4, count=3), X.ravel()[1:4], strict=True)
    data = bytearray(X.tobytes())
    found = hnp.frombuffer(data, dtype=np.float32, offset=8)
    data[:] = bytes(len(data))  # nothing is shared
    np.testing.assert_array_equal(found, X.ravel()[2:], strict=True)
    np.testing.assert_array_equal(hnp.fromstring("1;2;3", sep=";"), np.array([1.0, 2.0, 3.0]), strict=True)
    np.testing.assert_array_equal(hnp.fromiter(iter(range(5)), np.int16, 3), np.arange(3, dtype=np.int16), strict=True)


def test_texts_of_arrays() -> None:
    t = hnp.asarray(X)
    assert hnp.array_repr(t, precision=2) == np.array_repr(X, precision=2) and hnp.array_str(t) == np.array_str(X)
    with hnp.printoptions(precision=1):
        assert hnp.get_printoptions()["precision"] == 1
        assert repr(hnp.asarray([1.26])) == "Tensor([1.3], dtype=float32)"


def test_orders_of_contractions() -> None:
    shapes: list[Any] = [np.ones((2, 30)), np.ones((30, 4)), np.ones((4, 50))]
    want = np.einsum_path("ij,jk,kl", *shapes)[0]
    assert hnp.einsum_path("ij,jk,kl", *shapes)[0] == want
    seen = []
    hg.jit(lambda *xs: (seen.append(hnp.einsum_path("ij,jk,kl", *xs)[0]), xs[0])[1])(*shapes)
    assert seen == [want]


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64, np.complex64])
def test_sorted_as_complex_numbers(dtype: Any) -> None:
    x = (10 * X).astype(dtype)
    want = np.sort_complex(x)
    found = hnp.sort_complex(x)
    np.testing.assert_array_equal(found, want)
    assert found.dtype == (np.complex128 if dtype is np.float64 else np.complex64)


@pytest.mark.parametrize("p", [None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"])
def test_condition_numbers(p: Any) -> None:
    a = seeded("cond").standard_normal((3, 4, 4))
    np.testing.assert_allclose(hg.jit(lambda v: hg.linalg.cond(v, p))(a), np.linalg.cond(a, p), rtol=1e-9)
    if p in (None, 2):
        np.testing.assert_allclose(hg.linalg.cond(a[..., :3]), np.linalg.cond(a[..., :3]), rtol=1e-9)
    assert hg.linalg.cond(np.zeros((2, 2)), p) == np.inf and np.isnan(hg.linalg.cond(np.full((2, 2), np.nan)))


def test_systems_of_tensors() -> None:
    draw = seeded("tensors")
    a, b = draw.standard_normal((2, 3, 6)), draw.standard_normal((2, 3))
    np.testing.assert_allclose(hg.jit(hg.linalg.tensorinv)(a), np.linalg.tensorinv(a), rtol=1e-9)
    np.testing.assert_allclose(hg.linalg.tensorinv(np.moveaxis(a, 2, 0), 1), np.linalg.tensorinv(np.moveaxis(a, 2, 0), 1), rtol=1e-9)
    np.testing.assert_allclose(hg.jit(hg.linalg.tensorsolve)(a, b), np.linalg.tensorsolve(a, b), rtol=1e-9)
    c = draw.standard_normal((2, 2, 3, 3))
    np.testing.assert_allclose(hg.linalg.tensorsolve(c, b, (1, 2)), np.linalg.tensorsolve(c, b, (1, 2)), rtol=1e-9)
    with pytest.raises(ShapeError, match="different sizes"):
        hg.linalg.tensorinv(a, 1)
    with pytest.raises(ShapeError, match="equations"):
        hg.linalg.tensorsolve(a, b.T)
    with pytest.raises(ArgumentError, match="at least 1"):
        hg.linalg.tensorinv(a, 0)


def test_what_is_no_file_is_told() -> None:
    for f in (hnp.load, hnp.fromfile, lambda x: hnp.save(x, x), lambda x: hnp.savez(x, x)):
        with pytest.raises(ArgumentError, match="file is a path or an open file, not Tensor"):
            f(hnp.ones(2))
    with pytest.raises(ArgumentError, match="text"):
        hnp.fromstring(hnp.ones(2), sep=",")
    with pytest.raises(ArgumentError, match="einsum_path: the first argument is subscripts"):
        hnp.einsum_path(hnp.ones(2))
