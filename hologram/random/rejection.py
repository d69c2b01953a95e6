"""Sampling by rejection, as a loop of the compiled program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hologram import dtypes
from hologram.control.loops import while_loop
from hologram.numpy.along_axes.reductions import all
from hologram.numpy.creation import zeros
from hologram.numpy.elementwise.functions import where
from hologram.random.keys import fold_in
from hologram.trace.tensor import Tensor


def first_accepted(propose: Callable[[Tensor], tuple[Tensor, Tensor]], key: Any, start: Tensor, done: Tensor) -> Tensor:
    """By element the first value that ``propose(key)``, which gives values and whether they are accepted, accepts; ``start`` where ``done`` holds.

    Round i draws from ``fold_in(key, i)`` for all elements, so an element does not depend on how long others take.
    """

    def step(state: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        i, value, finished = state
        proposal, accepted = propose(fold_in(key, i))
        return i + 1, where(finished | ~accepted, value, proposal), finished | accepted

    return while_loop(lambda state: ~all(state[2]), step, (zeros((), dtype=dtypes.int64), start, done))[1]
