"""Collectives over the axes of vmap and of simulated meshes, against what they mean in NumPy; their derivatives against their definition."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.distributed import Mesh, NamedSharding, PartitionSpec, make_array_from_process_local_data, simulate
from hologram.errors import ArgumentError, AxisNameError, AxisOutOfRange, DTypeError, ShapeError, TransformError
from tests.support.distributed.cases import CASES, SHAPE, Case, N

TYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int32, np.int8, np.uint64, np.complex64]
P = PartitionSpec
rng = np.random.default_rng(0)
cases = pytest.mark.parametrize("name", CASES)


def stack(dtype: Any) -> np.ndarray:
    values = rng.integers(-9, 9, (N, *SHAPE)) if np.dtype(dtype).kind in "iu" else rng.standard_normal((N, *SHAPE)) * 8
    return values.astype(dtype) + (1j * rng.standard_normal((N, *SHAPE)).astype(dtype) if np.dtype(dtype).kind == "c" else np.asarray(0, dtype))


def ordered(case: Case, dtype: Any) -> bool:
    return case.linear or np.dtype(dtype).kind != "c"


def on_ranks(run: Any, x: np.ndarray, shape: tuple[int, ...], names: Any, over: Any) -> list[np.ndarray]:
    """What each rank of a simulated mesh gets, ``x[i]`` being rank i's array."""

    def main() -> np.ndarray:
        mesh = hg.make_mesh(shape, names)
        every = P(tuple(mesh.axis_names))
        given = make_array_from_process_local_data(NamedSharding(mesh, every), x[hg.distributed.process_index()][None])
        f = hg.shard_map(lambda part: run(part[0], over)[None], mesh=mesh, in_specs=every, out_specs=every)
        return np.asarray(f(given).addressable_data()[0])

    return simulate(len(x)).run(main)


@cases
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: np.dtype(t).name)
@pytest.mark.crossed
def test_over_an_axis_of_vmap(name: str, dtype: Any) -> None:
    case, x = CASES[name], stack(dtype)
    if ordered(case, dtype):
        found = np.asarray(hg.vmap(lambda one: case.run(one, "i"), axis_name="i")(x))
        want = case.meaning(x)
        assert found.dtype == want.dtype and found.shape == want.shape
        tolerance = 1e-2 if np.dtype(dtype).itemsize == 2 else 1e-6  # a sum over a stack is rounded as the compiler orders it
        np.testing.assert_allclose(found.astype(complex), want.astype(complex), rtol=tolerance, atol=10 * tolerance)


@cases
@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: np.dtype(t).name)
@pytest.mark.crossed
def test_over_ranks_bit_for_bit(name: str, dtype: Any) -> None:
    case, x = CASES[name], stack(dtype)
    if ordered(case, dtype):
        found = on_ranks(case.run, x, (N,), "i", "i")
        np.testing.assert_array_equal(np.stack(found), case.meaning(x))


@cases
def test_over_two_axes_of_a_mesh_and_of_two_vmaps(name: str) -> None:
    case, x = CASES[name], stack(np.float32)
    want = case.meaning(x)
    np.testing.assert_array_equal(np.stack(on_ranks(case.run, x, (2, 2), ("a", "b"), ("a", "b"))), want)
    inner = hg.vmap(lambda one: case.run(one, ("a", "b")), axis_name="b")
    found = np.asarray(hg.vmap(inner, axis_name="a")(x.reshape(2, 2, *SHAPE)))
    np.testing.assert_allclose(found.reshape(want.shape), want, rtol=1e-6, atol=1e-5)


def test_over_one_of_two_axes_and_in_the_other_order() -> None:
    x = np.arange(6, dtype=np.float32)
    sums = on_ranks(hg.lax.psum, x, (2, 3), ("a", "b"), "b")
    np.testing.assert_array_equal(sums, [3, 3, 3, 12, 12, 12])
    gathered = on_ranks(hg.lax.all_gather, x, (2, 3), ("a", "b"), ("b", "a"))
    np.testing.assert_array_equal(gathered, [[0, 3, 1, 4, 2, 5]] * 6)
    numbers = on_ranks(lambda one, i: hg.lax.axis_index(i) + 0 * one, x, (2, 3), ("a", "b"), ("b", "a"))
    np.testing.assert_array_equal(numbers, [0, 2, 4, 1, 3, 5])


