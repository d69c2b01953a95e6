"""Data-parallel training: more ranks learn the same, with their optimiser's state divided or not."""

from __future__ import annotations

import numpy as np
import pytest

from examples import data_parallel
from hologram.distributed import simulate


@pytest.mark.parametrize("zero", [False, True])
def test_ranks_learn_what_one_learns(zero: bool) -> None:
    alone = data_parallel.train(20, zero)
    assert alone[-1] < alone[0] / 2
    first, *others = simulate(4).run(data_parallel.train, 20, zero)
    np.testing.assert_allclose(first, alone, rtol=1e-3)
    assert all(losses == first for losses in others)
