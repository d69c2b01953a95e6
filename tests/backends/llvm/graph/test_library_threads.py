"""Routines of libraries run on the calling thread, unless one large matrix is worth threads of the library's own."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.llvm.graph import lapack
from tests.support.runner.threads import in_threads

pytestmark = pytest.mark.skipif(not lapack.available(), reason="SciPy, whose LAPACK it is, is not installed")


def positive(*shape: int) -> np.ndarray:
    x = np.random.default_rng(0).standard_normal((*shape, shape[-1]))
    return x @ x.swapaxes(-1, -2) + 4 * shape[-1] * np.eye(shape[-1])


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The numbers of threads that a library with eight of them is asked for."""
    numbers: list[int] = []

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)
    def set_threads(n: int) -> int:
        numbers.append(n)
        return 8

    monkeypatch.setattr(lapack._library_threads(), "set", ctypes.cast(set_threads, ctypes.c_void_p).value)
    yield numbers


@pytest.mark.parametrize(
    ("f", "arguments"),
    [
        (hnp.linalg.cholesky, (positive(40),)),
        (hnp.linalg.cholesky, (positive(3, 700),)),
        (hnp.linalg.cholesky, (positive(2, 100),)),
        (hnp.linalg.solve, (positive(50), np.ones((50, 60)))),
        (hnp.linalg.svd, (positive(30),)),
        (lambda a, b: hg.lax.linalg.triangular_solve(a, b, left_side=True, lower=True), (positive(64), np.ones((64, 70)))),
    ],
)
def test_small_matrices_and_batches_take_one_thread(f: Any, arguments: Any, asked: list[int]) -> None:
    hg.block_until_ready(hg.jit(f)(*arguments))
    assert asked and set(asked) == {1, 8} and asked[0] == 1 and asked[-1] == 8


@pytest.mark.parametrize("shape", [(700,), (2, 700)])
def test_a_large_matrix_or_two_may_have_all_threads(shape: tuple[int, ...], asked: list[int]) -> None:
    hg.block_until_ready(hg.jit(hnp.linalg.cholesky)(positive(*shape)))
    assert asked == []


def test_the_number_of_threads_comes_back() -> None:
    """However many threads solve at the same time."""
    record = lapack._library_threads()
    f, x = hg.jit(hnp.linalg.cholesky), positive(33)
    want = np.linalg.cholesky(x)
    before = threads_of_the_library()

    def solve(_: int) -> None:
        for _ in range(100):
            np.testing.assert_allclose(np.asarray(f(x)), want)

    in_threads(solve, 8)
    assert (record.lock, record.users) == (0, 0)
    assert threads_of_the_library() == before


def threads_of_the_library() -> int:
    address = lapack._library_threads().set
    if not address:
        return 0
    set_threads = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(address)
    number = set_threads(1)
    set_threads(number)
    return number


def test_users_are_not_known_to_a_child(asked: list[int]) -> None:
    """They are threads that it lacks."""
    record = lapack._library_threads()
    record.lock, record.users, record.before = 1, 3, 8
    lapack.renew()
    assert (record.lock, record.users) == (0, 0) and asked == [8]
