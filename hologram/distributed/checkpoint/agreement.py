"""What ranks tell each other while they write or read a checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from hologram.distributed.gathering import process_allgather
from hologram.errors import CheckpointError
from hologram.support.user_lines import located
from hologram.support.world import current_world

FINE, FAILED = 1, 0


def from_all(number: int) -> list[int]:
    """What each rank gives; all wait here for each other."""
    if current_world().size == 1:
        return [number]
    return [int(n) for n in np.asarray(process_allgather(np.asarray(number, np.int64)))]


@contextmanager
def together(what: str) -> Iterator[list[int]]:
    """Waits at the end of the block for all ranks, which have then all come through it; the list, empty before, has what each appended.

    Where it raises on one rank, all others raise CheckpointError.
    """
    told: list[int] = []
    try:
        yield told
    except Exception:
        from_all(FAILED)
        from_all(0)
        raise
    fine = from_all(FINE)
    numbers = from_all(told.pop() if told else 0)
    if FAILED in fine:
        raise located(CheckpointError(f"{what}: rank {fine.index(FAILED)} has failed"))
    told[:] = numbers
