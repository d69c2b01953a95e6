"""Reductions whose chunks take several rows, far apart, at once: the written order, rows that two chunks run, and kernels that stay as they were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.graph.kernel.ir import Kernel, Loop
from hologram.graph.pipeline import canonicalise
from hologram.graph.schedule.choose import part_starts
from hologram.ir.instruction import Ins
from hologram.ir.interpreter import evaluate
from tests.support.building import kernels, scheduled
from tests.support.kernel_interpreter import run_schedule
from tests.support.optable import mismatch, seeded

ROWS = [63, 64, 129, 131]  # one row a chunk, two, four that overlap by three and by one


def rows_at_once(kernel: Kernel) -> int:
    return max((len(s.accs) for s in kernel.walk() if isinstance(s, Loop)), default=0)


def check(program: Callable[..., Any], *arrays: np.ndarray) -> list[Kernel]:
    """The program gives the reference's bits, compiled and interpreted; its kernels."""
    graph = hg.make_graph(program)(*arrays)
    with np.errstate(all="ignore"):
        (want,) = evaluate(graph, arrays)
        schedule = scheduled(canonicalise(graph, "exact"))
        (interpreted,) = run_schedule(schedule, arrays)
    assert not mismatch(interpreted, want, 0).any()
    assert not mismatch(np.asarray(hg.jit(program, precision="exact")(*arrays)), want, 0).any()
    return kernels(schedule)


def test_parts_cover_all_rows() -> None:
    assert part_starts(128, 4) == [0, 32, 64, 96]
    assert part_starts(131, 4) == [0, 33, 66, 98]


@pytest.mark.crossed
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("op", ["sum", "max", "prod", "argmin", "any"])
def test_bits_are_those_of_the_written_order(op: str, rows: int) -> None:
    x = seeded(rows, op).standard_normal((rows, 70)).astype(np.float32)
    x[5, 7], x[-1, 3] = np.nan, -0.0
    check(lambda x: getattr(hnp, op)(x, axis=1), x)


@pytest.mark.parametrize("value", [-np.inf, np.inf, np.nan, -0.0])
@pytest.mark.parametrize("shape", [(130, 70), (3, 7000)])
def test_positions_of_rows_of_one_value(shape: tuple[int, int], value: float) -> None:
    """The first is meant, also where all elements are what an accumulator starts from."""
    x = np.full(shape, value, np.float32)
    x[1, 40:43] = 0.0, np.nan, np.nan
    for op in (hnp.argmax, hnp.argmin):
        check(lambda x, op=op: op(x, axis=1), x)
        check(lambda x, op=op: op(x, axis=0), x)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float64"])
def test_element_types(dtype: str) -> None:
    check(lambda x: hnp.sum(x * x, axis=-1), (seeded(dtype).standard_normal((13, 10, 50)) * 9).astype(dtype))


def test_rows_of_several_axes_and_pages() -> None:
    rng = seeded(3)
    (kernel,) = check(lambda x: hnp.sum(x[:, :11], axis=2), rng.standard_normal((12, 13, 3500)).astype(np.float32))
    assert rows_at_once(kernel) == 4


def test_what_rows_share_is_read_once() -> None:
    rng = seeded(4)
    (kernel,) = check(lambda a, x: hnp.sum(a * x, axis=1), rng.standard_normal((256, 100)).astype(np.float32), np.ones(100, np.float32))
    assert str(kernel).count("load(") == 5


def test_only_the_part_of_a_ragged_end_is_guarded() -> None:
    first, _ = check(lambda x: hnp.sum(x), seeded(5).standard_normal(3072 * 150 + 100).astype(np.float32))
    assert rows_at_once(first) == 4 and str(first).count("inside(") == 1


def test_rows_that_run_twice_do_not_read_what_they_wrote() -> None:
    x, y = np.ones((131, 40), np.float32), np.ones(131, np.float32)
    f = hg.jit(lambda x, y: y + hnp.sum(x, axis=1), donate_argnums=1)
    for _ in range(3):
        assert np.asarray(f(x, hg.tensor(y))).tolist() == [41.0] * 131


def test_kernels_of_several_passes_take_one_row() -> None:
    x = np.ones((256, 100), np.float32)
    (kernel,) = check(lambda x: hnp.sum(x - hnp.max(x, axis=1, keepdims=True), axis=1), x)
    assert rows_at_once(kernel) == 1


@pytest.mark.parametrize(("heads", "positions"), [(3, 50), (8, 64)])
def test_rows_are_taken_in_the_order_of_memory(heads: int, positions: int) -> None:
    """Of a cache of keys, (position, head, element), all heads of a position are read before the next, though results are by head."""
    rng = seeded(heads, positions)
    q, k = rng.standard_normal((heads, 64)).astype(np.float32), rng.standard_normal((positions, heads, 64)).astype(np.float32)
    (kernel,) = check(lambda q, k: hnp.einsum("hd,phd->hp", q, k), q, k)
    (index, *_) = (s.attrs[1] for s in kernel.walk() if isinstance(s, Ins) and s.op == "load" and s.attrs[0].size == k.size)
    assert f"64*(p%{heads})" in str(index)
    check(lambda k: hnp.max(k, axis=-1).T, k)


INDEXED: dict[str, tuple[Callable[..., Any], int]] = {
    "a row of all": (lambda x, k: (x * x[k[0]]).sum(1), 4),
    "a row and a column": (lambda x, k: (x * x[k[0]] * x[:, k[1]][:, None]).sum(1), 4),
    "beyond the end": (lambda x, k: (x * x[k[0] + 1000]).sum(1), 4),
    "a row for each": (lambda x, k: (x[(hnp.arange(130) * k[0]) % 130] * x[3]).sum(1), 1),
}


@pytest.mark.parametrize("name", INDEXED)
def test_rows_whose_indices_are_computed(name: str) -> None:
    """Several at once where the index is one for all of them."""
    program, most = INDEXED[name]
    x, k = seeded(name).standard_normal((130, 70)).astype(np.float32), np.array([5, 60])
    found = check(program, x, k)
    assert max(map(rows_at_once, found)) == most, found


def test_rows_times_one_of_them_in_a_loop() -> None:
    def program(x: Any) -> Any:
        return hg.fori_loop(0, 100, lambda j, x: x.at[:, j].set(x @ x[j]), x)

    x = seeded("loop").standard_normal((100, 100)).astype(np.float32) / 100
    graph = hg.make_graph(program)(x)
    (want,) = evaluate(graph, [x])
    assert not mismatch(np.asarray(hg.jit(program, precision="exact")(x)), want, 0).any()