def test_large_sums_are_added_in_the_order_of_ranks() -> None:
    """By parts, several arrays of two types together: the same bits as one after the other."""
    x = (rng.standard_normal((3, 5, 40_000)) * 10.0 ** rng.integers(-8, 8, (3, 5, 1))).astype(np.float32)

    def run(one: Any, i: str) -> Any:
        f32, f16, more = hg.lax.psum((one[0], one[1].astype("float16"), one[2:, :7]), i)
        return hnp.concatenate([f32, f16.astype("float32"), more.ravel()])

    half = x[:, 1].astype(np.float16).astype(np.float32)
    with np.errstate(over="ignore"):
        want = np.concatenate([x[0, 0] + x[1, 0] + x[2, 0], (half[0] + half[1] + half[2]).astype(np.float16), (x[0] + x[1] + x[2])[2:, :7].ravel()])
    for found in on_ranks(run, x, (3,), "i", "i"):
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if c.linear])
def test_transposes_are_adjoint(name: str) -> None:
    """The inner product of a cotangent with the result is that of its pullback with the argument, over all ranks together."""
    case, x = CASES[name], stack(np.float64)
    cotangent = rng.standard_normal(case.meaning(x).shape)

    def pulled(one: Any, c: Any, i: str) -> Any:
        return hg.vjp(lambda z: case.run(z, i), one)[1](c)[0]

    want = np.sum(case.meaning(x) * cotangent)
    by_vmap = hg.vmap(lambda one, c: pulled(one, c, "i"), axis_name="i")(x, cotangent)
    np.testing.assert_allclose(np.sum(x * np.asarray(by_vmap)), want)
    around = hg.vjp(hg.vmap(lambda one: case.run(one, "i"), axis_name="i"), x)[1](cotangent)[0]
    np.testing.assert_allclose(np.asarray(around), np.asarray(by_vmap), atol=1e-12)
    both = np.concatenate([x.reshape(N, -1), cotangent.reshape(N, -1)], axis=1)
    shape = cotangent.shape[1:]
    run = lambda one, i: pulled(one[: x[0].size].reshape(SHAPE), one[x[0].size :].reshape(shape), i)  # noqa: E731
    np.testing.assert_allclose(np.stack(on_ranks(run, both, (N,), "i", "i")), np.asarray(by_vmap), atol=1e-12)


def test_jvp_is_the_op_of_a_linear_op() -> None:
    x, t = stack(np.float32), stack(np.float32)
    f = hg.vmap(lambda one, d: hg.jvp(lambda z: hg.lax.psum(z * z, "i"), (one,), (d,))[1], axis_name="i")
    np.testing.assert_allclose(np.asarray(f(x, t))[0], 2 * (x * t).sum(0), rtol=1e-5, atol=1e-4)


def test_extremes_have_no_derivative() -> None:
    with pytest.raises(TransformError, match="pmax cannot be differentiated"):
        hg.vmap(hg.grad(lambda x: hg.lax.pmax(x, "i")), axis_name="i")(hnp.ones(3))


def test_inside_another_vmap_loops_and_branches() -> None:
    x = stack(np.float32)

    def looped(one: Any) -> Any:
        total, _ = hg.lax.scan(lambda c, row: (c + hg.lax.psum(row, "i"), None), hnp.zeros(SHAPE[1], np.float32), one)
        return hg.lax.cond(hg.lax.axis_index("i") > 1, lambda v: v, lambda v: -v, total)

    found = np.asarray(hg.jit(hg.vmap(hg.vmap(looped, axis_name="i")))(np.stack([x, 2 * x])))
    signs = np.array([-1, -1, 1, 1], np.float32)[:, None]
    want = x.sum((0, 1)) * signs
    np.testing.assert_allclose(found, np.stack([want, 2 * want]), rtol=1e-4, atol=1e-4)


def test_custom_rules_see_the_axis() -> None:
    @hg.custom_vjp
    def f(x: Any) -> Any:
        return x * 2

    f.defvjp(lambda x: (x * 2, None), lambda _, c: (hg.lax.psum(c, "i"),))
    found = hg.grad(lambda x: hg.vmap(f, axis_name="i")(x).sum())(hnp.arange(3.0))
    np.testing.assert_array_equal(np.asarray(found), [3, 3, 3])


def test_what_is_the_same_for_all_examples_needs_no_stack() -> None:
    x = hnp.arange(4.0)
    assert hg.vmap(lambda v: hg.lax.psum(v, "i") * 2, axis_name="i", out_axes=None)(x).shape == ()
    with pytest.raises(ArgumentError, match="depends on the example"):
        hg.vmap(lambda v: hg.lax.psum(v, "i") * v, axis_name="i", out_axes=None)(x)
    text = hg.jit(hg.vmap(lambda v: hg.lax.psum(v, "i"), axis_name="i", out_axes=None)).lower(x).as_text("trace")
    assert "reduce_sum" in text and "broadcast" not in text


