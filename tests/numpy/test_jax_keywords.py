"""Keywords, methods and types that programs for JAX use."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes
from hologram.errors import ArgumentError, DonatedBufferError, DTypeError, ShapeError, TracedValueError
from tests.support.optable import seeded

X = seeded("keywords", "x").standard_normal((4, 6))


# --- types as functions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", dtypes.ALL, ids=str)
def test_types_are_functions_and_dtypes(d: dtypes.DType) -> None:
    t = getattr(hnp, d.name)
    made = t([1, 0])
    assert type(made) is hg.Tensor and made.dtype == d.np and made.tolist() == [1, 0]
    assert t().shape == () and hnp.ones(2).dtype == hnp.float32
    assert t == d.np and d.np == t and hash(t) == hash(d.np) and {d.np: 1}[t] == 1
    assert np.dtype(t) is d.np and np.zeros(2, t).dtype == d.np and hnp.zeros(2, dtype=t).dtype == d.np
    assert t.itemsize == d.itemsize and t.name == d.name and pickle.loads(pickle.dumps(t)) is t


def test_types_convert_traced_values() -> None:
    f = hg.jit(lambda x: hnp.float32(x) + hnp.int8(2))
    assert f(np.float64(1.5)).dtype == hnp.float32 and float(f(np.float64(1.5))) == 3.5
    assert float(hg.grad(lambda x: hnp.float64(x) ** 2)(3.0)) == 6
    assert hnp.int32 != hnp.int64 and hnp.float32 != "text" and repr(hnp.bfloat16) == "hologram.numpy.bfloat16"


# --- methods ---------------------------------------------------------------------------------------------------------


def test_methods() -> None:
    t = hg.tensor(X)
    for got, want in (
        (t.sort(0), np.sort(X, 0)),
        (t.argsort(), np.argsort(X)),
        (t.trace(), X.trace()),
        (t.diagonal(1), X.diagonal(1)),
        (t.ptp(), np.ptp(X)),
        (t.sort()[0].searchsorted([0.0, 9.0]), np.sort(X)[0].searchsorted([0.0, 9.0])),
        (t.compress([True, False, True], axis=0), X.compress([True, False, True], axis=0)),
        *zip((t > 0).nonzero(), (X > 0).nonzero(), strict=True),
    ):
        np.testing.assert_allclose(got, want, rtol=1e-14)
    np.testing.assert_array_equal(np.sort(t.numpy()[0][t[0].argpartition(2).numpy()][:3]), np.sort(X[0])[:3])
    assert t.block_until_ready() is t and t.tobytes() == X.tobytes() and t.tobytes("F") == X.tobytes("F")
    assert float(hg.jit(lambda x: (2 * x).block_until_ready().sum())(X)) == pytest.approx(2 * X.sum())
    with pytest.raises(TracedValueError, match="tobytes"):
        hg.jit(lambda x: x.tobytes())(X)


@given(st.sampled_from("iufc"), st.sampled_from("iufc"), st.sampled_from([8, 16, 32, 64]), st.sampled_from([8, 16, 32, 64]))
def test_views_of_bytes(kind: str, other: str, bits: int, width: int) -> None:
    a, b = (np.dtype(f"{k}{max(n, 64 if k == 'c' else 16 if k == 'f' else 8) // 8}") for k, n in ((kind, bits), (other, width)))
    x = seeded("views", a.name).integers(0, 100, (3, 16)).astype(a)
    got = hg.tensor(x).view(b)
    want = x.view(b)
    assert got.dtype == b and got.numpy().tobytes() == want.tobytes() and got.shape == want.shape


def test_errors_of_views() -> None:
    assert hnp.ones(2).view().tolist() == [1, 1]
    with pytest.raises(ShapeError):
        hnp.ones((3, 3)).view(np.float64)
    with pytest.raises(DTypeError):
        hg.jit(lambda x: x.view(bool))(hnp.ones(4))


# --- sizes that are known --------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-3, 3) | st.just(np.nan), min_size=7, max_size=7), st.sampled_from([0, 3, 9]), st.booleans())
def test_unique_of_a_size(values: list[float], size: int, equal_nan: bool) -> None:
    x = np.array(values, np.float32)
    want = np.unique(x, True, True, True, equal_nan=equal_nan)
    got = hnp.unique(x, True, True, True, equal_nan=equal_nan, size=size, fill_value=7)
    n = min(size, len(want[0]))
    for g, w, fill in zip((got[0], got[1], got[3]), (want[0], want[1], want[3]), (7, want[1][0], 0), strict=True):
        assert g.shape == (size,)
        np.testing.assert_array_equal(g[:n], w[:n])
        np.testing.assert_array_equal(g[n:], fill)
    np.testing.assert_array_equal(got[2], want[2])


def test_sizes_while_tracing() -> None:
    x = np.array([3, 1, 3, 2])
    assert hg.jit(lambda x: hnp.unique(x, size=4))(x).tolist() == [1, 2, 3, 1]
    assert hg.jit(lambda x: hnp.argwhere(x > 1, size=4, fill_value=-1))(x).tolist() == [[0], [2], [3], [-1]]
    assert hg.vmap(lambda x: hnp.unique(x, size=3))(np.stack([x, x * 0])).tolist() == [[1, 2, 3], [0, 0, 0]]
    with pytest.raises(ArgumentError, match="a size of"):
        hnp.unique(x[:0], size=2)


@given(st.lists(st.integers(0, 4), min_size=5, max_size=5), st.sampled_from([0, 4, 12]))
def test_repeats_to_a_length(repeats: list[int], length: int) -> None:
    x = np.arange(len(repeats)) + 10
    whole = np.repeat(x, repeats)
    want = np.concatenate([whole, np.full(length, x[-1])])[:length]
    got = hnp.repeat(x, hnp.asarray(repeats), total_repeat_length=length)
    np.testing.assert_array_equal(got, want)


def test_repeats_along_an_axis() -> None:
    f = hg.jit(lambda x, n: hnp.repeat(x, n, axis=0, total_repeat_length=5))
    np.testing.assert_array_equal(f(X[:3], np.array([2, 0, 3])), np.repeat(X[:3], [2, 0, 3], 0))
    np.testing.assert_array_equal(hnp.repeat(X, 2, axis=1, total_repeat_length=12), np.repeat(X, 2, 1))
    slope = hg.grad(lambda x: hnp.sum(hnp.repeat(x, np.array([2, 0, 3]), axis=0, total_repeat_length=5)))(X[:3])
    np.testing.assert_array_equal(slope, np.broadcast_to(np.array([[2], [0], [3]]), (3, 6)))


# --- products --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimize", [True, False, "auto", "greedy", "optimal", [(1, 2), (0, 1), (0, 1)], ["einsum_path", (0, 3), (0, 1), (0, 1)]])
def test_orders_of_contraction(optimize: Any) -> None:
    shapes = [(3, 4), (4, 9), (9, 2), (2, 3)]
    arrays = [seeded("einsum", s).standard_normal(s) for s in shapes]
    got = hg.jit(lambda *xs: hnp.einsum("ij,jk,kl,lm->im", *xs, optimize=optimize, precision="highest"))(*arrays)
    np.testing.assert_allclose(got, np.linalg.multi_dot(arrays), rtol=1e-9)


def test_the_optimal_order_has_least_work() -> None:
    from hologram.numpy.products.contraction import contraction_path

    def work(path: Any, terms: list[Any]) -> int:
        total, left = 0, list(terms)
        for i, j in path:
            (a, m), (b, n) = left[i], left[j]
            sizes = dict(zip((*a, *b), (*m, *n), strict=True))
            total += int(np.prod(list(sizes.values())))
            rest = [t for k, t in enumerate(left) if k not in (i, j)]
            kept = [x for x in sizes if x in "ae" or any(x in t[0] for t in rest)]
            left = [*rest, (kept, [sizes[x] for x in kept])]
        return total

    import itertools

    for seed in range(5):
        extents = seeded("paths", seed).integers(1, 12, 5)
        terms: list[Any] = [(list("abcde"[i : i + 2]), extents[i : i + 2].tolist()) for i in range(4)]
        pairs = [list(itertools.combinations(range(n), 2)) for n in (4, 3, 2)]
        least = min(work(p, terms) for p in itertools.product(*pairs))
        assert work(contraction_path("einsum", terms, ["a", "e"], "optimal"), terms) == least


def test_errors_of_orders() -> None:
    for optimize in ("best", [(0, 5), (0, 1)]):
        with pytest.raises(ArgumentError, match="einsum"):
            hnp.einsum("i,i,i->i", X[0], X[1], X[2], optimize=optimize)


# --- vectorize -------------------------------------------------------------------------------------------------------


def test_signatures() -> None:
    f = hnp.vectorize(lambda a, b: (a @ b, hnp.sum(b)), signature="(n,k),(k)->(n),()")
    a, b = seeded("s", 1).standard_normal((5, 1, 3, 2)), seeded("s", 2).standard_normal((4, 2))
    product, total = hg.jit(f)(a, b)
    np.testing.assert_allclose(product, np.einsum("xynk,yk->xyn", np.broadcast_to(a, (5, 4, 3, 2)), b))
    np.testing.assert_allclose(total, np.broadcast_to(b.sum(-1), (5, 4)))
    np.testing.assert_allclose(f(a[0, 0], b[0])[0], a[0, 0] @ b[0])
    g = hnp.vectorize(lambda n, x, scale: x**n * scale, excluded={0, "scale"})
    np.testing.assert_allclose(g(2, X, scale=3), 3 * X**2)


@pytest.mark.parametrize(
    ("error", "work"),
    [
        (ArgumentError, lambda: hnp.vectorize(hnp.dot, signature="(n),(n)")),
        (ArgumentError, lambda: hnp.vectorize(hnp.dot, signature="(n),(n)->()")(X)),
        (ArgumentError, lambda: hnp.vectorize(hnp.sin)(x=X)),
        (ShapeError, lambda: hnp.vectorize(hnp.dot, signature="(n),(n)->()")(X, X[:, :3])),
        (ShapeError, lambda: hnp.vectorize(hnp.dot, signature="(n,m),(m)->(n)")(X, 1.0)),
        (ShapeError, lambda: hnp.vectorize(hnp.sum, signature="(n)->(n)")(X)),
    ],
)
def test_errors_of_signatures(error: Any, work: Any) -> None:
    with pytest.raises(error, match="vectorize"):
        work()


# --- updates ---------------------------------------------------------------------------------------------------------


def test_functions_applied_at_places() -> None:
    x = np.arange(6.0)
    for key in (np.array([0, 2, 2, 5]), slice(1, 4), 3, np.array([True, False] * 3)):
        want = x.copy()
        np.add.at(want, key, 0)
        counts = np.zeros(6, int)
        np.add.at(counts, key, 1)
        want = np.where(counts == 2, 4 * x, np.where(counts == 1, 2 * x, x))
        np.testing.assert_array_equal(hg.tensor(x).at[key].apply(lambda v: 2 * v), want)
        np.testing.assert_array_equal(hg.jit(lambda x, key=key: x.at[key].apply(lambda v: 2 * v))(x), want)
    computed = hg.jit(lambda x, i: x.at[i].apply(lambda v: 2 * v, mode="drop"))
    np.testing.assert_array_equal(computed(x, np.array([1, 1, 9])), [0, 4, 2, 3, 4, 5])
    slope = hg.grad(lambda x, i: hnp.sum(x.at[i].apply(hnp.square, unique_indices=True)))(x, np.array([1, 3]))
    np.testing.assert_array_equal(slope, [1, 2, 1, 6, 1, 1])
    np.testing.assert_array_equal(hg.tensor(x).at[np.array([2, 3])].power(2.0), [0, 1, 4, 9, 4, 5])
    same = hg.tensor(x).at[2].add(1.0, indices_are_sorted=True, unique_indices=True).at[0].get(indices_are_sorted=True)
    assert float(same) == 0


# --- donation --------------------------------------------------------------------------------------------------------


def test_donation_by_name() -> None:
    f = hg.jit(lambda state, *, cache, x: (state + x, cache * x), donate_argnames=("state", "cache"))
    for by_name in (False, True):
        state, cache, x = (hg.block_until_ready(hnp.full(5, v)) for v in (1.0, 2.0, 3.0))
        a, b = f(state=state, cache=cache, x=x) if by_name else f(state, cache=cache, x=x)
        assert a.tolist() == [4] * 5 and b.tolist() == [6] * 5 and x.tolist() == [3] * 5
        for donated in (state, cache):
            with pytest.raises(DonatedBufferError):
                donated.tolist()
    with pytest.raises(ArgumentError, match="donate_argnames"):
        hg.jit(lambda x: x, donate_argnames="y")
