"""``hg.as_image``: the pixels of a PNG file are those that the array's values say."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, ShapeError, TracedValueError


def pixels(image: Any) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(image._repr_png_())))


@given(st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 3, 4]), st.integers(0, 2**31))
@settings(max_examples=30, deadline=None)
def test_bytes_are_kept(height: int, width: int, channels: int, seed: int) -> None:
    x = np.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=np.uint8)
    image = hg.as_image(x)
    np.testing.assert_array_equal(pixels(image).reshape(x.shape), x)
    first = hg.as_image(hnp.moveaxis(hg.tensor(x), -1, 0), channel_axis=0)
    np.testing.assert_array_equal(first.pixels, x)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "bool"])
def test_grey_spans_the_values(dtype: str) -> None:
    x = np.array([[0, 1], [1, 0]], dtype)
    assert pixels(hg.as_image(x)).tolist() == [[0, 255], [255, 0]]
    if dtype != "bool":
        assert pixels(hg.as_image(x * 100)).tolist() == [[0, 255], [255, 0]]
        assert pixels(hg.as_image(x, low=0, high=2)).tolist() == [[0, 128], [128, 0]]


def test_special_values() -> None:
    x = np.array([[np.nan, -np.inf, 0.0, 1.0, np.inf]])
    grey, alpha = np.moveaxis(pixels(hg.as_image(x)), -1, 0)
    assert grey.tolist() == [[0, 0, 0, 255, 255]] and alpha.tolist() == [[0, 255, 255, 255, 255]]
    assert pixels(hg.as_image(np.full((2, 2), 7.0))).tolist() == [[0, 0], [0, 0]]
    assert pixels(hg.as_image(np.array([[-1.7e308, 0, 1.7e308]]))).tolist() == [[0, 128, 255]]
    colours = np.array([[[np.nan, 0.5, 2.0]]], np.float32)
    assert pixels(hg.as_image(colours)).tolist() == [[[0, 128, 255]]]


@pytest.mark.parametrize(
    ("x", "options", "error"),
    [
        (np.ones(3), {}, ShapeError),
        (np.ones((3, 3, 2)), {}, ShapeError),
        (np.ones((2, 0)), {}, ShapeError),
        (np.ones((2, 2, 2, 3)), {}, ShapeError),
        (np.ones((2, 2, 3)), {"channel_axis": 3}, None),
        (np.ones((2, 2), np.complex64), {}, ArgumentError),
        (np.ones((2, 2)), {"low": 2, "high": 1}, ArgumentError),
        (np.ones((2, 2)), {"low": np.nan}, ArgumentError),
    ],
)
def test_what_is_no_image(x: np.ndarray, options: Any, error: Any) -> None:
    if error is None:
        assert hg.as_image(x, **options).pixels.shape == (2, 2, 3)
        return
    with pytest.raises(error, match="as_image"):
        hg.as_image(x, **options)


def test_a_traced_value_is_no_image() -> None:
    with pytest.raises(TracedValueError, match="as_image"):
        hg.jit(lambda x: hg.as_image(x))(np.ones((2, 2)))


def test_large_ones_are_shown_small_and_saved_whole(tmp_path: Path) -> None:
    image = hg.as_image(np.arange(3000 * 10).reshape(3000, 10))
    assert pixels(image).shape == (1000, 4) and repr(image) == "Image(10 x 3000, grey)"
    image.save(tmp_path / "x.png")
    assert np.asarray(Image.open(tmp_path / "x.png")).shape == (3000, 10)
    assert 'alt="image of 4 by 1000 pixels"' in image._repr_html_()