def test_numbers_bools_and_constants() -> None:
    x = hnp.asarray([True, False, True])
    assert hg.vmap(lambda v: hg.lax.psum(v, "i"), axis_name="i", out_axes=None)(x).dtype == np.int64
    seen: list[Any] = []
    hg.vmap(lambda v: seen.append((hg.lax.psum(2, "i"), hg.lax.pmax(2, "i"), hg.lax.axis_size("i"))) or v, axis_name="i")(x)
    assert seen == [(6, 2, 3)]
    ones = hg.vmap(lambda v: hg.lax.psum(hnp.ones(2), "i"), axis_name="i")(x)
    np.testing.assert_array_equal(np.asarray(ones), np.full((3, 2), 3))


@pytest.mark.parametrize("name", [n for n in CASES if not n.startswith(("psum", "axis"))])
def test_bools_stay_bools(name: str) -> None:
    """Extremes of them, as in NumPy, and what moves them: between ranks, and over an axis of a vmap. A sum counts them."""
    case, x = CASES[name], rng.integers(0, 2, (N, *SHAPE)).astype(bool)
    want = case.meaning(x)
    for found in (np.stack(on_ranks(case.run, x, (N,), "i", "i")), np.asarray(hg.vmap(lambda one: case.run(one, "i"), axis_name="i")(x))):
        assert found.dtype == bool
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize(
    ("run", "error", "message"),
    [
        (lambda x: hg.lax.psum(x, "j"), AxisNameError, "unbound axis name: 'j': there is 'i'"),
        (lambda x: hg.lax.psum(x, ("i", "i")), ArgumentError, "stands there twice"),
        (lambda x: hg.lax.psum(x, ()), ArgumentError, "at least one axis name"),
        (lambda x: hg.lax.psum_scatter(x, "i", tiled=True), ShapeError, r"axis 0 of shape \[5, 2\] does not divide among 3"),
        (lambda x: hg.lax.all_to_all(x, "i", 0, 0), ShapeError, "does not divide among 3"),
        (lambda x: hg.lax.all_gather(x, "i", axis=4), AxisOutOfRange, "axis 4 of an array with 3 axes"),
        (lambda x: hg.lax.ppermute(x, "i", [(0, 1), (2, 1)]), ArgumentError, "no permutation of ranks below 3"),
        (lambda x: hg.lax.ppermute(x, "i", [(0, 3)]), ArgumentError, "no permutation of ranks below 3"),
        (lambda x: hg.lax.ppermute(x, "i", [3]), ArgumentError, "no pair of a source and a destination"),
        (lambda x: hg.lax.pbroadcast(x, "i", 3), ArgumentError, "no rank 3 among 3"),
        (lambda x: hg.lax.pmax(x + 1j, "i"), DTypeError, "pmax does not take complex"),
    ],
)
def test_what_is_wrong_is_said_with_the_line(run: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message) as raised:
        hg.vmap(run, axis_name="i")(hnp.zeros((3, 5, 2)))
    assert "test_collectives.py" in str(raised.value)


def test_names_end_with_their_vmap() -> None:
    with pytest.raises(AxisNameError, match="no vmap with axis_name, and no shard_map, is around it"):
        hg.lax.axis_index("i")
    with pytest.raises(NameError):
        hg.vmap(lambda x: hg.lax.psum(x, "i"))(hnp.ones(2))
    with pytest.raises(ArgumentError, match="axis_name is a string"):
        hg.vmap(lambda x: x, axis_name=3)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match="static extent"):
        hg.jit(hg.vmap(lambda x: hg.lax.psum(x, "i"), axis_name="i"), dynamic=True).lower(np.ones(3, np.float32))


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("jitted", [False, True])
def test_memory_of_small_sums_is_used_again(ranks: int, jitted: bool) -> None:
    """Several types in one message, at offsets that are not aligned; results of earlier calls stay as they are; several sums on their way at once."""
    shapes = {"a": ((3,), np.int8), "b": ((), np.float64), "c": ((2, 3), np.float16), "d": ((5,), np.complex64), "e": ((0, 4), np.float32)}

    def given(step: int, rank: int) -> dict[str, np.ndarray]:
        numbers = np.random.default_rng([step, rank])
        return {k: np.asarray(numbers.integers(-9, 9, shape)).astype(dtype) for k, (shape, dtype) in shapes.items()}

    def main() -> Any:
        mesh, rank = hg.make_mesh((ranks,), "i"), hg.distributed.process_index()

        def both(x: Any) -> Any:
            total = hg.lax.psum(x, "i")
            busy = hnp.ones((64, 64)) @ hnp.ones((64, 64)) if jitted else 1.0
            return total, hg.lax.pmax(hg.tree.map(lambda v: v.real + hnp.sum(busy * 0).astype(v.real.dtype), x), "i")

        run = hg.shard_map(both, mesh, P(), P(), check_vma=False)
        run = hg.jit(run) if jitted else run
        return [run(given(step, rank)) for step in range(4)]

    for found in simulate(ranks).run(main):
        for step, (total, most) in enumerate(found):
            everyone = [given(step, rank) for rank in range(ranks)]
            for k, (_, dtype) in shapes.items():
                stack = np.stack([x[k] for x in everyone])
                np.testing.assert_array_equal(np.asarray(total[k]), stack.sum(0, dtype=dtype))
                np.testing.assert_array_equal(np.asarray(most[k]), stack.real.max(0))


