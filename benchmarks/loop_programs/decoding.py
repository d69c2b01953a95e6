"""One token of a decoder, whose caches of keys and values belong to the call."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.loop_programs.program import Asked, Program

WIDTH, HEADS = 64, 8  # of a head; a layer is as wide as all of its heads


def _decoder(rng: np.random.Generator, layers: int, positions: int, heads: int) -> tuple[Any, ...]:
    """Keys and values (layer, position, head, element), what stands in them so far, the token's vector, and the weights."""
    d = heads * WIDTH
    shapes = ((d, 3 * d), (d, d), (d, 4 * d), (4 * d, d))
    weights = tuple((rng.standard_normal((layers, *s)) / np.sqrt(s[0])).astype(np.float32) for s in shapes)
    caches = [rng.standard_normal((layers, positions, heads, WIDTH)).astype(np.float32) for _ in range(2)]
    return *caches, np.array(positions // 2, np.int32), rng.standard_normal(d).astype(np.float32), *weights


def _token(xp: Any, softmax: Any, write: Any, keys: Any, values: Any, at: Any, x: Any, inner: Any, outer: Any, up: Any, down: Any) -> Any:
    layers, positions, heads, width = keys.shape
    seen = xp.arange(positions) <= at
    for i in range(layers):
        q, k, v = xp.split(_scaled(xp, x) @ inner[i], 3)
        keys, values = write(keys, i, at, k.reshape(heads, width)), write(values, i, at, v.reshape(heads, width))
        scores = xp.einsum("hd,phd->hp", q.reshape(heads, width), keys[i]) / np.float32(np.sqrt(width))
        weights = softmax(xp.where(seen, scores, -np.inf), axis=-1)
        x = x + xp.einsum("hp,phd->hd", weights, values[i]).reshape(-1) @ outer[i]
        x = x + xp.maximum(_scaled(xp, x) @ up[i], 0) @ down[i]
    return keys, values, (at + 1) % positions, x


def _scaled(xp: Any, x: Any) -> Any:
    return x / xp.sqrt((x * x).mean() + np.float32(1e-6))


def _traced(f: Any, *arguments: Any) -> Any:
    return _token(f.np, f.nn.softmax, lambda cache, i, at, new: cache.at[i, at].set(new), *arguments)


def _reference(*arguments: Any) -> Any:
    def softmax(x: np.ndarray, axis: int) -> np.ndarray:
        e = np.exp(x - x.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    def write(cache: np.ndarray, i: int, at: np.ndarray, new: np.ndarray) -> np.ndarray:
        cache = cache.copy()
        cache[i, at] = new
        return cache

    return _token(np, softmax, write, *arguments)


def _nbytes(layers: int, positions: int, heads: int) -> int:
    """Weights, and the half of both caches that is in use."""
    return 4 * layers * (12 * (heads * WIDTH) ** 2 + positions * heads * WIDTH)


PROGRAMS = (
    Program(
        "decoding", "decoding", _decoder, _reference, _traced, donated=3, nbytes=_nbytes, asked=Asked(floor=1.25), tolerance=1e-4,
    ),
)  # fmt: skip
