"""Programs as tutorials and JAX's users have them: several ranks, simulated and real, get what one process gets."""

from __future__ import annotations

import numpy as np
import pytest

import hologram as hg
from hologram.distributed import simulate
from tests.support.distributed import sharded_programs, tutorials
from tests.support.distributed.launching import needs_torch
from tests.support.distributed.starting import said_by_ranks

pytestmark = pytest.mark.filterwarnings("ignore::hologram.errors.GatherWarning")


@pytest.mark.costly(3)
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("name", tutorials.PROGRAMS)
def test_ranks_get_what_one_process_gets(name: str, ranks: int) -> None:
    want = [np.asarray(x) for x in hg.tree.leaves(tutorials.PROGRAMS[name][1]())]
    first, *others = simulate(ranks).run(tutorials.run, name)
    assert len(first) == len(want)
    for x, y in zip(first, want, strict=True):
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=2e-4, atol=2e-5 * max(1.0, float(np.abs(y).max())))
    for other in others:
        assert all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


@needs_torch
def test_processes_have_the_bits_of_simulated_ranks(everything: bool) -> None:
    if not everything:
        pytest.skip("processes that compile many programs: --all")
    said = said_by_ranks(sharded_programs.__name__, 2)
    assert [said[r]["digests"] for r in range(2)] == simulate(2).run(tutorials.digests)
