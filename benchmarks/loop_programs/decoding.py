"""One token of a decoder, whose caches of keys and values belong to the call."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.loop_programs.program import Asked, Program

WIDTH, HEADS = 64, 8  # of a head; a layer is as wide as all of its heads


def _decoder(rng: np.random.Generator, layers: int, positions: int, heads: int) -> tuple[Any, ...]:
    """Keys and values of each layer (position, head, element), what stands in them so far, the token's vector, and the weights of each layer."""
    d = heads * WIDTH
    shapes = ((d, 3 * d), (d, d), (d, 4 * d), (4 * d, d))
    weights = tuple(tuple((rng.standard_normal(s) / np.sqrt(s[0])).astype(np.float32) for s in shapes) for _ in range(layers))
    keys, values = (tuple(rng.standard_normal((positions, heads, WIDTH)).astype(np.float32) for _ in range(layers)) for _ in range(2))
    return keys, values, np.array(positions // 2, np.int32), rng.standard_normal(d).astype(np.float32), weights


def _token(xp: Any, softmax: Any, write: Any, keys: Any, values: Any, at: Any, x: Any, weights: Any) -> Any:
    positions, heads, width = keys[0].shape
    seen, after = xp.arange(positions) <= at, []
    for old_keys, old_values, (inner, outer, up, down) in zip(keys, values, weights, strict=True):
        q, k, v = xp.split(_scaled(xp, x) @ inner, 3)
        k, v = write(old_keys, at, k.reshape(heads, width)), write(old_values, at, v.reshape(heads, width))
        after.append((k, v))
        scores = xp.einsum("hd,phd->hp", q.reshape(heads, width), k) / np.float32(np.sqrt(width))
        shares = softmax(xp.where(seen, scores, -np.inf), axis=-1)
        x = x + xp.einsum("hp,phd->hd", shares, v).reshape(-1) @ outer
        x = x + xp.maximum(_scaled(xp, x) @ up, 0) @ down
    return *zip(*after, strict=True), (at + 1) % positions, x


def _scaled(xp: Any, x: Any) -> Any:
    return x / xp.sqrt((x * x).mean() + np.float32(1e-6))


def _traced(f: Any, *arguments: Any) -> Any:
    return _token(f.np, f.nn.softmax, lambda cache, at, new: cache.at[at].set(new), *arguments)


def _reference(*arguments: Any) -> Any:
    def softmax(x: np.ndarray, axis: int) -> np.ndarray:
        e = np.exp(x - x.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    def write(cache: np.ndarray, at: np.ndarray, new: np.ndarray) -> np.ndarray:
        cache = cache.copy()
        cache[at] = new
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