# --- in loops, branches and transforms -------------------------------------------------------------------------------

Run = Any  # of an array, what a collective gives


def in_scan(run: Run, x: Any) -> Any:
    return hg.scan(lambda c, k: (c, run(x * k)), 0.0, hnp.asarray([2.0, 1.0], x.dtype))[1][1]


def in_while(run: Run, x: Any) -> Any:
    return hg.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, run(x * s[0]) / 2), (1, run(x)))[1]


def in_fori(run: Run, x: Any) -> Any:
    return hg.fori_loop(0, 3, lambda _, s: (s + run(x)) / 2, run(x))


def in_branches(run: Run, x: Any) -> Any:
    return hg.cond(x.sum() * 0 == 0, run, lambda v: run(v) * 0, x)


def in_vmap(run: Run, x: Any) -> Any:
    return hg.vmap(run, in_axes=-1, out_axes=-1)(hnp.stack([2 * x, x], -1))[..., 1]


def in_map(run: Run, x: Any) -> Any:
    return hg.lax.map(run, hnp.stack([2 * x, x]))[1]


def in_custom_rule(run: Run, x: Any) -> Any:
    @hg.custom_jvp
    def f(v: Any) -> Any:
        return run(v)

    f.defjvp(lambda primals, tangents: (run(primals[0]), run(tangents[0])))
    return f(x)


PLACES = {
    "scan": in_scan,
    "while_loop": in_while,
    "fori_loop": in_fori,
    "cond": in_branches,
    "vmap": in_vmap,
    "map": in_map,
    "checkpoint": lambda run, x: hg.checkpoint(run)(x),
    "custom_jvp": in_custom_rule,
    "jit": lambda run, x: hg.jit(run)(x),
}


@cases
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.crossed
def test_in_loops_branches_and_transforms(name: str, place: str) -> None:
    """Values, derivatives along a direction, and pullbacks, of ranks and of a vmap: those of the collective alone."""
    case, x = CASES[name], stack(np.float64)
    want = case.meaning(x)
    cotangent = rng.standard_normal(want.shape)

    def here(v: Any, i: Any) -> Any:
        return PLACES[place](lambda u: case.run(u, i), v)

    def along(v: Any, i: Any) -> Any:
        return hg.jvp(lambda u: here(u, i), (v,), (v,))[1]

    def back(both: Any, i: Any) -> Any:
        v, c = both[: x[0].size].reshape(SHAPE), both[x[0].size :].reshape(want.shape[1:])
        return hg.vjp(lambda u: here(u, i), v)[1](c)[0]

    checked: list[tuple[Any, np.ndarray]] = [(here, x)]
    if case.linear:
        checked += [(along, x)]
    for f, given in checked:
        for found in (np.stack(on_ranks(f, given, (N,), "i", "i")), np.asarray(hg.vmap(lambda v, f=f: f(v, "i"), axis_name="i")(given))):
            np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)
    if case.linear and place != "while_loop":
        both = np.concatenate([x.reshape(N, -1), cotangent.reshape(N, -1)], axis=1)
        for found in (np.stack(on_ranks(back, both, (N,), "i", "i")), np.asarray(hg.vmap(lambda v: back(v, "i"), axis_name="i")(both))):
            np.testing.assert_allclose(np.sum(found * x), np.sum(want * cotangent), rtol=1e-10)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "bool"])
def test_a_mean_of_integers_does_not_wrap(dtype: str) -> None:
    """Between ranks, and over an axis of a vmap."""
    limit = 1 if dtype == "bool" else min(np.iinfo(dtype).max, 1 << 40)
    x = np.array([[limit, 0], [limit, 1], [limit, 1], [limit, 0]], dtype)
    mean = hg.shard_map(lambda v: hg.lax.pmean(v[0], "x"), Mesh(np.arange(4), "x"), PartitionSpec("x"), PartitionSpec())
    found = [*simulate(4).run(lambda: np.asarray(mean(x))), np.asarray(hg.vmap(lambda v: hg.lax.pmean(v, "x"), axis_name="x")(x)[0])]
    for one in found:
        np.testing.assert_allclose(one, x.astype(np.float64).mean(0), rtol=1e-6)
        assert one.dtype == found[0].dtype == np.asarray(hnp.asarray(x) / 4).dtype
