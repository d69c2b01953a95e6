"""Arrays as images: ``hg.as_image``."""

from __future__ import annotations

import base64
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from hologram.errors import ArgumentError, ShapeError
from hologram.notebook.markup import Html, box
from hologram.support.user_lines import located
from hologram.trace.convert import asarray

MAX_SIDE = 1024  # pixels: larger images are shown with every second pixel, or third
MIN_WIDTH = 160  # pixels on the screen: smaller images are magnified
_COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # of PNG, by the number of channels


class Image:
    """Pixels of 8 bits, of shape ``[height, width, channels]``: grey, grey and alpha, RGB, or RGBA. Notebooks show it."""

    def __init__(self, pixels: np.ndarray) -> None:
        self.pixels = pixels

    def __repr__(self) -> str:
        height, width, channels = self.pixels.shape
        return f"Image({width} x {height}, {('grey', 'grey and alpha', 'RGB', 'RGBA')[channels - 1]})"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a PNG file."""
        Path(path).write_bytes(png(self.pixels))

    def _shown(self) -> np.ndarray:
        step = max(1, -(-max(self.pixels.shape[:2]) // MAX_SIDE))
        return self.pixels[::step, ::step]

    def _repr_png_(self) -> bytes:
        return png(self._shown())

    def _repr_html_(self) -> str:
        height, width, _ = self._shown().shape
        zoom = max(1, min(MIN_WIDTH // max(width, 1), MIN_WIDTH // max(height, 1)))
        style = f"width:{width * zoom}px;max-width:100%;image-rendering:{'pixelated' if zoom > 1 else 'auto'}"
        data = base64.b64encode(self._repr_png_()).decode()
        return box(Html(f'<img alt="image of {width} by {height} pixels" style="{style}" src="data:image/png;base64,{data}">'))


def as_image(x: Any, *, low: float | None = None, high: float | None = None, channel_axis: int = -1) -> Image:
    """An array as an image, which notebooks show; ``save(path)`` writes a PNG file.

    - ``x``: an array of shape ``[height, width]``, or with an axis of 1, 3 or 4 channels (grey, RGB, RGBA) at ``channel_axis``. It is computed.
    - ``low``, ``high``: the values that are black and white (or of no and full colour). By default, of grey images the least and the largest finite
      value; of others, and of truth values and uint8, all that the type holds, and of floats 0 and 1. Values beyond are drawn as these.

    NaN is transparent in grey images, and black in others. Raises ShapeError for other shapes, ArgumentError for complex numbers and for a range that
    is none, TracedValueError while tracing.

    >>> hg.as_image(hnp.eye(3))
    Image(3 x 3, grey)
    """
    view = asarray(x)._view("as_image()")
    if view.dtype.kind == "c":
        raise located(ArgumentError("as_image: complex numbers have no colour: take abs, real or angle first"))
    if view.ndim == 3 and -3 <= channel_axis < 3:
        view = np.moveaxis(view, channel_axis, -1)
    if not (view.ndim == 2 or (view.ndim == 3 and view.shape[-1] in (1, 3, 4))) or 0 in view.shape:
        raise located(ShapeError(f"as_image: shape {list(view.shape)}: an image is [height, width], with 1, 3 or 4 channels at channel_axis"))
    pixels = view if view.ndim == 3 else view[..., None]
    bottom, top = _range(pixels, low, high)
    if not bottom <= top:
        raise located(ArgumentError(f"as_image: nothing lies between low {bottom} and high {top}"))
    return Image(_in_bytes(pixels, bottom, top))


def _range(pixels: np.ndarray, low: float | None, high: float | None) -> tuple[float, float]:
    """The values of black and white."""
    if pixels.dtype.kind == "b" or pixels.dtype == np.uint8:
        least, most = 0.0, 1.0 if pixels.dtype.kind == "b" else 255.0
    elif pixels.shape[-1] == 1:
        values = pixels.astype(np.float64)
        finite = values[np.isfinite(values)]
        least, most = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    else:
        least, most = (0.0, 1.0) if pixels.dtype.kind not in "iu" else (0.0, float(np.iinfo(pixels.dtype).max))
    return least if low is None else float(low), most if high is None else float(high)


def _in_bytes(pixels: np.ndarray, low: float, high: float) -> np.ndarray:
    if pixels.dtype == np.uint8 and (low, high) == (0.0, 255.0):
        return pixels.copy()
    values = pixels.astype(np.float64)
    holes = np.isnan(values)
    with np.errstate(all="ignore"):
        half = high / 2 - low / 2  # the difference itself may overflow
        share = (np.clip(values, low, high) / 2 - low / 2) / half if half > 0 else (values > low).astype(np.float64)
    made = np.where(holes, 0, np.rint(255 * share)).astype(np.uint8)
    if pixels.shape[-1] == 1 and holes.any():
        return np.concatenate([made, np.where(holes, 0, 255).astype(np.uint8)], axis=-1)
    return made


def png(pixels: np.ndarray) -> bytes:
    """A PNG file of uint8 ``pixels`` of shape ``[height, width, channels]`` (ISO/IEC 15948), each row unfiltered."""
    height, width, channels = pixels.shape
    rows = np.zeros((height, 1 + width * channels), np.uint8)
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[channels], 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(d)) + n + d + struct.pack(">I", zlib.crc32(n + d)) for n, d in chunks)
