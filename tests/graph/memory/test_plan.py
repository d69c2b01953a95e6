"""The planner: no two live buffers in one place, whole pages, aligned offsets, a peak near the lower bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hologram.errors import CompileError
from hologram.graph.memory import arena
from hologram.graph.memory.arena import (
    LINE_BYTES,
    MAX_PAGES,
    PAGE_BYTES,
    POOL_PAGES,
    SLACK,
    ArenaAllocation,
    Lifetime,
    allocate,
    class_coordinates,
    class_index,
)
from hologram.graph.memory.verify import verify_allocation

MIB = 2**20
_sizes = st.one_of(
    st.integers(0, 200),
    st.sampled_from([PAGE_BYTES - 1, PAGE_BYTES, PAGE_BYTES + 1, 5 * PAGE_BYTES, MAX_PAGES * PAGE_BYTES, 4 * MIB]),
    st.integers(0, 500_000),
)


@st.composite
def lifetimes(draw: st.DrawFn) -> list[Lifetime]:
    out: list[Lifetime] = []
    for i in range(draw(st.integers(0, 40))):
        first = draw(st.integers(0, 20))
        aliases = draw(st.lists(st.sampled_from(out), max_size=3)) if out else []
        nbytes = aliases[0].nbytes if aliases and draw(st.booleans()) else draw(_sizes)
        out.append(Lifetime(i, nbytes, first, first + draw(st.integers(0, 12)), tuple(a.id for a in aliases)))
    return out


def _verify(asked: list[Lifetime], got: ArenaAllocation) -> None:
    verify_allocation(asked, got)
    assert got.lower_bound <= got.peak == got.arena_bytes


@given(lifetimes())
def test_live_buffers_never_overlap(asked: list[Lifetime]) -> None:
    _verify(asked, allocate(asked))


@given(lifetimes(), st.data())
def test_a_plan_with_overlaps_is_refused(asked: list[Lifetime], data: st.DataObject) -> None:
    """Whatever buffer with bytes is moved onto another of its time: the verifier sees it."""
    got = allocate(asked)
    filled = [p for p in got.buffers.values() if p.nbytes]
    pairs = [(a, b) for a in filled for b in filled if a is not b and a.first <= b.last and b.first <= a.last and a.last != b.first != b.last]
    if pairs:
        a, b = data.draw(st.sampled_from(pairs))
        moved = replace(a, kind="linear", class_index=None, offset=b.offset)
        wrong = ArenaAllocation({**got.buffers, a.id: moved}, got.arena_bytes + a.nbytes + LINE_BYTES, got.lower_bound)
        if a.offset != b.offset:
            with pytest.raises(CompileError, match="live at one time and overlap"):
                verify_allocation(asked, wrong)


@pytest.mark.parametrize(
    ("change", "trouble"),
    [
        ({"offset": 1}, "no whole number of lines"),
        ({"offset": 64 * MIB}, "inside of the arena"),
        ({"nbytes": 1}, "does not place the buffers"),
        ({"last": 9}, "does not place the buffers"),
        ({"kind": "page", "class_index": 3}, "is not in its page"),
        ({"class_index": 3}, "has a page and is linear"),
    ],
)
def test_a_plan_with_a_wrong_place_is_refused(change: dict[str, Any], trouble: str) -> None:
    asked = [Lifetime("a", MIB, 0, 1), Lifetime("b", MIB, 1, 2)]
    got = allocate(asked)
    verify_allocation(asked, got)
    with pytest.raises(CompileError, match=trouble):
        verify_allocation(asked, ArenaAllocation({**got.buffers, "a": replace(got.buffers["a"], **change)}, got.arena_bytes, got.lower_bound))


@given(lifetimes())
def test_the_plan_depends_on_nothing_but_the_request(asked: list[Lifetime]) -> None:
    renamed = [Lifetime(f"buffer {b.id}", b.nbytes, b.first, b.last, tuple(f"buffer {a}" for a in b.may_alias)) for b in asked]
    assert allocate(asked) == allocate(asked)
    assert [p.offset for p in allocate(asked).buffers.values()] == [p.offset for p in allocate(renamed).buffers.values()]


@given(lifetimes())
def test_a_step_that_is_left_to_the_last_keeps_the_slack_in_no_packing(asked: list[Lifetime]) -> None:
    blocks = arena._blocks(asked)
    enough = int(arena._most_alive(blocks, [b.lines for b in blocks]) * (1 + SLACK))
    for paged in arena._in_pages(blocks, enough):
        if arena._is_too_large(blocks, paged, enough):
            assert all(p.peak > enough for p in arena._attempts(blocks, arena._overlaps(blocks), paged, enough))


@given(lifetimes())
def test_lower_bound_is_the_largest_sum_alive_where_nothing_is_taken_over(asked: list[Lifetime]) -> None:
    asked = [Lifetime(b.id, b.nbytes, b.first, b.last) for b in asked]
    moments = range(max((b.last for b in asked), default=0) + 1)
    sums = [sum(-(-b.nbytes // LINE_BYTES) * LINE_BYTES for b in asked if b.first <= t <= b.last) for t in moments]
    assert allocate(asked).lower_bound == max(sums)


def test_an_element_wise_chain_stays_in_one_place() -> None:
    chain = [Lifetime(i, MIB, i, i + 1, (i - 1,)) for i in range(50)]
    got = allocate(chain)
    assert got.peak == got.lower_bound == MIB
    assert {p.offset for p in got.buffers.values()} == {0}


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(Lifetime("b", 2 * MIB, 1, 2, ("a",)), id="another size"),
        pytest.param(Lifetime("b", MIB, 1, 2), id="not asked for"),
        pytest.param(Lifetime("b", MIB, 0, 2, ("a",)), id="the other is read again later"),
        pytest.param(Lifetime("b", MIB, 1, 2, ("elsewhere",)), id="not a buffer of the plan"),
    ],
)
def test_no_address_is_taken_over(second: Lifetime) -> None:
    got = allocate([Lifetime("a", MIB, 0, 1), second])
    assert got.peak == MIB + second.nbytes


def test_a_place_is_handed_over_once_though_the_first_heir_dies_at_birth() -> None:
    asked = [Lifetime("a", MIB, 0, 1), Lifetime("x", MIB, 1, 1, ("a",)), Lifetime("y", MIB, 1, 2, ("a",))]
    got = allocate(asked)
    verify_allocation(asked, got)
    assert got.peak == 2 * MIB


def test_one_input_is_taken_over_by_one_output() -> None:
    asked = [Lifetime("a", MIB, 0, 1), Lifetime("b", MIB, 0, 1), *(Lifetime(c, MIB, 1, 2, ("a", "b")) for c in "xyz")]
    got = allocate(asked)
    _verify(asked, got)
    assert got.peak == 3 * MIB


def test_pages_are_taken_from_the_lowest() -> None:
    got = allocate([Lifetime(i, PAGE_BYTES, i, i + 1) for i in range(10)])
    assert [p.class_index for p in got.buffers.values()] == [0, 1] * 5


def test_a_full_pool_overflows_into_linear_offsets() -> None:
    asked = [Lifetime(i, PAGE_BYTES, 0, 1) for i in range(POOL_PAGES + 4)]
    got = allocate(asked)
    _verify(asked, got)
    assert sorted(p.class_index for p in got.buffers.values() if p.class_index is not None) == list(range(POOL_PAGES))
    assert got.peak == got.lower_bound


def test_pages_yield_where_they_would_waste_more_than_the_slack() -> None:
    wasteful = allocate([Lifetime("a", PAGE_BYTES + LINE_BYTES, 0, 1), Lifetime("b", PAGE_BYTES, 0, 1)])
    assert [p.kind for p in wasteful.buffers.values()] == ["linear", "page"] and wasteful.peak == wasteful.lower_bound
    small_beside_large = allocate([Lifetime("a", LINE_BYTES, 0, 1), Lifetime("b", 4 * MIB, 0, 1)])
    assert small_beside_large.buffers["a"].kind == "page" and small_beside_large.peak <= 1.05 * small_beside_large.lower_bound


def _forward_and_backward(layers: int) -> list[Lifetime]:
    """Activations of a deep network: each lives until its own gradient, weight gradients and small statistics beside them."""
    end = 3 * layers
    out = []
    for i in range(layers):
        out.append(Lifetime(f"activation {i}", 400_000 + 8_192 * (i % 5), i, end - 2 * i))
        out.append(Lifetime(f"statistics {i}", 2_048, i, end - 2 * i))
        out.append(Lifetime(f"gradient {i}", 400_000 + 8_192 * (i % 5), end - 2 * i, end - 2 * i + 2))
        out.append(Lifetime(f"weight gradient {i}", 65_536 * (1 + i % 3), end - 2 * i, end + 1))
    return out


def _image_pipeline() -> list[Lifetime]:
    """A few planes of one size, halved and whole, with row and scalar statistics between them."""
    plane = 606 * 512 * 4
    sizes = [3 * plane, plane, plane, 512 * 4, plane // 4, 4, 3 * plane, plane, 4, 3 * plane]
    return [Lifetime(i, n, i, min(i + 1 + i % 3, len(sizes))) for i, n in enumerate(sizes)]


def _attention(heads: int) -> list[Lifetime]:
    out = [Lifetime(f"{m}", 4 * MIB, 0, heads) for m in "qkv"]
    for h in range(heads):
        out += [Lifetime(f"scores {h}", MIB, h, h + 1), Lifetime(f"weights {h}", MIB, h + 1, h + 2, (f"scores {h}",))]
    return out


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(_forward_and_backward(24), id="forward and backward"),
        pytest.param(_image_pipeline(), id="image pipeline"),
        pytest.param(_attention(8), id="attention"),
        pytest.param([Lifetime(i, 4, i, i + 2) for i in range(8)], id="scalars"),
        pytest.param([Lifetime(i, 32_768, i, i + 2) for i in range(20)], id="small rows"),
        pytest.param([Lifetime(i, 1000 * (13 * i % 23 + 1), i, i + 1 + 7 * i % 5) for i in range(60)], id="mixed sizes"),
    ],
)
def test_peak_is_near_the_lower_bound(asked: list[Lifetime]) -> None:
    got = allocate(asked)
    _verify(asked, got)
    assert got.peak <= 1.05 * got.lower_bound


def test_class_indices_name_every_page_once() -> None:
    names = [class_coordinates(c) for c in range(POOL_PAGES)]
    assert [class_index(*n) for n in names] == list(range(POOL_PAGES)) and len(set(names)) == POOL_PAGES
    for wrong in ((4, 0, 0), (0, 3, 0), (0, 0, 8), (-1, 0, 0)):
        with pytest.raises(ValueError, match="no page has the coordinates"):
            class_index(*wrong)
    with pytest.raises(ValueError, match="page 96 is not among the 96"):
        class_coordinates(96)


def test_wrong_requests_are_refused() -> None:
    with pytest.raises(ValueError, match="one id"):
        allocate([Lifetime("a", 1, 0, 0), Lifetime("a", 1, 0, 0)])
    with pytest.raises(ValueError, match="from kernel 2 to kernel 1"):
        allocate([Lifetime("a", 1, 2, 1)])


def test_the_table_names_pages_offsets_and_the_ratio() -> None:
    text = str(allocate([Lifetime("a", 2 * PAGE_BYTES, 0, 1), Lifetime("b", PAGE_BYTES, 0, 1), Lifetime("c", 8 * MIB, 1, 2)]))
    assert text.splitlines() == [
        "buffer  place       offset      bytes  first  last",
        "a       pages 0..1       0     24,576      0     1",
        "b       page 2      24,576     12,288      0     1",
        "c       linear      36,864  8,388,608      1     2",
        "peak 8,425,472 bytes, lower bound 8,425,472, ratio 1.000",
    ]
    assert str(allocate([])) == "no buffers of intermediates"
