"""A block of a transformer, and its derivative, for any sizes."""

from __future__ import annotations

from typing import Any

import hologram as hg
import hologram.numpy as hnp

MAX_HEAD = 64  # elements of a head; a narrower model has two heads


def _normalised(x: Any) -> Any:
    c = x - hnp.mean(x, axis=-1, keepdims=True)
    return c / hnp.sqrt(hnp.mean(c * c, axis=-1, keepdims=True) + 1e-5)


def _heads(x: Any) -> Any:
    batch, length, width = x.shape
    heads = max(2, width // MAX_HEAD)
    return hnp.swapaxes(hnp.reshape(x, (batch, length, heads, width // heads)), 1, 2)


def block(x: Any, wq: Any, wk: Any, wv: Any, wo: Any, up: Any, down: Any) -> Any:
    h = _normalised(x)
    mixed = hg.nn.dot_product_attention(_heads(h @ wq), _heads(h @ wk), _heads(h @ wv))
    x = x + hnp.reshape(hnp.swapaxes(mixed, 1, 2), x.shape) @ wo
    h = _normalised(x) @ up
    return x + (h * hnp.tanh(h)) @ down


def gradient(*arrays: Any) -> Any:
    return hg.grad(lambda *a: hnp.mean(hnp.square(block(*a))), argnums=tuple(range(len(arrays))))(*arrays)


def shapes_of_block(batch: int, length: int, width: int) -> list[tuple[int, ...]]:
    return [(batch, length, width), *[(width, width)] * 4, (width, 4 * width), (4 * width, width)]
