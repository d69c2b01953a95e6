"""hologram.random: known answers, distributions, determinism, fusion, transforms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import hologram as hg
import hologram.numpy as hnp
from hologram import errors
from hologram.numpy.arguments import array, wrap
from hologram.random.discrete import _high_product
from hologram.random.threefry import threefry

R = hg.random
N = 20_000


def pair(words):
    return tuple(array(np.uint32(x), "test") for x in words)


# --- known answers ---------------------------------------------------------------------------------------------------

ANSWERS = [  # key, counter, result: those published with Random123 for threefry2x32 with 20 rounds
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize(("key", "counter", "result"), ANSWERS)
def test_known_answers_of_threefry(key, counter, result):
    assert tuple(int(wrap(x)) for x in threefry(pair(key), pair(counter))) == result


def test_known_answers_of_what_is_derived():
    """The values that other libraries with this generator and these counters give."""
    key = R.key(42)
    assert key.tolist() == [0, 42] and key.dtype == np.uint32
    assert R.key(-1).tolist() == [2**32 - 1] * 2
    assert R.split(key, 3).tolist() == [[1832780943, 270669613], [64467757, 2916123636], [2465931498, 255383827]]
    assert R.fold_in(key, 7).tolist() == [2547012911, 1371500959]
    assert R.bits(key, 5).tolist() == [2098992034, 2919706841, 2646866425, 2409546199, 1935504149]
    np.testing.assert_array_equal(R.uniform(key, 3), np.float32([0.48870956897735596, 0.6797971725463867, 0.6162714958190918]))
    np.testing.assert_allclose(R.normal(key, 3), [-0.02830461598932743, 0.4671318531036377, 0.2957029640674591], rtol=2e-6)


# --- keys ------------------------------------------------------------------------------------------------------------


def test_bits_of_every_width():
    key = R.key(1)
    words = np.asarray(R.bits(key, (64,)))
    assert (np.asarray(R.bits(key, (64,), hnp.uint8)) == words.astype(np.uint8)).all()
    assert (np.asarray(R.bits(key, (64,), hnp.uint16)) == words.astype(np.uint16)).all()
    wide = np.asarray(R.bits(key, (64,), hnp.uint64))
    assert ((wide >> 32).astype(np.uint32) ^ wide.astype(np.uint32) == words).all()
    with pytest.raises(errors.DTypeError):
        R.bits(key, 3, hnp.int32)


def test_an_element_depends_on_its_index_alone():
    key = R.key(5)
    long = np.asarray(R.normal(key, (1000,)))
    assert (np.asarray(R.normal(key, (17,))) == long[:17]).all()
    assert (np.asarray(R.normal(key, (10, 100))) == long.reshape(10, 100)).all()


def test_split_keys_are_independent():
    keys = R.split(R.key(3), 50)
    assert len({tuple(k) for k in keys.tolist()}) == 50
    draws = np.stack([np.asarray(R.normal(k, (2000,))) for k in keys[:6]])
    off = np.corrcoef(draws) - np.eye(6)
    assert np.abs(off).max() < 0.1
    assert R.split(R.key(3), (2, 25)).tolist() == keys.reshape(2, 25, 2).tolist()


def test_traced_seeds_and_data():
    seeds = hg.jit(lambda s: R.key(s))
    assert seeds(np.int64(2**40 + 7)).tolist() == R.key(2**40 + 7).tolist()
    folded = hg.jit(lambda k, i: R.fold_in(k, i))
    assert folded(R.key(42), np.int32(7)).tolist() == [2547012911, 1371500959]


def test_many_integers_are_one_program():
    compiled = [R.fold_in(R.key(1), i).tolist() for i in range(3)]
    inside = hg.jit(lambda k: hnp.stack([R.fold_in(k, i) for i in range(3)]))(R.key(1))
    assert inside.tolist() == compiled


def test_keys_in_loops():
    key = R.key(15)
    total = hg.fori_loop(0, 5, lambda i, s: s + R.normal(R.fold_in(key, i), (3,)), hnp.zeros(3))
    np.testing.assert_allclose(total, sum(np.asarray(R.normal(R.fold_in(key, i), (3,))) for i in range(5)), rtol=1e-5, atol=1e-6)


def test_dynamic_shapes():
    noisy = hg.jit(lambda k, x: x + R.uniform(k, x.shape), dynamic=True)
    for n in (3, 100):
        assert noisy(R.key(1), hnp.zeros(n)).tolist() == R.uniform(R.key(1), n).tolist()


def test_what_is_no_key():
    with pytest.raises(errors.DTypeError, match="key"):
        R.uniform(hnp.zeros(2), 3)
    with pytest.raises(errors.ShapeError, match="vmap"):
        R.uniform(R.split(R.key(0), 3), 3)
    with pytest.raises(errors.ArgumentError):
        R.fold_in(R.key(0), 1.5)


# --- distributions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("draw", "law"),
    [
        (lambda k, t: R.uniform(k, N, t), stats.uniform()),
        (lambda k, t: R.uniform(k, N, t, -2.0, 3.0), stats.uniform(-2, 5)),
        (lambda k, t: R.normal(k, N, t), stats.norm()),
        (lambda k, t: R.normal(k, N, t, loc=3.0, scale=0.5), stats.norm(3, 0.5)),
        (lambda k, t: R.truncated_normal(k, -1.0, 2.0, N, t), stats.truncnorm(-1, 2)),
        (lambda k, t: R.exponential(k, N, t), stats.expon()),
        (lambda k, t: R.gumbel(k, N, t), stats.gumbel_r()),
        (lambda k, t: R.laplace(k, N, t), stats.laplace()),
    ],
    ids=["uniform", "uniform_range", "normal", "normal_moved", "truncated_normal", "exponential", "gumbel", "laplace"],
)
def test_laws(draw, law, dtype):
    x = draw(R.key(11), dtype)
    assert x.dtype.name == dtype and x.shape == (N,)
    assert stats.kstest(np.asarray(x), law.cdf).pvalue > 1e-3


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats(dtype):
    u = np.asarray(R.uniform(R.key(2), N, dtype).astype(hnp.float32))
    assert u.min() >= 0.0 and u.max() < 1.0 and abs(u.mean() - 0.5) < 0.02
    z = np.asarray(R.normal(R.key(2), N, dtype).astype(hnp.float32))
    assert np.isfinite(z).all() and abs(z.std() - 1.0) < 0.05


def test_parameters_broadcast():
    x = np.asarray(R.normal(R.key(0), (N, 3), loc=np.float32([0, 10, 20]), scale=2.0))
    np.testing.assert_allclose(x.mean(0), [0, 10, 20], atol=0.1)
    assert R.normal(R.key(0), loc=np.zeros(4, np.float32), scale=np.ones((3, 1), np.float32)).shape == (3, 4)


def test_bernoulli():
    x = R.bernoulli(R.key(4), 0.3, (N,))
    assert x.dtype == np.bool_ and abs(np.asarray(x).mean() - 0.3) < 0.02
    assert not np.asarray(R.bernoulli(R.key(4), 0.0, (N,))).any() and np.asarray(R.bernoulli(R.key(4), 1.0, (N,))).all()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_randint(dtype):
    x = np.asarray(R.randint(R.key(6), (N,), 3, 13, dtype))
    assert x.dtype == dtype
    assert stats.chisquare(np.bincount(x.astype(np.int64), minlength=13)[3:]).pvalue > 1e-3
    info = np.iinfo(dtype)
    full = np.asarray(R.randint(R.key(6), (N,), int(info.min), int(info.max), dtype)).astype(np.float64)
    assert abs(full.mean() / 2.0**info.bits - (0.5 if info.min == 0 else 0.0)) < 0.02
    ends = R.randint(R.key(6), (N,), np.asarray([1], dtype), np.asarray([4], dtype), dtype)
    assert sorted(set(ends.tolist())) == [1, 2, 3]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("ends", ["int64", "uint64", "float64"])
def test_computed_ranges_beyond_the_type(dtype, ends):
    """An end is the number that it is: it is not taken modulo the type's range."""
    info, own = np.iinfo(dtype), np.finfo(ends) if ends == "float64" else np.iinfo(ends)
    for low, high in ((info.min - 9, info.max + 99), (info.min, info.max + 1), (info.max - 1, info.max + 1), (info.min - 7, info.min + 3), (-5, 7)):
        if not (own.min <= low <= own.max and own.min <= high <= own.max and (ends != "float64" or (float(low), float(high)) == (low, high))):
            continue
        first, last = max(low, int(info.min)), min(high, int(info.max) + 1)
        for draw in (R.randint, hg.jit(R.randint, static_argnums=(1, 4))):
            x = np.asarray(draw(R.key(6), (2 * N,), np.array(low, ends), np.array(high, ends), dtype)).astype(object)
            assert first <= x.min() and x.max() < last
            assert abs(np.mean((x - first) / (last - first - 1), dtype=np.float64) - 0.5) < 0.02
    with pytest.raises(errors.ArgumentError):
        R.randint(R.key(6), (3,), -300, 300, "int8")


