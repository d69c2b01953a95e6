"""Products in every layout, type and precision, against NumPy in float64 (exactly for integers)."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram import nn
from hologram.errors import ArgumentError, AxisOutOfRange, DTypeError, ShapeError
from hologram.ir.interpreter import evaluate

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(d) for d in ("float32", "float64", "float16")] + [BFLOAT16]
INTEGERS = [np.dtype(d) for d in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")]
EXTENTS = st.sampled_from([1, 2, 3, 5, 8, 9, 16, 17, 33])
ODD_EXTENTS = st.sampled_from([0, 1, 1, 2, 7, 8, 20])

Drawn = tuple[np.ndarray, Any]


def _array(shape: tuple[int, ...], dtype: np.dtype[Any], seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.random(shape) < 0.3
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(max(info.min, -(2**40)), min(info.max, 2**40), shape, endpoint=True).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def _wide(x: np.ndarray) -> np.ndarray:
    """In a type where sums of products are exact, modulo 2**64, or near enough."""
    return x.astype(np.int64 if x.dtype.kind in "iu" else bool if x.dtype.kind == "b" else np.float64)


def _einsum(subscripts: str, *arrays: np.ndarray) -> np.ndarray:
    if arrays[0].dtype.kind == "b":
        return np.einsum(subscripts, *(a.astype(np.int64) for a in arrays)) != 0
    with np.errstate(over="ignore"):
        return np.einsum(subscripts, *map(_wide, arrays))


def _check(got: Any, subscripts: str, arrays: tuple[np.ndarray, ...], result: Any = None) -> None:
    """``got`` is the product, to the rounding of sums in the type that sums are computed in and one of the result."""
    got, want = np.asarray(got), _einsum(subscripts, *arrays)
    dtype = np.dtype(result or arrays[0].dtype)
    assert got.shape == want.shape and got.dtype == dtype
    if dtype.kind in "biu":
        np.testing.assert_array_equal(got, want.astype(dtype))
        return
    terms = max([1, *(n for a in arrays for n in a.shape)]) ** 0.5
    wide = np.float64 if dtype == np.float64 else np.float32
    scale = np.einsum(subscripts, *(np.abs(_wide(a)) for a in arrays))
    bound = 4 * np.finfo(wide).eps * (terms + 4) * scale + (ml_dtypes.finfo(dtype).eps * np.abs(want) if dtype != wide else 0)
    assert np.all(np.abs(got.astype(np.float64) - want) <= bound + float(ml_dtypes.finfo(dtype).smallest_subnormal))


@st.composite
def _views(draw: st.DrawFn, x: np.ndarray) -> Drawn:
    """``x`` kept another way, and the function that makes it of that: transposed, every second element of more, backwards."""
    perm = draw(st.permutations(range(x.ndim)))
    steps = [draw(st.sampled_from([1, 1, 1, 2, -1])) for _ in perm]
    kept = np.zeros([max(0, abs(s) * (x.shape[p] - 1) + 1) for s, p in zip(steps, perm, strict=True)], x.dtype)
    windows = tuple(slice(None, None, s) for s in steps)
    kept[windows] = x.transpose(perm)
    back = tuple(perm.index(i) for i in range(x.ndim))
    return kept, lambda v: hnp.transpose(v[windows], back)


@st.composite
def _products(draw: st.DrawFn, extents: st.SearchStrategy[int]) -> tuple[str, np.ndarray, np.ndarray, str]:
    """Subscripts of a product of two operands with any number of batch, row, column and summed axes in any order, operands, and a precision."""
    groups = [draw(st.integers(0, most)) for most in (2, 2, 2, 2)]
    names = iter("abcdefgh")
    batch, rows, columns, summed = ([next(names) for _ in range(n)] for n in groups)
    sizes = {x: draw(extents) for x in batch + rows + columns + summed}
    while math.prod(sizes.values()) > 200_000:
        sizes[max(sizes, key=lambda x: sizes[x])] = 2
    first, second, result = (draw(st.permutations(x)) for x in (batch + rows + summed, batch + columns + summed, batch + rows + columns))
    dtype = draw(st.sampled_from([*FLOATS, *INTEGERS, np.dtype(bool), np.dtype("float32")]))
    a, b = (_array(tuple(sizes[x] for x in labels), dtype, 3 + i) for i, labels in enumerate((first, second)))
    subscripts = f"{''.join(first)},{''.join(second)}->{''.join(result)}"
    return subscripts, a, b, draw(st.sampled_from(["exact", "standard", "fast"]))


@given(st.data())
def test_einsum_of_any_layout(data: st.DataObject) -> None:
    subscripts, a, b, precision = data.draw(_products(EXTENTS))
    (x, first), (y, second) = data.draw(_views(a)), data.draw(_views(b))
    f = hg.jit(lambda x, y: hnp.einsum(subscripts, first(x), second(y)), precision=precision)
    _check(f(x, y), subscripts, (a, b))


@given(_products(ODD_EXTENTS))
def test_dot_general_of_any_axes(case: tuple[str, np.ndarray, np.ndarray, str]) -> None:
    subscripts, a, b, precision = case
    first, second = subscripts.split("->")[0].split(",")
    result = subscripts.split("->")[1]
    batch = [x for x in first if x in second and x in result]
    summed = [x for x in first if x in second and x not in result]
    numbers = [[[labels.index(x) for x in names] for labels in (first, second)] for names in (summed, batch)]
    got = hg.jit(lambda x, y: nn.dot_general(x, y, numbers), precision=precision)(a, b)
    kept = [*batch, *(x for x in first if x not in second), *(x for x in second if x not in first)]
    _check(got, f"{first},{second}->{''.join(kept)}", (a, b))


@given(st.data())
def test_matmul_broadcasts_batches(data: st.DataObject) -> None:
    m, k, n = (data.draw(st.sampled_from([0, 1, 4, 8, 17, 40])) for _ in range(3))
    extents = data.draw(st.lists(st.sampled_from([1, 2, 3]), max_size=2))
    batches = [tuple(data.draw(st.sampled_from([e, 1])) for e in extents)[data.draw(st.integers(0, len(extents))) :] for _ in range(2)]
    dtype = data.draw(st.sampled_from([*FLOATS, np.dtype("int32"), np.dtype(bool)]))
    shapes = (*batches[0], m, k), (*batches[1], k, n)
    vectors = data.draw(st.sampled_from([(), (0,), (1,), (0, 1)]))
    a, b = (_array(shape[-1:] if i == 0 and i in vectors else (shape[:-1] if i in vectors else shape), dtype, i) for i, shape in enumerate(shapes))
    if 1 in vectors:
        b = _array((k,), dtype, 5)
    if 0 in vectors:
        a = _array((k,), dtype, 6)
    got = hg.jit(hnp.matmul, precision=data.draw(st.sampled_from(["exact", "standard", "fast"])))(a, b)
    first, second = "k" if a.ndim == 1 else "...mk", "k" if b.ndim == 1 else "...kn"
    kept = ("..." if max(a.ndim, b.ndim) > 1 else "") + ("m" if a.ndim > 1 else "") + ("n" if b.ndim > 1 else "")
    _check(got, f"{first},{second}->{kept}", (a, b))


@pytest.mark.crossed
@pytest.mark.parametrize("dtype", [*FLOATS, np.dtype("int8"), np.dtype(bool)], ids=str)
@pytest.mark.parametrize("shape", [(1, 40, 70), (70, 40, 1), (70, 1, 40), (1, 1, 1), (61, 67, 71), (1, 5000, 1)], ids=str)
def test_thin_products_of_all_types(shape: tuple[int, int, int], dtype: np.dtype[Any]) -> None:
    m, k, n = shape
    a, b = _array((m, k), dtype, 1), _array((k, n), dtype, 2)
    _check(hg.jit(hnp.matmul)(a, b), "mk,kn->mn", (a, b))
    _check(hg.jit(lambda x, y: hnp.matmul(x.T, y.T))(np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)), "mk,kn->mn", (a, b))
    _check(hg.jit(lambda x, y: hnp.vecdot(x, y[:, 0]))(a, b), "mk,k->m", (a, np.ascontiguousarray(b[:, 0])))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("precision", ["exact", "standard"])
def test_sixteen_bit_floats_are_rounded_once(dtype: str, precision: str) -> None:
    """Products and sums run in float32: neither 256 ones more nor products of many digits are lost."""
    d = hg.dtypes.of(dtype).np
    a, b = np.ones((4, 1024), d), np.full((1024, 16), 1 + 2**-7, d)
    got = np.asarray(hg.jit(hnp.matmul, precision=precision)(a, b))
    assert np.all(got == np.asarray(1024 * (1 + 2**-7)).astype(d))
    squares = np.asarray(hg.jit(lambda x: hnp.vecdot(x, x), precision=precision)(b.T[:, :3]))
    assert np.all(squares == np.asarray(3 * (1 + 2**-7) ** 2).astype(d))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int32", "bool"])
def test_exact_products_of_other_types_have_the_references_bits(dtype: str) -> None:
    d = hg.dtypes.of(dtype).np
    a, b = _array((23, 65), d, 1), _array((65, 37), d, 2)
    graph = hg.make_graph(hnp.matmul)(a, b)
    (want,) = evaluate(graph, [a, b])
    np.testing.assert_array_equal(np.asarray(hg.jit(hnp.matmul, precision="exact")(a, b)), want)


def test_vmap_of_a_product_with_a_vector_is_a_product() -> None:
    a, v = _array((96, 80), np.dtype("float32"), 1), _array((64, 80), np.dtype("float32"), 2)
    f = hg.jit(hg.vmap(lambda m, x: m @ x, in_axes=(None, 0)))
    _check(f(a, v), "mk,bk->bm", (a, v))
    assert f.lower(a, v).as_text("kernels") == hg.jit(lambda m, x: x @ m.T).lower(a, v).as_text("kernels")
    g = hg.jit(hg.vmap(lambda x, m: x @ m, in_axes=(0, None)))
    _check(g(v, np.ascontiguousarray(a.T)), "bk,km->bm", (v, np.ascontiguousarray(a.T)))


@pytest.mark.parametrize("layout", ["mk,kn->mn", "km,kn->mn", "mk,nk->mn", "km,nk->nm", "bmk,bnk->bmn", "bhmk,bhkn->bmhn", "mk,k->m", "k,kn->n"])
def test_bits_do_not_depend_on_threads(layout: str) -> None:
    sizes = {"b": 3, "h": 2, "m": 130, "n": 150, "k": 170}
    a, b = (_array(tuple(sizes[x] for x in term), np.dtype("float32"), i) for i, term in enumerate(layout.split("->")[0].split(",")))
    f = hg.jit(lambda x, y: hnp.einsum(layout, x, y))
    results = set()
    for threads in (1, 3, 2):
        hg.set_num_threads(threads)
        results.add(np.asarray(f(a, b)).tobytes())
    assert len(results) == 1


@pytest.mark.parametrize("transposed", [False, True])
def test_products_of_symbolic_extents(transposed: bool) -> None:
    f = hg.jit(lambda x, y: hnp.einsum("km,kn->mn" if transposed else "mk,kn->mn", x, y), dynamic=True)
    for m, k, n in ((3, 5, 7), (40, 33, 65), (1, 9, 4), (64, 200, 20)):
        a, b = _array((k, m) if transposed else (m, k), np.dtype("float32"), 1), _array((k, n), np.dtype("float32"), 2)
        _check(f(a, b), "km,kn->mn" if transposed else "mk,kn->mn", (a, b))


# --- the type that is preferred ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "preferred"),
    [("int8", "int32"), ("uint8", "int32"), ("int8", "float32"), ("bool", "int32"), ("bfloat16", "float32"), ("float16", "float32"),
     ("float32", "float64"), ("float64", "float32"), ("float32", "bfloat16"), ("int32", "int8"), ("float32", "float32")],
)  # fmt: skip
def test_preferred_element_type(dtype: str, preferred: str) -> None:
    d, p = hg.dtypes.of(dtype).np, hg.dtypes.of(preferred).np
    a, b = _array((19, 40), d, 1), _array((40, 23), d, 2)
    wide = p if hg.dtypes.promote(*map(hg.dtypes.of, (d, p))).np == p else d
    exact = a.astype(wide), b.astype(wide)
    functions = [
        hnp.matmul,
        hnp.dot,
        lambda x, y, **o: hnp.einsum("mk,kn->mn", x, y, **o),
        lambda x, y, **o: hnp.tensordot(x, y, axes=1, **o),
        lambda x, y, **o: hnp.inner(x, y.T, **o),
        lambda x, y, **o: hnp.vecdot(x[:, None], y.T, **o),
        lambda x, y, **o: nn.dot_general(x, y, (((1,), (0,)), ((), ())), **o),
    ]
    for f in functions:
        got = hg.jit(lambda x, y, f=f: f(x, y, preferred_element_type=p))(a, b)
        _check(got, "mk,kn->mn", exact, p)


def test_a_preferred_type_of_a_lesser_kind_is_refused() -> None:
    x = hnp.ones((2, 2))
    for value, preferred in ((x, "int32"), (x, "bool"), (x.astype("complex64"), "float32"), (x.astype("int32"), "bool")):
        with pytest.raises(DTypeError, match="matmul: preferred_element_type"):
            hnp.matmul(value, value, preferred_element_type=preferred)
    assert hnp.dot(2, x, preferred_element_type="float64").dtype == np.float64


# --- einsum ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "subscripts",
    ["ij,jk,kl->il", "ij,kj,kl,lm->im", "i,j,k->ijk", "ij,jk->k", "ii->i", "ii->", "ijij->ji", "iji,jk->k", "ij,ij,ij->j", "bij,bjk,bk->i"],
)
def test_einsum_of_several_factors_and_diagonals(subscripts: str) -> None:
    sizes = dict(zip("ijklmb", (5, 6, 7, 8, 9, 3), strict=True))
    arrays = [_array(tuple(sizes[x] for x in term), np.dtype("float64"), i) for i, term in enumerate(subscripts.split("->")[0].split(","))]
    if subscripts == "ijij->ji":
        arrays = [_array((5, 6, 5, 6), np.dtype("float64"), 0)]
    np.testing.assert_allclose(np.asarray(hg.jit(lambda *x: hnp.einsum(subscripts, *x))(*arrays)), np.einsum(subscripts, *arrays), rtol=1e-10)


def test_einsum_multiplies_pair_by_pair() -> None:
    """A chain of matrices costs the products of its neighbours, not their joint index space."""
    n = 200
    arrays = [_array((n, n), np.dtype("float32"), i) / np.float32(n**0.5) for i in range(3)]
    f = hg.jit(lambda *x: hnp.einsum("ij,jk,kl->il", *x))
    np.testing.assert_allclose(np.asarray(f(*arrays)), np.linalg.multi_dot([a.astype(np.float64) for a in arrays]), atol=1e-5)
    assert f.lower(*arrays).compile().reduction().kernels == 2


def test_wrong_products_are_refused() -> None:
    a, b = hnp.ones((3, 4)), hnp.ones((4, 5))
    cases: list[tuple[type[Exception], Any]] = [
        (ShapeError, lambda: nn.dot_general(a, b, (((0,), (0,)), ((), ())))),
        (ShapeError, lambda: nn.dot_general(a, hnp.ones((4, 3, 4)), (((1, 1), (0, 2)), ((), ())))),
        (AxisOutOfRange, lambda: nn.dot_general(a, b, (((2,), (0,)), ((), ())))),
        (ArgumentError, lambda: nn.dot_general(a, b, (((1,), (0, 1)), ((), ())))),
        (ArgumentError, lambda: nn.dot_general(a, b, ((1,), (0,)))),
        (ShapeError, lambda: hnp.tensordot(a, b, axes=3)),
        (ShapeError, lambda: hnp.tensordot(a, b, axes=2)),
        (ShapeError, lambda: hnp.einsum("ii->i", a)),
        (ArgumentError, lambda: hnp.einsum("ij->ii", a)),
        (ShapeError, lambda: hnp.matmul(a, a)),
    ]
    for error, f in cases:
        with pytest.raises(error):
            f()
