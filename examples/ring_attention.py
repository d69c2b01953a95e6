"""Sequence-parallel attention: ``torchrun --nproc-per-node 2 examples/ring_attention.py``, or with ``--simulate 4``.

Each rank has a part of a sequence. Its queries stay; keys and values go round a ring (Liu et al. 2023), and each rank adds what its queries see of
them by an online softmax (Milakov and Gimelshein 2018), so that no rank ever has all keys, nor a row of all scores.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import hologram as hg
import hologram.numpy as hnp
from hologram.distributed import Mesh, NamedSharding, PartitionSpec

P = PartitionSpec
BY_PLACE = P(None, None, "sequence")  # (batch, heads, length, width)


def ring_attention(q: Any, k: Any, v: Any, causal: bool = True) -> Any:
    """Attention of this rank's queries to the keys of all ranks. Arrays are this rank's parts: (batch, heads, length / ranks, width)."""
    ranks, rank = hg.lax.axis_size("sequence"), hg.lax.axis_index("sequence")
    length, scale = q.shape[2], q.shape[3] ** -0.5
    onward = [(i, (i + 1) % ranks) for i in range(ranks)]
    places = hnp.arange(length)
    largest = hnp.full((*q.shape[:3], 1), -np.inf, q.dtype)
    total, out = hnp.zeros((*q.shape[:3], 1), q.dtype), hnp.zeros_like(q)
    for hop in range(ranks):
        coming = hg.lax.ppermute((k, v), "sequence", onward) if hop + 1 < ranks else (k, v)  # on their way while this rank computes
        scores = q @ hnp.swapaxes(k, 2, 3) * scale
        if causal:
            owner = (rank - hop) % ranks  # of the keys that are here now
            sees = (rank * length + places)[:, None] >= owner * length + places
            scores = hnp.where(sees, scores, -np.inf)
        above = hg.stop_gradient(hnp.maximum(largest, scores.max(-1, keepdims=True)))  # hop 0 has a key for each query
        weights, kept = hnp.exp(scores - above), hnp.exp(largest - above)
        total, out = total * kept + weights.sum(-1, keepdims=True), out * kept + weights @ v
        largest, (k, v) = above, coming
    return out / total


def attention(mesh: Mesh, causal: bool = True) -> Any:
    """``(q, k, v)`` to attention's result, all divided along the sequence."""
    return hg.shard_map(lambda q, k, v: ring_attention(q, k, v, causal), mesh, (BY_PLACE, BY_PLACE, BY_PLACE), BY_PLACE)


def run(length: int, causal: bool = True) -> list[np.ndarray]:
    """Attention of random arrays, and its derivatives by them: whole, on every rank."""
    mesh = hg.make_mesh((hg.distributed.process_count(),), "sequence")
    rng = np.random.default_rng(0)
    q, k, v, slope = (rng.normal(size=(2, 4, length, 16)).astype(np.float32) for _ in range(4))
    mapped = attention(mesh, causal)

    def with_derivatives(arrays: Any, slope: Any) -> Any:
        out, pull_back = hg.vjp(lambda given: mapped(*given), arrays)
        return [out, *pull_back(slope)[0]]

    by_place = NamedSharding(mesh, BY_PLACE)
    found = hg.jit(with_derivatives)([hg.device_put(x, by_place) for x in (q, k, v)], hg.device_put(slope, by_place))
    return [np.asarray(x) for x in hg.distributed.process_allgather(found)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--simulate", type=int, metavar="RANKS", help="play so many ranks in one process")
    options = parser.parse_args()
    if options.simulate:
        found = hg.distributed.simulate(options.simulate).run(run, options.length)[0]
    else:
        hg.distributed.initialize()
        found = run(options.length)
    if hg.distributed.process_index() == 0:
        print("\n".join(f"{name:12} norm {np.linalg.norm(x):.4f}" for name, x in zip(("attention", "by q", "by k", "by v"), found, strict=True)))


if __name__ == "__main__":
    main()
