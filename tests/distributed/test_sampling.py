"""Data loading by rank: every row once an epoch, the same batches on any number of ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
from hologram.distributed import BatchSampler, Mesh, NamedSharding, PartitionSpec, process_allgather, simulate
from hologram.errors import ArgumentError, ShapeError

P = PartitionSpec
ALONE = NamedSharding(Mesh([0], "data"), P("data"))


@given(st.integers(1, 200), st.data())
def test_an_epoch_has_each_row_at_most_once(size: int, data: Any) -> None:
    batch, seed = data.draw(st.integers(1, size)), data.draw(st.integers(0, 2**64 - 1))
    batches = BatchSampler(size, batch, ALONE, seed=seed)
    n = batches.steps_per_epoch
    for epoch in range(2):
        rows = np.concatenate([batches.global_rows(i) for i in range(epoch * n, (epoch + 1) * n)])
        assert len(set(rows.tolist())) == n * batch == len(rows) and set(rows.tolist()) <= set(range(size)) and n * batch > size - batch
    fresh = BatchSampler(size, batch, ALONE, seed=seed)  # which begins in the middle
    np.testing.assert_array_equal(fresh.rows(n + n // 2), batches.rows(n + n // 2))


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    orders = [tuple(BatchSampler(50, 50, ALONE, seed=seed).global_rows(epoch)) for seed in range(4) for epoch in range(4)]
    assert len(set(orders)) == 16
    assert BatchSampler(5, 5, ALONE, shuffle=False).rows(1).tolist() == [0, 1, 2, 3, 4]
    assert BatchSampler(10, 4, ALONE, seed=1).rows(0).tolist() == [3, 5, 2, 9]  # of every version of NumPy


def test_ranks_have_parts_of_the_same_batch() -> None:
    data = {"x": np.arange(60.0).reshape(30, 2), "y": np.arange(30)}

    def main(shape: tuple[int, int]) -> Any:
        batches = BatchSampler(30, 8, NamedSharding(hg.make_mesh(shape, ("data", "model")), P("data")), seed=3)
        found = [batches.batch(data, step) for step in (0, 5)]
        return [batches.rows(5).tolist(), [{k: np.asarray(v).tolist() for k, v in process_allgather(b).items()} for b in found]]

    whole = simulate(1).run(main, (1, 1))[0]
    for shape in ((2, 1), (2, 2), (4, 1)):
        ranks = simulate(shape[0] * shape[1]).run(main, shape)
        assert all(r[1] == whole[1] for r in ranks)
        assert sum([r[0] for r in ranks[:: shape[1]]], []) == whole[0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: BatchSampler(3, 4, ALONE), ArgumentError, "batches of 4 rows out of 3"),
        (lambda: BatchSampler(3, 0, ALONE), ArgumentError, "batches of 0 rows"),
        (lambda: BatchSampler(9, 3, NamedSharding(Mesh([0, 1], "data"), P("data"))), ShapeError, "does not divide among the 2 ranks"),
        (lambda: BatchSampler(9, 3, "data"), ArgumentError, "takes a NamedSharding, not a str"),
        (lambda: BatchSampler(9, 3, ALONE, seed=-1), ArgumentError, "a seed is in 0"),
        (lambda: BatchSampler(9, 3, ALONE).rows(-1), ArgumentError, "a step is not negative"),
        (lambda: BatchSampler(9, 3, ALONE).batch(np.zeros(8), 0), ArgumentError, "a dataset of 9 rows, and an array of 8"),
    ],
)
def test_misuse(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
