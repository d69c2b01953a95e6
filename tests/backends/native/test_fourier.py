"""Native Fourier transforms against NumPy in higher precision: sizes, shapes, element types, directions; the same bits on any number of threads."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import hologram as hg
from hologram.backends.llvm.fft import plan
from hologram.backends.llvm.graph import host_calls
from hologram.backends.native import fourier
from hologram.primitives import TABLE
from hologram.settings import override
from tests.support.machines import runnable

COMPLEX = {np.float32: np.complex64, np.float64: np.complex128}
NAMES = ("fft", "ifft", "rfft", "irfft")


def numbers(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    rng = np.random.default_rng([1, *shape])
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def bound(n: int, dtype: Any) -> float:
    """The relative error, in root mean square, that is promised."""
    return float(np.finfo(dtype).eps) * max(1.0, np.log2(max(n, 2)) ** 0.5)


def check(name: str, shape: tuple[int, ...], axes: tuple[int, ...], real: Any, norm: str = "backward") -> None:
    """``shape``: that of the array of which ``rfft`` takes, ``irfft`` gives the real numbers."""
    half = tuple(n // 2 + 1 if i == axes[-1] else n for i, n in enumerate(shape))
    x = numbers(half if name == "irfft" else shape, real if name == "rfft" else COMPLEX[real])
    out = np.full(half if name == "rfft" else shape, np.nan, real if name == "irfft" else COMPLEX[real])
    op = "fft" if name == "ifft" else name
    attributes = {"fft": [axes, False, norm], "ifft": [axes, True, norm], "rfft": [axes, norm], "irfft": [axes, shape[axes[-1]], norm]}[name]
    assert fourier.run(op, [x, out], attributes)
    (want,) = TABLE[op].reference(x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble), *attributes)
    error = np.sqrt(np.mean(np.abs(out - want) ** 2) / np.mean(np.abs(want) ** 2))
    count = int(np.prod([shape[a] for a in axes]))
    assert error <= bound(count, real), (name, shape, axes, float(error / np.finfo(real).eps))


# --- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("real", COMPLEX)
@pytest.mark.parametrize("name", NAMES)
def test_every_small_size(name: str, real: Any, everything: bool) -> None:
    """A row, many rows, columns that are few, and columns in blocks of which the last is not full. Each size in one of these ways for each name."""
    turn = NAMES.index(name)
    for n in range(1, 131):
        ways = [((n,), 0), ((19, n), 1), ((n, 3), 0), ((2, n, 21), 1)]
        if everything or real is np.float32 or n % 3 == turn % 3:
            for shape, axis in ways if everything else [ways[(n + turn) % 4]]:
                check(name, shape, (axis,), real, ("backward", "ortho", "forward")[n % 3])


LARGE = [997, 1000, 1155, 4096, 10007, 46_656, 3**10, 65_537, 2**16, 131_074]


@pytest.mark.crossed
@pytest.mark.parametrize("real", COMPLEX)
@pytest.mark.parametrize("n", LARGE)
def test_large_sizes(n: int, real: Any) -> None:
    """Prime factors that are radices, others, lengths that are done in two halves, even and odd."""
    for name in NAMES if real is np.float32 else NAMES[1::2]:
        check(name, (2, n), (1,), real)
    if n < 10_000:
        check(NAMES[n % 4], (n, 9), (0,), real)


@pytest.mark.parametrize("shape", [(5, 6, 7), (16, 18), (33, 12, 3), (1, 9), (40, 1, 2), (2, 3, 4)])
def test_several_axes(shape: tuple[int, ...]) -> None:
    """In every order: the first one is transformed from the operand, the others where the result is."""
    for count in range(1, len(shape) + 1):
        for axes in itertools.permutations(range(len(shape)), count):
            for name in NAMES:
                check(name, shape, axes, np.float32, "ortho")


def test_several_axes_of_which_one_is_long() -> None:
    for axes in ((0, 1), (1, 0)):
        for name in NAMES:
            check(name, (3, 40_000), axes, np.float32)


@pytest.mark.parametrize("level", runnable(), ids=lambda level: level or "host")
def test_every_level_of_the_instruction_set(level: str) -> None:
    with override(target=level):
        for n, name in ((64, "fft"), (90, "irfft"), (77, "rfft"), (101, "ifft")):
            check(name, (18, n), (1,), np.float32)
            check(name, (n, 5), (0,), np.float64)
        check("rfft", (2**16,), (0,), np.float32)


# --- programs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("precision", "python"), [("standard", False), ("fast", False), ("exact", True)])
def test_programs_need_no_python_but_for_numpy_s_bits(precision: str, python: bool) -> None:
    def every(x: Any) -> Any:
        return hg.fft.irfft2(hg.fft.rfft2(hg.fft.ifftn(hg.fft.fft(x), norm="ortho").real))

    x = numbers((6, 10), np.complex64)
    lowered = hg.jit(every, precision=precision).lower(x)
    assert ("call i64 @hg_call_host" in lowered.as_text("llvm")) == python
    np.testing.assert_allclose(np.asarray(hg.jit(every, precision=precision)(x)), np.sqrt(60) * np.fft.ifftn(np.fft.fft(x)).real, atol=1e-5)


@pytest.mark.parametrize("shape", [(300, 96), (2, 2**16), (130, 64, 9)])
def test_threads_do_not_change_bits(shape: tuple[int, ...]) -> None:
    x = numbers(shape, np.float32)
    run = hg.jit(lambda x: (hg.fft.rfftn(x), hg.fft.fft(x), hg.fft.irfft(hg.fft.fft(x, axis=0))))
    results = []
    try:
        for count in (1, 2, 5):
            hg.set_num_threads(count)
            results.append([np.asarray(a) for a in run(x)])
    finally:
        hg.set_num_threads(0)
    for other, (a, b) in itertools.product(results[1:], enumerate(results[0])):
        np.testing.assert_array_equal(other[a], b)


def test_loops_have_room_for_what_transforms_work_in() -> None:
    x, y = numbers((2**16,), np.complex64), numbers((9, 12), np.float32)

    @hg.jit
    def run(x: Any, y: Any) -> Any:
        x = hg.fori_loop(0, 2, lambda i, x: hg.fft.fft(x, norm="ortho"), x)
        return x, hg.fori_loop(0, 3, lambda i, y: hg.fft.irfft2(hg.fft.rfft2(y) * 2), y)

    twice, scaled = run(x, y)
    np.testing.assert_allclose(np.asarray(twice), np.roll(x[::-1], 1), atol=1e-5)
    np.testing.assert_allclose(np.asarray(scaled), 8 * y, atol=1e-5)


def test_symbolic_sizes_run_natively(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def counted(name: str, arrays: list[np.ndarray], attributes: list[Any]) -> bool:
        seen.append(arrays[0].shape)
        return fourier.run(name, arrays, attributes)

    monkeypatch.setitem(host_calls.ROUTINES, "rfft", counted)
    run = hg.jit(lambda x: hg.fft.rfft(x * 1.25), dynamic=True)
    for n in (12, 35, 70_000):
        x = numbers((n,), np.float32)
        np.testing.assert_allclose(np.asarray(run(x)), np.fft.rfft(x * 1.25), atol=1e-5 * n**0.5)
    assert seen == [(12,), (35,), (70_000,)]


def test_what_takes_too_much_memory_goes_to_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MAX_MEMORY", 1000)
    plan.plan.cache_clear()
    try:
        x = numbers((333, 6), np.complex64)
        run = hg.jit(lambda x: hg.fft.fft(x, axis=0))
        assert "call i64 @hg_call_host" in run.lower(x).as_text("llvm")
        np.testing.assert_allclose(np.asarray(run(x)), np.fft.fft(x, axis=0), atol=1e-3)
    finally:
        plan.plan.cache_clear()


def test_a_call_that_loads_another_s_code_finds_its_plan() -> None:
    """Plans go with the programs that have them, and are made again."""
    x = numbers((3, 50), np.complex128)
    for _ in range(2):
        np.testing.assert_allclose(np.asarray(hg.jit(lambda x: hg.fft.fft(x * 2))(x)), 2 * np.fft.fft(x), atol=1e-12)
        hg.clear_caches()


@pytest.mark.parametrize("n", [8, 15, 31, 4096])
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_infinities_and_nans_reach_all_of_their_row_and_no_other(n: int, value: float) -> None:
    x = numbers((20, n), np.float64)
    x[3, n // 2] = value
    for found in (hg.fft.fft(x), hg.fft.rfft(x), hg.fft.ifft(x.astype(complex))):
        finite = np.isfinite(np.asarray(found))
        assert not finite[3].any() and finite[:3].all() and finite[4:].all()


@pytest.mark.parametrize("shape", [(16,), (15,), (37,), (20, 37), (65_537,)])
def test_the_frequency_0_of_real_numbers_is_real(shape: tuple[int, ...]) -> None:
    x = numbers(shape, np.float32)
    assert not np.asarray(hg.jit(lambda x: hg.fft.rfft(x))(x))[..., 0].imag.any()
    assert not np.asarray(hg.jit(lambda x: hg.fft.rfft(x, axis=0))(x))[0].imag.any()


def test_arrays_that_are_not_in_c_order() -> None:
    x = numbers((24, 36), np.complex128)
    run = hg.jit(lambda x: hg.fft.fft2(x))
    for a in (x.T, x[::2, 1::3], x[::-1], np.asfortranarray(x)):
        np.testing.assert_allclose(np.asarray(run(a)), np.fft.fft2(a), atol=1e-12)
