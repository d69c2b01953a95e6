"""Data-parallel training: more ranks learn the same, with their optimiser's state divided or not."""

from __future__ import annotations

import numpy as np
import pytest

import hologram as hg
from examples import data_parallel
from hologram.distributed import NamedSharding, PartitionSpec, make_array_from_process_local_data, process_count, simulate

pytestmark = pytest.mark.costly(2)


@pytest.mark.parametrize("zero", [False, True])
def test_ranks_learn_what_one_learns(zero: bool) -> None:
    alone = data_parallel.train(20, zero)
    assert alone[-1] < alone[0] / 2
    first, *others = simulate(4).run(data_parallel.train, 20, zero)
    np.testing.assert_allclose(first, alone, rtol=1e-3)
    assert all(losses == first for losses in others)


def test_a_rank_has_its_share_of_the_optimisers_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments, results and intermediates are at most 1.05 of what is replicated and a share of the rest."""
    monkeypatch.setattr(data_parallel, "SIZES", (64, 256, 256, 64))

    def sizes() -> tuple[int, int]:
        """Bytes a rank, and bytes of momentum among arguments and results."""
        mesh = hg.make_mesh((process_count(),), "data")
        state, by_rank = data_parallel.begin(mesh, zero=True), NamedSharding(mesh, PartitionSpec("data"))
        batch = [make_array_from_process_local_data(by_rank, np.zeros((48, 64), np.float32))] * 2  # a rank has as many rows on any number
        plan = data_parallel.sharded_step(mesh).lower(state["weights"], state["momentum"], *batch).compile().memory_analysis()
        return plan.argument_bytes + plan.result_bytes + plan.peak, 2 * state["momentum"].size * 4

    total, sharded = sizes()
    for ranks in (2, 4):
        assert simulate(ranks).run(sizes)[0][0] <= 1.05 * (total - sharded + sharded / ranks)


def test_gradients_have_the_bits_of_one_process_that_adds_in_the_order_of_ranks() -> None:
    weights, rng = data_parallel.start(np.random.default_rng(0)), np.random.default_rng(1)
    x, y = (rng.normal(size=(32, n)).astype(np.float32) for n in (data_parallel.SIZES[0], data_parallel.SIZES[-1]))
    gradient = hg.grad(data_parallel.loss)

    def main() -> list[np.ndarray]:
        mesh, by_rank = hg.make_mesh((4,), "data"), PartitionSpec("data")
        averaged = hg.shard_map(
            lambda w, x, y: hg.lax.pmean(gradient(w, x, y), "data"), mesh, (PartitionSpec(), by_rank, by_rank), PartitionSpec()
        )  # fmt: skip
        return [np.asarray(g) for g in averaged(weights, x, y)]

    parts = [[np.asarray(g) for g in hg.jit(gradient)(weights, x[i : i + 8], y[i : i + 8])] for i in (0, 8, 16, 24)]
    for found in simulate(4).run(main):
        for g, a, b, c, d in zip(found, *parts, strict=True):
            np.testing.assert_array_equal(g, (a + b + c + d) / np.float32(4))
