"""Plans of Fourier transforms: every access of every step lies within its array, every vector has as many lanes as it needs."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hologram.backends.llvm.fft.plan import OPERAND, RESULT, WORK, Phase, Request, Where, plan
from hologram.backends.llvm.fft.program import MEMORY, Step, View, X
from hologram.graph.library.fft.sizes import work_elements


def covered(s: Step, of_target: bool) -> tuple[int, int]:
    """Rows, and elements of a row, that a step reads or writes."""
    what, width = s.code.what, s.code.width
    if what in ("pass", "last", "scaled"):
        return s.runs * s.blocks * s.code.radix, s.lanes
    if what == "first":
        return 1, s.lanes * s.code.radix
    if what in ("gather", "scatter"):
        return (width, s.lanes) if of_target == (what == "scatter") else (s.lanes, width)
    if what == "turn":
        return (s.lanes, s.blocks) if of_target else (s.blocks, s.lanes)
    if what in ("post", "pre"):
        return 1, s.lanes + (of_target == (what == "post"))
    if what in ("postrows", "prerows"):
        return s.blocks + (of_target == (what == "postrows")), s.lanes
    return s.blocks, s.lanes


def extents(view: View, rows: int, lanes: int, itemsize: int) -> list[tuple[int, int, int]]:
    """``(base, first byte, byte after the last)`` of the arrays of a view."""
    low, high = min(0, (rows - 1) * view.row), max(0, (rows - 1) * view.row) + lanes
    item = itemsize * (2 if view.form in "cs" else 1)
    places = [view.real, view.imaginary] if view.form == "p" else [view.real]
    return [(p.base, p.at + low * item, p.at + high * item) for p in places]


def starts(where: Where, p: Phase, last: bool) -> tuple[int, int]:
    """The least and the greatest address of a phase's blocks in an array."""
    first, final = (0, max(0, p.blocks - 2)) if not last else (p.blocks - 1, p.blocks - 1)
    low, high = (min(b * p.width, p.limit) * where.step for b in (first, final))
    return low, high + (p.outer - 1) * where.outer


def verify(r: Request) -> None:
    itemsize = {"f32": 4, "f64": 8}[r.kind]
    result = tuple({"fft": n, "rfft": n // 2 + 1, "irfft": r.n}[r.name] if i == r.axes[-1] else n for i, n in enumerate(r.shape))
    sizes = {
        OPERAND: prod(r.shape) * itemsize * (1 if r.name == "rfft" else 2),
        RESULT: prod(result) * itemsize * (1 if r.name == "irfft" else 2),
        WORK: 2 * itemsize * work_elements(r.name, r.shape, r.axes, r.n, itemsize),
    }
    phases = plan(r)
    assert phases
    for p in phases:
        for last, steps in ((False, p.steps if p.blocks > 1 else []), (True, p.last_steps)):
            for s in steps:
                assert s.lanes >= (
                    s.code.radix if s.code.what in ("gather", "scatter") else s.code.width if s.code.what not in ("post", "pre") else 1
                )
                assert s.code.what not in ("post", "pre") or s.runs == 0 or s.runs >= s.code.width
                assert s.code.what != "turn" or s.blocks >= s.code.width
                for view, of_target in ((s.source, False), (s.target, True)):
                    for base, low, high in extents(view, *covered(s, of_target), itemsize):
                        if base == MEMORY:
                            assert 0 <= low and high <= p.memory, s
                        else:
                            where = p.source if base == X else p.target
                            least, greatest = starts(where, p, last)
                            assert 0 <= least + low and greatest + high <= sizes[where.array], (r, s)


SHAPES = st.lists(st.integers(1, 40), min_size=1, max_size=3).map(tuple)
LONG = st.sampled_from([2**15, 2**16, 3**10, 40_960, 65_537, 65_538, 100_000, 131_074])


@st.composite
def requests(draw: st.DrawFn) -> Request:
    shape = draw(st.one_of(SHAPES, st.tuples(st.integers(1, 4), LONG), st.tuples(st.integers(1, 3000), st.integers(1, 70))))
    axes = draw(st.permutations(range(len(shape))))[: draw(st.integers(1, len(shape)))]
    name, kind = draw(st.sampled_from(["fft", "rfft", "irfft"])), draw(st.sampled_from(["f32", "f64"]))
    n = draw(st.sampled_from([0, 1])) + 2 * (shape[axes[-1]] - 1) if name == "irfft" else 0
    if name == "irfft" and n == 0:
        n = 1
    width = draw(st.sampled_from([16, 32, 64])) // {"f32": 4, "f64": 8}[kind]
    return Request(name, kind, shape, tuple(axes), n, name == "irfft", draw(st.sampled_from(["backward", "ortho", "forward"])), width)


@given(requests())
def test_accesses_are_in_bounds(r: Request) -> None:
    verify(r)


@given(requests())
def test_symbols_say_all(r: Request) -> None:
    assert Request.of(r.symbol) == r and r.symbol.isidentifier()


@pytest.mark.parametrize("symbol", ["hg_dpotrf", "hg_fft_plan_fft", "hg_fft_plan_fft_f32_2xa_1_0_f_backward_16"])
def test_other_symbols_are_refused(symbol: str) -> None:
    with pytest.raises(KeyError):
        Request.of(symbol)