def test_all_integers_of_computed_ends():
    x = np.asarray(R.randint(R.key(6), (N,), np.int64(-(2**63)), np.uint64(2**63)))
    assert stats.kstest(x / 2.0**64 + 0.5, "uniform").pvalue > 1e-3


def test_randint_refuses():
    for low, high in ((3, 3), (0, 300)):
        with pytest.raises(errors.ArgumentError):
            R.randint(R.key(0), 4, low, high, hnp.int8)
    assert R.randint(R.key(0), 4, np.int32(5), np.int32(2), hnp.int32).tolist() == [5] * 4


def test_high_product():
    a = np.random.default_rng(0).integers(0, 2**64, (2, 1000), np.uint64, endpoint=False)
    a[:, 0] = 2**64 - 1
    want = [(int(x) * int(y)) >> 64 for x, y in a.T]
    assert _high_product(hnp.asarray(a[0]), hnp.asarray(a[1])).tolist() == want


# --- orders and choices ----------------------------------------------------------------------------------------------


def test_permutations():
    order = np.asarray(R.permutation(R.key(8), 1000))
    assert (np.sort(order) == np.arange(1000)).all() and abs(np.corrcoef(order, np.arange(1000))[0, 1]) < 0.15
    x = np.arange(60).reshape(12, 5)
    rows = np.asarray(R.shuffle(R.key(8), x))
    assert (rows[np.argsort(rows[:, 0])] == x).all() and not (rows == x).all()
    each = np.asarray(R.permutation(R.key(8), x, axis=1, independent=True))
    assert (np.sort(each, 1) == x).all() and len(set(map(tuple, each - x[:, :1]))) > 1


