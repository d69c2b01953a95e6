"""Tensor, sequence and pipeline parallelism: several ranks get what one gets, and processes the bits of simulated ranks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from examples import pipeline_parallel, ring_attention, tensor_parallel
from hologram.distributed import simulate
from tests.support.distributed import examples
from tests.support.distributed.launching import end, needs_torch, torchrun

pytestmark = pytest.mark.costly(2)


@pytest.mark.parametrize(("example", "ranks"), [(tensor_parallel, 4), (pipeline_parallel, 2)], ids=lambda x: str(x)[8:28])
def test_ranks_learn_what_one_learns(example: object, ranks: int) -> None:
    alone = example.train(20)  # type: ignore[attr-defined]
    assert alone[-1] < 0.9 * alone[0]
    first, *others = simulate(ranks).run(example.train, 20)  # type: ignore[attr-defined]
    np.testing.assert_allclose(first, alone, rtol=1e-5)
    assert all(losses == first for losses in others)


def bounds(length: int, causal: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    """Attention and its derivatives in float64, each with the sum of the magnitudes of its terms, of which a weight's is what rounding its score, and
    those of its row, does to it."""
    rng = np.random.default_rng(0)
    q, k, v, slope = (rng.normal(size=(2, 4, length, 16)).astype(np.float32).astype(np.float64) for _ in range(4))
    scores = np.where(np.tri(length, dtype=bool) | (not causal), q @ k.swapaxes(2, 3) / 4, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    rounded = 1 + np.abs(q) @ np.abs(k).swapaxes(2, 3) / 4
    weight = p * (rounded + (p * rounded).sum(-1, keepdims=True))
    dp, dp_size = slope @ v.swapaxes(2, 3), np.abs(slope) @ np.abs(v).swapaxes(2, 3)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) / 4
    size = weight * (dp_size + (p * dp_size).sum(-1, keepdims=True)) / 4
    turned, turned_weight = p.swapaxes(2, 3), weight.swapaxes(2, 3)
    return [
        (p @ v, weight @ np.abs(v)),
        (ds @ k, size @ np.abs(k)),
        (ds.swapaxes(2, 3) @ q, size.swapaxes(2, 3) @ np.abs(q)),
        (turned @ slope, turned_weight @ np.abs(slope)),
    ]


@pytest.mark.parametrize("causal", [True, False])
def test_attention_round_a_ring_is_attention(causal: bool) -> None:
    """Within two units in the last place of the sums of the magnitudes of all terms, of one rank and of what is exact."""
    length = 64
    (alone,), (found, *others) = simulate(1).run(ring_attention.run, length, causal), simulate(4).run(ring_attention.run, length, causal)
    for one, four, (exact, size) in zip(alone, found, bounds(length, causal), strict=True):
        unit = np.spacing(size.astype(np.float32))
        assert (np.abs(four - one) <= 2 * unit).all() and (np.abs(four - exact) <= 2 * unit).all()
    assert all(np.array_equal(x, y) for other in others for x, y in zip(found, other, strict=True))


@needs_torch
def test_processes_have_the_bits_of_simulated_ranks(tmp_path: Path, everything: bool) -> None:
    for size in (2, 4) if everything else (2,):
        said = end(torchrun(size, "tests.support.distributed.examples", tmp_path), 200)
        for rank, want in enumerate(simulate(size).run(examples.results)):
            assert (tmp_path / str(rank)).is_file(), said
            assert (tmp_path / str(rank)).read_text().splitlines() == want


@needs_torch
def test_eight_processes_have_the_bits_of_simulated_ranks(tmp_path: Path, everything: bool) -> None:
    if not everything:
        pytest.skip("eight processes on a small machine: --all")
    said = end(torchrun(8, "tests.support.distributed.examples", tmp_path), 400)
    for rank, want in enumerate(simulate(8).run(examples.results)):
        assert (tmp_path / str(rank)).is_file(), said
        assert (tmp_path / str(rank)).read_text().splitlines() == want
