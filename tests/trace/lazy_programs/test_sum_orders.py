"""Sums whose order the compiler chooses by sizes: a program with sizes as operands has the bits of programs by value, whichever process made it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes
from hologram.settings import override
from hologram.trace import lazy

Shape = tuple[int, ...]
ROWS, COLUMNS, FEW_TERMS, MANY_TERMS = (2, 3, 4, 7, 8, 17), (2, 5, 9, 33), (2, 7, 15, 16, 100, 127, 128, 1000), (1024, 1500, 2048, 2049, 2500, 3073)


def T(x: Any) -> Any:
    return hnp.swapaxes(x, -1, -2)


def attention(q: Any, k: Any, v: Any) -> Any:
    return hg.nn.softmax(q @ T(k) * 0.125, -1) @ v


# A function, and the axes of its arguments: m rows, n columns, k terms, b products.
CASES: dict[str, tuple[Callable[..., Any], tuple[str, str]]] = {
    "rows by columns": (lambda a, b: a @ b, ("mk", "kn")),
    "first transposed": (lambda a, b: T(a) @ b, ("km", "kn")),
    "second transposed": (lambda a, b: a @ T(b), ("mk", "nk")),
    "both transposed": (lambda a, b: T(a) @ T(b), ("km", "nk")),
    "matrix and vector": (lambda a, b: a @ b, ("mk", "k")),
    "transposed matrix and vector": (lambda a, b: T(a) @ b, ("km", "k")),
    "vector and transposed matrix": (lambda a, b: a @ T(b), ("k", "nk")),
    "many products": (lambda a, b: a @ T(b), ("bmk", "bnk")),
    "a shared factor": (lambda a, b: a @ T(b), ("bmk", "nk")),
    "sums over two axes": (lambda a, b: hnp.einsum("mbk,nbk->mn", a, b), ("mbk", "nbk")),
    "of a softmax": (lambda a, b: hg.nn.softmax(a, -1) @ b, ("mk", "kn")),
    "of itself": (lambda a, b: a @ T(a) + b[:, :1], ("mk", "mk")),
    "a derivative": (lambda a, b: hg.grad(lambda a: hnp.sum(hnp.tanh(a @ b)))(a), ("mk", "kn")),
    "two layers": (lambda a, b: hnp.maximum(a @ b, 0) @ T(b), ("mk", "kn")),
    "attention": (lambda q, k: attention(q, k, k * 1.5), ("kn", "kn")),
    "attention of few": (lambda q, k: attention(q, k, k), ("mn", "kn")),
    "a weighted sum": (lambda a, b: (a * b[:, None]).sum(0), ("kn", "k")),
    "distances": (lambda a, b: ((a[:, None] - b) ** 2).sum(-1), ("mk", "nk")),
    "dot": (lambda a, b: (a * b).sum(), ("k", "k")),
    "layer norm": (lambda a, b: (a - a.mean(1, keepdims=True)) / hnp.sqrt(a.var(1, keepdims=True) + 1e-5) * b, ("mk", "k")),
}


def _draws(name: str, dtype: str, count: int) -> list[list[np.ndarray]]:
    """Arguments of one structure: of sizes on both sides of those by which orders are chosen, some of which stay what they are."""
    _, axes = CASES[name]
    rng = np.random.default_rng([len(name), len(dtype)])
    names = sorted(set("".join(axes)))
    terms = FEW_TERMS if axes[0] == axes[1] == "kn" else FEW_TERMS + MANY_TERMS
    choices = {"m": ROWS, "n": COLUMNS, "k": terms, "b": (2, 3)}
    fixed = {s: int(rng.choice(choices[s])) for s in names if rng.random() < 0.3 and s != "k"}
    found = []
    for _ in range(count):
        sizes = {s: fixed.get(s, int(rng.choice(choices[s]))) for s in names}
        found.append([rng.standard_normal([sizes[s] for s in of]).astype(dtypes.of(dtype).np) for of in axes])
    return found


def _bits(function: Callable[..., Any], arrays: list[np.ndarray]) -> bytes:
    return np.asarray(function(*map(hg.tensor, arrays))).tobytes()


TYPES = [(name, "float32") for name in CASES] + [
    (name, d) for name in ("second transposed", "many products", "of itself") for d in ("float64", "bfloat16")
]


@pytest.mark.costly(2)
@pytest.mark.parametrize(("name", "dtype"), TYPES)
def test_programs_with_operands_sum_as_programs_by_value(name: str, dtype: str) -> None:
    """Static programs of ``jit`` do, too."""
    function, _ = CASES[name]
    draws = _draws(name, dtype, 10)
    with override(op_by_op=False, cache=False):
        lazy.clear()
        found = [_bits(function, arrays) for arrays in draws]
        for arrays, bits in zip(draws, found, strict=True):
            lazy.clear()
            assert _bits(function, arrays) == bits, [a.shape for a in arrays]
            assert np.asarray(hg.jit(function, dynamic=False)(*arrays)).tobytes() == bits, [a.shape for a in arrays]


@pytest.mark.parametrize("name", ["rows by columns", "second transposed", "transposed matrix and vector", "attention"])
def test_a_later_process_has_the_same_bits(name: str, tmp_path: Path) -> None:
    """It finds in the disk cache which sizes were operands, and has them from the start."""
    function, _ = CASES[name]
    draws = _draws(name, "float32", 8)
    with override(op_by_op=False, cache=True, cache_dir=tmp_path / "cache"):
        runs = []
        for _ in range(2):
            lazy.clear()
            runs.append([_bits(function, arrays) for arrays in draws])
    assert runs[0] == runs[1]


def test_sizes_on_one_side_of_a_choice_share_a_program(compilations: list[Any]) -> None:
    with override(op_by_op=False, cache=False):
        for m in (8, 9, 10, 33, 64):
            for k in (2, 100, 1999, 2048):
                _bits(lambda a, b: a @ T(b), [np.ones((m, k), np.float32), np.ones((16, k), np.float32)])
    assert len(compilations) <= 4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("f", [lambda x, w: x.sum(0), lambda x, w: w @ x, lambda x, w: (x * 2).sum(0) + 1], ids=["sum", "product", "of terms"])
def test_sums_of_columns_of_any_number_of_rows_have_few_programs(f: Callable[..., Any], dtype: str, compilations: list[Any]) -> None:
    """Up to many times a core's caches: such a sum takes a hundredth of the time of a compilation."""
    x, w = (np.ones(shape, dtype) for shape in ((2800, 1000), 2800))
    rows = range(100, 2800, 190)
    for n in rows:
        assert np.asarray(f(hg.tensor(x[:n]), hg.tensor(w[:n])))[0] in (n, 2 * n + 1)
    assert len(compilations) <= 3