P = np.float32([0.1, 0.2, 0.3, 0.4])


def fits(indices, p):
    counts = np.bincount(np.asarray(indices).ravel(), minlength=len(p))
    return stats.chisquare(counts, np.float64(p) / np.float64(p).sum() * counts.sum()).pvalue > 1e-3


def test_choices():
    assert fits(R.choice(R.key(9), 4, (N,)), np.ones(4))
    assert fits(R.choice(R.key(9), 4, (N,), p=P), P)
    assert sorted(R.choice(R.key(9), 10, (10,), replace=False).tolist()) == list(range(10))
    some = R.choice(R.key(9), np.arange(40).reshape(2, 20), (3, 2), replace=False, axis=1)
    assert some.shape == (2, 3, 2) and len(set(some[0].reshape(-1).tolist())) == 6
    without = np.asarray(hg.vmap(lambda k: R.choice(k, 4, (1,), replace=False, p=P))(R.split(R.key(1), 2000)))
    assert fits(without, P)
    with pytest.raises(errors.ArgumentError):
        R.choice(R.key(9), 3, (4,), replace=False)


def test_categorical():
    assert fits(R.categorical(R.key(10), np.log(P), shape=(N,)), P)
    logits = np.stack([np.log(P), np.log(P[::-1])])
    x = R.categorical(R.key(10), logits, shape=(N, 2))
    assert fits(x[:, 0], P) and fits(x[:, 1], P[::-1])
    assert R.categorical(R.key(10), logits, axis=0).shape == (4,)
    with pytest.raises(errors.ShapeError):
        R.categorical(R.key(10), logits, shape=(5,))


