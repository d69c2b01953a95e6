"""Data-parallel training: more ranks learn the same, with their optimiser's state divided or not."""

from __future__ import annotations

import numpy as np
import pytest

import hologram as hg
from examples import data_parallel
from hologram.distributed import NamedSharding, PartitionSpec, make_array_from_process_local_data, process_count, simulate


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
