"""Loops that write an array before they read it: what stands there at first is not filled, unless somebody sees it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from tests.support.optable import seeded

PLANES, WIDTH, FILL = 24, 96, 7.0
FILL_BITS = "0x40e00000"  # of the fill in the text of kernels

Loop = tuple[int, int, int, int, tuple[int, ...], tuple[int, ...]]  # first, by, count, length, offsets that are read before and behind the write


def _run(x: Any, filled: Any, loop: Loop, take: Any, put: Any, repeat: Any) -> Any:
    first, by, count, length, before, behind = loop

    def step(i: Any, x: Any) -> Any:
        at = first + by * i
        new = sum([take(x, at + d, count) * 0.25 for d in before], 1.0 + 0.5 * take(filled, at, count))
        x = put(x, new, at)
        return put(x, sum([take(x, at + d, count) * 0.125 for d in behind], take(x, at, count)), at) if behind else x

    return repeat(length, step, x)


def _within(at: int, count: int) -> int:
    """Where a window begins: numbers below 0 count from the end, and windows lie within the array."""
    return min(max(at + PLANES * (at < 0), 0), PLANES - count)


def _numpy(x: np.ndarray, filled: np.ndarray, loop: Loop) -> np.ndarray:
    def take(x: np.ndarray, at: int, count: int) -> np.ndarray:
        at = _within(at, count)
        return x[at : at + count]

    def put(x: np.ndarray, new: np.ndarray, at: int) -> np.ndarray:
        x = x.copy()
        at = _within(at, len(new))
        x[at : at + len(new)] = new
        return x

    def repeat(length: int, step: Any, x: np.ndarray) -> np.ndarray:
        for i in range(length):
            x = step(i, x)
        return x

    return _run(x, filled, loop, take, put, repeat)


def _program(known: int, loop: Loop) -> Any:
    def f(first: Any, filled: Any) -> Any:
        x = hnp.full((PLANES, WIDTH), FILL, dtype="float32").at[:known].set(first)
        lax = hg.lax
        return _run(
            x,
            filled,
            loop,
            lax.dynamic_slice_in_dim,
            lambda x, new, at: lax.dynamic_update_slice_in_dim(x, new, at, 0),
            lambda n, s, x: hg.fori_loop(0, n, s, x),
        )

    return hg.jit(f)


def _check(known: int, loop: Loop) -> str:
    rng = seeded(f"{known} {loop}")
    first, filled = rng.standard_normal((known, WIDTH)).astype(np.float32), rng.standard_normal((PLANES, WIDTH)).astype(np.float32)
    x = np.full((PLANES, WIDTH), FILL, np.float32)
    x[:known] = first
    f = _program(known, loop)
    np.testing.assert_allclose(np.asarray(f(first, filled)), _numpy(x, filled, loop), rtol=1e-5, atol=1e-5)
    return f.lower(first, filled).as_text("kernels")


def _draw(seed: int) -> tuple[int, Loop]:
    rng = seeded(f"loops {seed}")
    by, count = int(rng.choice((1, 1, -1, 2, 3))), int(rng.choice((1, 1, 2)))
    first = int(rng.integers(0, PLANES - count + 1)) if rng.random() < 0.5 else (1 if by > 0 else PLANES - 1 - count)
    room = (PLANES - count - first) // by if by > 0 else first // -by
    length = int(rng.integers(0, room + 3)) if rng.random() < 0.4 else room + 1
    before, behind = (tuple(int(d) for d in rng.choice((-3, -1, -1, 0, 1, 2), int(n))) for n in rng.integers(0, (3, 2)))
    return int(rng.integers(1, 4)), (first, by, count, length, before, behind)


@pytest.mark.parametrize("seed", range(40))
def test_loops_that_write_some_planes_or_all(seed: int) -> None:
    _check(*_draw(seed))


@pytest.mark.parametrize("before", [(), (-1,), (-2, -1)], ids=str)
def test_what_is_written_before_it_is_read_is_not_filled(before: tuple[int, ...]) -> None:
    assert FILL_BITS not in _check(2, (2, 1, 1, PLANES - 2, before, ()))


@pytest.mark.parametrize(
    ("known", "loop"),
    [
        (2, (2, 1, 1, PLANES - 3, (-1,), ())),  # the last plane is not written
        (2, (2, 1, 1, PLANES - 2, (0,), ())),  # a plane is read by the step that writes it
        (1, (2, 1, 1, PLANES - 2, (-1,), ())),  # the first plane that is read was not written
        (2, (2, 2, 1, PLANES // 2 - 1, (), ())),  # every second plane
    ],
    ids=["a plane is left", "read before", "read at first", "every second"],
)
def test_what_is_seen_is_filled(known: int, loop: Loop) -> None:
    assert FILL_BITS in _check(known, loop)


def test_a_value_that_others_read_is_filled() -> None:
    def f(first: Any) -> Any:
        x = hnp.full((PLANES, WIDTH), FILL, dtype="float32").at[:1].set(first)
        return x, hg.fori_loop(1, PLANES, lambda i, y: y.at[i].set(y[i - 1] + 1), x)

    start = np.ones((1, WIDTH), np.float32)
    x, y = hg.jit(f)(start)
    assert (np.asarray(x)[1:] == FILL).all() and (np.asarray(y) == np.arange(1, PLANES + 1)[:, None]).all()


def test_counters_that_leave_their_type() -> None:
    """A counter of eight bits goes from 127 to -128, which names a plane from the end."""

    def f(row: Any) -> Any:
        x = hnp.full((300, WIDTH), FILL, dtype="float32").at[:1].set(row)

        def step(carry: Any, _: Any) -> Any:
            k, x = carry
            return (k + hnp.asarray(1, "int8"), hg.lax.dynamic_update_slice_in_dim(x, row, k, 0)), None

        return hg.scan(step, (hnp.asarray(100, "int8"), x), None, length=60)[0][1]

    got = np.asarray(hg.jit(f)(np.ones((1, WIDTH), np.float32)))
    want = np.full(300, FILL)
    want[[0, *range(100, 128), *range(172, 204)]] = 1
    assert (got == want[:, None]).all()