# --- transforms ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", [R.bits, R.uniform, R.normal, R.gumbel], ids=lambda f: f.__name__)
def test_jit_gives_the_same_bits(draw):
    key = R.key(12)
    eager, jitted = (np.asarray(f(key)) for f in (lambda k: draw(k, (5000,)), hg.jit(lambda k: draw(k, (5000,)))))
    assert eager.tobytes() == jitted.tobytes()


@pytest.mark.parametrize("threads", [1, 3])
def test_any_number_of_threads_gives_the_same_bits(threads):
    draw = hg.jit(lambda k: R.normal(k, (200_000,)))
    hg.set_num_threads(2)
    want = np.asarray(draw(R.key(16))).tobytes()
    hg.set_num_threads(threads)
    try:
        assert np.asarray(draw(R.key(16))).tobytes() == want
    finally:
        hg.set_num_threads(2)


def test_vmap_of_choices():
    keys = R.split(R.key(17), 3)
    orders = hg.vmap(lambda k: R.permutation(k, 6))(keys)
    assert orders.tolist() == [R.permutation(k, 6).tolist() for k in keys]
    chosen = hg.vmap(lambda k: R.choice(k, 4, (5,), p=P))(keys)
    assert chosen.tolist() == [R.choice(k, 4, (5,), p=P).tolist() for k in keys]


def test_vmap_over_keys():
    keys = R.split(R.key(13), 4)
    mapped = np.asarray(hg.vmap(lambda k: R.uniform(k, (100,)))(keys))
    assert (mapped == np.stack([np.asarray(R.uniform(k, (100,))) for k in keys])).all()
    assert hg.vmap(lambda k: R.split(k, 3))(keys).shape == (4, 3, 2)


def test_gradient_of_parameters():
    key = R.key(14)
    z = np.asarray(R.normal(key, (50,)))
    loc, scale = hg.grad(lambda m, s: R.normal(key, (50,), loc=m, scale=s).sum(), (0, 1))(np.float32(1), np.float32(2))
    np.testing.assert_allclose([float(loc), float(scale)], [50.0, z.sum()], rtol=1e-4, atol=1e-4)


def test_generation_fuses_into_its_consumer():
    drop = hg.jit(lambda k, x: hnp.where(R.bernoulli(k, 0.5, x.shape), x * 2.0, 0.0))
    x = hnp.ones((300, 200))
    assert "-> 1 kernel" in str(drop.lower(R.key(0), x).compile().reduction())
    assert abs(float(drop(R.key(0), x).mean()) - 1.0) < 0.02


@pytest.mark.parametrize("p", [[0.0, 0.0, 0.0], [math.nan, 0.5, 0.5]])
def test_weights_without_a_positive_sum_choose_what_there_is(p: list[float]) -> None:
    for draw in (lambda k, p: hg.random.choice(k, 3, (4,), p=p), hg.jit(lambda k, p: hg.random.choice(k, 3, (4,), p=p))):
        np.testing.assert_array_equal(draw(hg.random.key(0), hnp.asarray(p)), np.zeros(4))


def test_weights_of_zero_are_never_chosen() -> None:
    """Whatever a product with the sum of the weights is rounded to."""
    for scale in (1e-30, 0.3, 2.0000002, 3.0, 1e30):
        found = hg.random.choice(hg.random.key(1), 4, (20_000,), p=hnp.asarray([0.0, scale, 0.0, 0.0]))
        assert (np.asarray(found) == 1).all()
