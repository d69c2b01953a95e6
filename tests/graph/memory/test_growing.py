"""Allocations of plans with symbolic extents: every buffer fits, none overlaps another that lives at the same time, and few are packed anew."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from hologram.graph.memory.arena import ArenaAllocation, Lifetime, allocate
from hologram.graph.memory.growing import GrowingArena
from hologram.ir.symbolic import Int, floordiv, substitute, var

N, M = var("n", 2), var("m", 2)
GROWING: list[Int] = [4 * N, 64 * N * M, 256, 4 * N + 4 * M]
BYTES = [*GROWING, 8000 + 4 * M - 4 * (N % 7)]
SHRINKING: list[Int] = [4 * N, 1200 - 4 * N, 256, 1200 + 4 * M - 4 * N, floordiv(64 * N * M, 301 - N)]
LIVES = [(0, 2), (1, 3), (2, 2), (2, 4), (3, 4)]


class Plan:
    """A plan of buffers, which counts how often it is packed."""

    symbols = ["m", "n"]

    def __init__(self, nbytes: list[Int]) -> None:
        self.nbytes, self.packed = nbytes, 0

    def at(self, *values: int) -> tuple[None, tuple[int, ...]]:
        return None, tuple([substitute(b, dict(zip(self.symbols, values, strict=True))) for b in self.nbytes])  # type: ignore[misc]

    def allocate(self, values: Mapping[str, int]) -> ArenaAllocation:
        self.packed += 1
        return allocate([Lifetime(i, substitute(b, values), *lives) for i, (b, lives) in enumerate(zip(self.nbytes, LIVES, strict=False))])  # type: ignore[arg-type]


@given(st.lists(st.tuples(st.integers(2, 300), st.integers(2, 300)), min_size=1, max_size=20), st.sampled_from([BYTES, SHRINKING]))
def test_buffers_fit_and_do_not_overlap(sizes: list[tuple[int, int]], of: list[Int]) -> None:
    plan = Plan(of)
    arena = GrowingArena(plan)
    for n, m in sizes:
        offsets, nbytes = arena.at((m, n), plan.at(m, n)[1])
        needed = [substitute(b, {"n": n, "m": m}) for b in of]
        spans = [(at, at + size, lives) for at, size, lives in zip(offsets, needed, LIVES, strict=True)]
        assert all(end <= nbytes for _, end, _ in spans)
        for i, (a, b, (first, last)) in enumerate(spans):
            for c, d, (begin, end) in spans[:i]:
                assert last < begin or end < first or b <= c or d <= a


def test_a_size_that_grows_is_packed_at_powers_of_two() -> None:
    plan = Plan(GROWING)
    arena = GrowingArena(plan)
    for n in range(2, 300):
        arena.at((64, n), plan.at(64, n)[1])
    assert plan.packed == 9  # from 2 to 512
