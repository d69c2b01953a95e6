"""Which accesses are vectors of neighbours: against the places themselves, and in the text of kernels that read heads."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.c.analysis.gemm import MATRIX_UNIT_TILE
from hologram.backends.c.analysis.vectors import _is_aligned, _is_near
from hologram.backends.c.source import Program
from hologram.graph.lower.lowered import Lowered
from hologram.graph.pipeline import canonicalise, compile_to_plan
from hologram.ir.symbolic import Int, counter, floordiv, mod, substitute


@st.composite
def indices(draw: st.DrawFn) -> Int:
    """A sum of terms in ``i`` and a number of a row, with quotients and remainders by sizes of heads."""
    i, p = counter("i", 96), counter("p", 8)
    out: Int = draw(st.integers(0, 8)) * p
    for _ in range(draw(st.integers(1, 3))):
        divisor, factor = draw(st.sampled_from([4, 6, 8, 12, 16, 32, 96])), draw(st.sampled_from([1, 1, 2, 4, 8, 64]))
        shifted = i + draw(st.sampled_from([0, 0, 4, 5, 8]))
        out = out + factor * draw(st.sampled_from([i, mod(shifted, divisor), floordiv(shifted, divisor), mod(shifted, divisor) * p]))
    return out


@given(indices(), st.sampled_from([2, 4, 8]))
def test_a_vector_is_neighbours_from_a_place_that_its_width_divides(index: Int, width: int) -> None:
    for p in range(3):
        places = [substitute(index, {"i": i, "p": p}) for i in range(96)]
        first = places[::width]
        if _is_near(index, "i", width):
            assert all(places[i] == first[i // width] + i % width for i in range(96))
        if _is_aligned(index, "i", width):
            assert _is_near(index, "i", width) and all(place % width == 0 for place in first)  # type: ignore[operator]


def test_heads_are_read_by_vectors() -> None:
    x = np.zeros((4, 8, 128, 64), np.float32)
    graph = canonicalise(hg.make_graph(lambda x: hnp.tanh(hnp.reshape(hnp.swapaxes(x, 1, 2), (4, 128, 512))))(x), "standard")
    plan = compile_to_plan(graph, "standard", MATRIX_UNIT_TILE)
    text = Program([s.kernel for s in plan.steps if isinstance(s, Lowered)], "cuda", "standard").text
    assert "*(const hg_f32x4 *)(b0 + (i64)((u32)(hg_first) % 64u)" in text


def test_short_rows_share_a_group() -> None:
    """Rows of 64 elements, of which an item takes 4, are 16 to a group of 256 items; nobody waits."""
    x = np.zeros((4, 8, 128, 64), np.float32)
    graph = canonicalise(hg.make_graph(lambda x: hnp.tanh(hnp.swapaxes(x, 1, 2)))(x), "standard")
    (step,) = (s for s in compile_to_plan(graph, "standard", MATRIX_UNIT_TILE).steps if isinstance(s, Lowered))
    program = Program([step.kernel], "cuda", "standard")
    mapping = program.mappings[step.kernel]
    assert (mapping.items, mapping.width, mapping.iterations) == (256, 16, 16)
    assert mapping.groups(4 * 128 * 8) == 4 * 128 * 8 // 16
    assert "hg_team = (i64)threadIdx.x / 16" in program.text and "__syncthreads" not in program.text.partition("kernel0")[2]
