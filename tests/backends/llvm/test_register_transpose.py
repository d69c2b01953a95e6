"""Elements read down and written across: transposes of any shape and type, alone, fused, and as operands of products."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.settings import override
from tests.support.needs import needs_levels

TARGETS = ("", *(pytest.param(level, marks=needs_levels) for level in ("x86-64-v3", "x86-64")))
SHAPES = ((15, 17), (16, 16), (64, 65), (63, 130), (200, 72), (1, 100), (100, 1))


@pytest.mark.crossed
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "float64", "complex64"])
def test_transposes_are_exact(dtype: str, target: str) -> None:
    rng = np.random.default_rng(0)
    with override(target=target):
        for shape in SHAPES:
            x = rng.integers(0, 2 if dtype == "bool" else 100, shape).astype(dtype)
            np.testing.assert_array_equal(hg.jit(lambda x: hnp.matrix_transpose(x) + 0)(x).numpy(), x.T + 0)


@pytest.mark.parametrize("axes", list(itertools.permutations(range(3))))
def test_fused_with_neighbours(axes: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((33, 20, 70)).astype("f"), rng.standard_normal((33, 20, 70)).astype("f")
    z = rng.standard_normal(np.transpose(x, axes).shape).astype("f")

    def f(x, y, z):  # type: ignore[no-untyped-def]
        moved = hnp.transpose(x * 2, axes)
        return moved + z, hnp.abs(hnp.transpose(y, axes) - moved)

    first, second = hg.jit(f, precision="exact")(x, y, z)
    np.testing.assert_array_equal(first.numpy(), np.transpose(x * 2, axes) + z)
    np.testing.assert_array_equal(second.numpy(), np.abs(np.transpose(y, axes) - np.transpose(x * 2, axes)))


@pytest.mark.parametrize(("m", "k", "n"), [(64, 64, 64), (50, 70, 90), (97, 33, 130), (200, 129, 65)])
def test_transposed_operands_of_products(m: int, k: int, n: int) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    for at, bt in itertools.product((False, True), repeat=2):
        got = hg.jit(lambda a, b, at=at, bt=bt: (a.T if at else a) @ (b.T if bt else b))(a.T.copy() if at else a, b.T.copy() if bt else b)
        np.testing.assert_allclose(got.numpy(), a @ b, rtol=1e-12, atol=1e-12)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    x = np.random.default_rng(3).standard_normal((700, 900)).astype("f")
    f = hg.jit(lambda x: hnp.exp(x.T) - x[:700, :700].T.sum())
    whole = f(x).numpy()
    with override(num_threads=1):
        np.testing.assert_array_equal(hg.jit(lambda x: hnp.exp(x.T) - x[:700, :700].T.sum())(x).numpy(), whole)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_long_code_across_a_block_is_written_once(dtype: str, target: str) -> None:
    x = (np.random.default_rng(2).standard_normal((70, 100)) * 3).astype(dtype)
    with override(target=target):
        turned = hg.jit(lambda x: hnp.sin(hnp.exp(hnp.transpose(x))), precision="exact")
        straight = hg.jit(lambda x: hnp.sin(hnp.exp(x)), precision="exact")
        np.testing.assert_array_equal(turned(x).numpy(), straight(np.ascontiguousarray(x.T)).numpy())
        assert turned.lower(x).compile().as_text("kernels").count("= exp(") == 1
        module = turned.lower(x).compile().executable._source.module.llvm
    assert module.count(" @hg.exp.") - module.count("define internal") <= 4  # the block, what is beside it and below it


@pytest.mark.parametrize("kind", ["int8", "int32", "int64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_transposed_value_is_an_index(shape: tuple[int, int], kind: str) -> None:
    """What is loaded by a transpose may be an operand, an index of a gather, or both."""
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal(shape), rng.standard_normal(shape[::-1])
    i = rng.integers(0, shape[0], shape[::-1]).astype(kind) if shape[0] < 128 else rng.integers(0, 100, shape[::-1]).astype(kind)
    f = hg.jit(lambda x, y, i: (hnp.take_along_axis(x, i.T, axis=0) * y.T, x[i.T, 1 % shape[1]] * i.T))
    wide = i.T.astype("int64")
    for found, wanted in zip(f(x, y, i), (np.take_along_axis(x, wide, axis=0) * y.T, x[wide, 1 % shape[1]] * wide), strict=True):
        np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dynamic", [False, True])
def test_the_derivative_of_a_sort_down_the_columns(shape: tuple[int, int], dynamic: bool) -> None:
    x, t = (np.random.default_rng(s).standard_normal(shape) for s in (3, 4))
    f = hg.jit(lambda x, t: hg.jvp(lambda x: hnp.sort(x, axis=0) ** 2, (x,), (t,))[1], dynamic=dynamic)
    wanted = 2 * np.sort(x, axis=0) * np.take_along_axis(t, np.argsort(x, axis=0), axis=0)
    np.testing.assert_allclose(f(x, t).numpy(), wanted, rtol=1e-14)
