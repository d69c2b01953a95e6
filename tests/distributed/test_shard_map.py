"""``shard_map`` on simulated ranks: parts, replication, derivatives inside and outside, sharded arrays, errors."""

from __future__ import annotations

import pickle
import threading
import time
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.distributed import Mesh, NamedSharding, PartitionSpec, ShardedArray, process_allgather, simulate
from hologram.errors import ArgumentError, DistributedError, DistributedTimeoutError, ShapeError, TransformError

P = PartitionSpec
rng = np.random.default_rng(0)
X = rng.standard_normal((8, 6)).astype(np.float32)
W = rng.standard_normal((6, 3)).astype(np.float32)


def ranks(size: int, main: Any) -> list[Any]:
    return simulate(size, timeout=20).run(main)


def test_parts_of_arrays_go_in_and_come_out() -> None:
    def main() -> Any:
        mesh = hg.make_mesh((2, 2), ("a", "b"))
        f = hg.shard_map(lambda x, w: {"y": x @ w, "shape": hnp.asarray(x.shape)}, mesh, (P("a"), P(None, None)), {"y": P("a"), "shape": P()})
        out = f(X, W)
        assert isinstance(out["y"], ShardedArray) and out["y"].shape == (8, 3) and out["y"].dtype == np.float32
        (shard,) = out["y"].addressable_shards
        np.testing.assert_array_equal(np.asarray(shard.data), np.asarray(process_allgather(out["y"]))[shard.index])
        return np.asarray(process_allgather(out["y"])), np.asarray(out["shape"])

    for y, shape in ranks(4, main):
        np.testing.assert_allclose(y, X @ W, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(shape, [4, 6])


def test_arrays_are_put_divided_and_divided_anew() -> None:
    def main() -> Any:
        mesh = hg.make_mesh((2, 2), ("a", "b"))
        by_rows, by_both = NamedSharding(mesh, P(("a", "b"))), NamedSharding(mesh, P("b", "a"))
        params = hg.device_put({"x": X, "w": [W]}, NamedSharding(mesh, P()))
        assert type(params["w"][0]) is hg.Tensor
        put = hg.device_put(X, by_rows)
        assert put.shape == X.shape and put.addressable_data().shape == (2, 6)
        again = hg.device_put(put, by_both)
        assert again.sharding == by_both and again.addressable_data().shape == (4, 3)
        doubled = hg.shard_map(lambda x: 2 * x, mesh, P("a"), P("a"))(again)
        tripled = hg.tree.map(lambda x: 3 * x, again)
        stacked = process_allgather(np.asarray([hg.distributed.process_index()]))
        joined = process_allgather(np.asarray([hg.distributed.process_index()]), tiled=True)
        return [np.asarray(process_allgather(x)) for x in (again, doubled, tripled)], np.asarray(stacked), np.asarray(joined)

    for (again, doubled, tripled), stacked, joined in ranks(4, main):
        np.testing.assert_array_equal(again, X)
        np.testing.assert_array_equal(doubled, 2 * X)
        np.testing.assert_array_equal(tripled, 3 * X)
        np.testing.assert_array_equal(stacked, [[0], [1], [2], [3]])
        np.testing.assert_array_equal(joined, [0, 1, 2, 3])


def loss(w: Any, x: Any) -> Any:
    return hnp.mean(hnp.tanh(x @ w) ** 2)


def test_derivatives_inside_are_the_ranks_own_and_outside_whole() -> None:
    def main() -> Any:
        mesh = hg.make_mesh((4,), "x")
        inside = hg.shard_map(lambda w, x: hg.lax.pmean(hg.grad(loss)(w, x), "x"), mesh, (P(), P("x")), P())
        mapped = hg.shard_map(lambda w, x: hg.lax.pmean(loss(w, x), "x"), mesh, (P(), P("x")), P())
        outside = hg.jit(hg.grad(mapped, argnums=(0, 1)))
        closed = hg.jit(hg.grad(lambda w: hg.shard_map(lambda x: hg.lax.pmean(loss(w, x), "x"), mesh, P("x"), P())(X)))
        of_parts = hg.jit(hg.grad(lambda x: mapped(W, x)))(hg.device_put(X, NamedSharding(mesh, P("x"))))
        found = [inside(W, X), *outside(W, X), closed(W), process_allgather(of_parts)]
        tangent = hg.jit(lambda w, t: hg.jvp(lambda v: mapped(v, X), (w,), (t,))[1])(W, W)
        return [np.asarray(x) for x in found], float(tangent)

    w, x = (np.asarray(g) for g in hg.grad(loss, argnums=(0, 1))(W, X))
    slope = float(hg.jvp(lambda v: loss(v, X), (W,), (W,))[1])
    for found, tangent in ranks(4, main):
        for got, want in zip(found, [w, w, x, w, x], strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
        assert abs(tangent - slope) < 1e-5


def test_custom_rules_loops_and_stacks_inside() -> None:
    @hg.custom_vjp
    def summed(x: Any) -> Any:
        return hg.lax.psum(x, "x")

    summed.defvjp(lambda x: (hg.lax.psum(x, "x"), None), lambda _, c: (hg.lax.psum(c, "x"),))

    def body(x: Any) -> Any:
        total, _ = hg.lax.scan(lambda c, row: (c + hg.lax.psum(row, "x"), None), hnp.zeros(6, np.float32), x)
        return (total * summed(x.sum(0))).sum()

    def main() -> Any:
        mesh = hg.make_mesh((2,), "x")
        mapped = hg.shard_map(body, mesh, P("x"), P())
        stacks = hg.jit(hg.vmap(mapped))(np.stack([X, 2 * X]))
        return np.asarray(hg.jit(hg.grad(mapped))(X)), np.asarray(stacks)

    total = X.sum(0)
    for gradient, stacks in ranks(2, main):
        np.testing.assert_allclose(gradient, np.broadcast_to(2 * total, X.shape), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(stacks, [(total**2).sum(), 4 * (total**2).sum()], rtol=1e-4)


def test_the_program_shows_its_collectives_and_lines() -> None:
    mesh = hg.make_mesh((1,), "x")
    f = hg.jit(hg.shard_map(lambda x: hg.lax.psum(x * 2, "x"), mesh, P("x"), P()))
    lowered = f.lower(np.ones(3, np.float32))
    text = lowered.as_text("trace")
    assert "psum" in text and "names=(x)" in text and "test_shard_map.py" in text
    assert "psum" in lowered.as_text("plan")
    np.testing.assert_array_equal(np.asarray(f(np.ones(3, np.float32))), [2, 2, 2])


def test_a_gradient_from_outside_is_summed_at_once() -> None:
    mesh = hg.make_mesh((1,), "x")
    mapped = hg.shard_map(lambda w, x: ((x @ w["a"] + w["b"]) ** 2).sum(), mesh, (P(), P("x")), P(), check_vma=False)

    def three_times(w: Any) -> Any:
        return hg.lax.scan(lambda c, _: (c + mapped(w, X), None), np.float32(0), None, length=3)[0]

    w = {"a": W, "b": np.ones(3, np.float32)}
    text = hg.jit(hg.grad(mapped)).lower(w, X).as_text("canonical")
    assert text.count(" = psum ") == 1 and "replicated" not in text
    assert "replicated" not in hg.jit(hg.grad(three_times)).lower(w).as_text("canonical")
    found, want = hg.jit(hg.grad(three_times))(w), hg.grad(lambda v: 3 * ((X @ v["a"] + v["b"]) ** 2).sum())(w)
    np.testing.assert_allclose(np.asarray(found["a"]), np.asarray(want["a"]), rtol=1e-4)


def test_collectives_are_saved(tmp_path: Any) -> None:
    def body(x: Any) -> Any:
        return hg.lax.ppermute(hg.lax.psum(x, "x"), "x", [(0, 1), (1, 0)]) + hg.lax.axis_index("x")

    def main() -> Any:
        f = hg.jit(hg.shard_map(body, hg.make_mesh((2,), "x"), P(), P(), check_vma=False))
        file = tmp_path / f"{hg.distributed.process_index()}"
        hg.export(f, X).save(file)
        return np.asarray(f(X)), np.asarray(hg.load(file)(X))

    for rank, (found, loaded) in enumerate(ranks(2, main)):
        np.testing.assert_array_equal(found, 2 * X + rank)
        np.testing.assert_array_equal(loaded, found)


def differs_in_a_scan(x: Any) -> Any:
    carry, _ = hg.lax.scan(lambda c, row: (c + row, None), hnp.zeros(6, np.float32), x)
    return hg.lax.psum(carry, "x") + carry


def summed_in_a_scan(x: Any, length: int) -> Any:
    return hg.scan(lambda c, _: (hg.lax.psum(c, "x"), None), x, None, length=length)[0]


def steps_differ(x: Any) -> Any:
    return hg.lax.while_loop(lambda c: c[0] < x.sum(), lambda c: (c[0] + 1, c[1] * 2), (np.float32(0), np.float32(1)))[1]


BRANCHES = [lambda v: v * 0, lambda v: v * 0 + 1]


@pytest.mark.parametrize(
    ("body", "replicated"),
    [
        (lambda x: x, False),
        (lambda x: hg.lax.psum(x, "x"), True),
        (lambda x: hg.lax.psum(x, "y"), False),
        (lambda x: hg.lax.psum(x, ("x", "y")) * 2 + 1, True),
        (lambda x: hg.lax.pmean({"a": x}, "x")["a"], True),
        (lambda x: hg.lax.all_gather(x, "x", tiled=True), True),
        (lambda x: hg.lax.pbroadcast(x, "x", 0), True),
        (lambda x: hg.lax.ppermute(hg.lax.psum(x, "x"), "x", [(0, 1)]), False),
        (lambda x: hg.lax.psum_scatter(x, "x", tiled=True), False),
        (lambda x: hg.lax.axis_index("x"), False),
        (lambda x: hg.lax.axis_size("x") * hnp.ones(2), True),
        (differs_in_a_scan, False),
        (lambda x: hg.lax.psum(differs_in_a_scan(x), "x"), True),
        (lambda x: summed_in_a_scan(x, 1), True),
        (lambda x: summed_in_a_scan(x, 0), False),
        (steps_differ, False),
        (lambda x: hg.lax.switch(hg.lax.axis_index("x"), BRANCHES, hnp.ones(2)), False),
        (lambda x: hg.grad(lambda v: (v * v).sum())(x), False),
    ],
)
def test_replication_is_checked(body: Any, replicated: bool) -> None:
    def main() -> None:
        mesh = hg.make_mesh((2, 1), ("x", "y"))
        lower = lambda **options: hg.jit(hg.shard_map(body, mesh, P("x"), P(), **options)).lower(X)  # noqa: E731
        lower(check_vma=False)
        if replicated:
            lower()
        else:
            with pytest.raises(ArgumentError, match=r"shard_map: result may differ along 'x', of which out_specs has PartitionSpec\(\)"):
                lower()

    ranks(2, main)


def test_what_is_wrong_is_said() -> None:
    mesh = hg.make_mesh((1, 1), ("x", "y"))
    f = lambda x: x  # noqa: E731
    for run, error, message in (
        (lambda: hg.shard_map(f, None, P(), P()), ArgumentError, "takes a Mesh"),
        (lambda: hg.shard_map(f, mesh, P("z"), P()), ArgumentError, "names 'z', which Mesh"),
        (lambda: hg.shard_map(f, mesh, ("x",), P()), ArgumentError, "has a str"),
        (lambda: hg.shard_map(f, mesh, (P(), P()), P())(X), ArgumentError, "in_specs has 2 entries for 1 arguments"),
        (lambda: hg.shard_map(f, mesh, P(), (P(), P()))(X), ArgumentError, "out_specs"),
        (lambda: hg.shard_map(f, mesh, P(None, None, "x"), P())(X), ShapeError, "for an array with 2 axes"),
        (lambda: hg.shard_map(f, mesh, P(), P(None, None, "x"))(X), ShapeError, "out_specs: .* for an array with 2 axes"),
        (lambda: hg.shard_map(f, mesh, P(), P())(x=X), ArgumentError, "by position"),
        (lambda: hg.grad(hg.shard_map(lambda x: x.sum(), mesh, P(), P()))(X), TransformError, "wrap the transformed function in hg.jit"),
        (lambda: hg.shard_map(hg.shard_map(f, mesh, P(), P()), mesh, P(), P())(X), ArgumentError, "around this one already"),
        (lambda: hg.shard_map(f, Mesh(range(2), "x"), P("x"), P("x"))(X), DistributedError, "has rank 1, and one process runs"),
        (lambda: hg.make_mesh((2,), "x"), ArgumentError, "has 2 ranks, and one process runs"),
        (lambda: Mesh([0, 0], "x"), ArgumentError, "a rank stands there twice"),
        (lambda: Mesh([[0, 1]], "x"), ArgumentError, "for an array of 2 axes"),
        (lambda: Mesh([0, 1], ("x", "y")), ArgumentError, "for an array of 1 axes"),
        (lambda: Mesh([0.5], "x"), ArgumentError, "integers from 0 up"),
        (lambda: P("x", ("y", "x")), ArgumentError, "stands there twice"),
        (lambda: P(3), ArgumentError, "takes axis names"),
        (lambda: NamedSharding(mesh, "x"), ArgumentError, "takes a Mesh and a PartitionSpec"),
    ):
        with pytest.raises(error, match=message):
            run()  # type: ignore[no-untyped-call]


def test_sizes_that_do_not_divide() -> None:
    def main() -> None:
        mesh = hg.make_mesh((3,), "x")
        for run in (lambda: hg.shard_map(lambda x: x, mesh, P("x"), P("x"))(X), lambda: hg.device_put(X, NamedSharding(mesh, P("x")))):
            with pytest.raises(ShapeError, match=r"axis 0 of shape \[8, 6\] does not divide among the 3 ranks of 'x'"):
                run()
        with pytest.raises(ShapeError, match=r"parts of shape \[2\] make an array of shape \[6\], not \[7\]"):
            hg.make_array_from_process_local_data(NamedSharding(mesh, P("x")), np.ones(2), (7,))
        part = hg.make_array_from_process_local_data(NamedSharding(mesh, P("x")), np.ones(2), (6,))
        with pytest.raises(DistributedError, match="process_allgather gathers all"):
            np.asarray(part)
        with pytest.raises(ArgumentError, match="an argument lies on"):
            hg.shard_map(lambda x: x, hg.make_mesh((3,), "y"), P("y"), P("y"))(part)

    ranks(3, main)


# --- ranks that disagree, fail or wait -------------------------------------------------------------------------------


def on_every_rank(f: Any) -> Any:
    return hg.shard_map(f, hg.make_mesh((hg.distributed.process_count(),), "x"), P(), P(), check_vma=False)(X)


def test_ranks_with_different_programs_are_told_apart() -> None:
    def main() -> None:
        on_every_rank(lambda x: hg.lax.psum(x if hg.distributed.process_index() else x[:4], "x"))

    with pytest.raises(DistributedError, match=r"different programs: rank \d is at psum of float32\[\d, 6\] over 'x' of 2 at test_shard_map.py") as e:
        ranks(2, main)
    assert "float32[4, 6]" in str(e.value) and "float32[8, 6]" in str(e.value)


def test_a_rank_that_fails_lets_no_other_wait() -> None:
    def main() -> None:
        if hg.distributed.process_index() == 1:
            raise KeyError("of rank 1")
        on_every_rank(lambda x: hg.lax.psum(x, "x"))

    began = time.monotonic()
    with pytest.raises(KeyError, match="of rank 1") as e:
        ranks(3, main)
    assert time.monotonic() - began < 15 and e.value.__notes__ == ["on rank 1 of 3 simulated ones"]


def test_a_rank_that_is_late_or_gone() -> None:
    gone = threading.Event()

    def late() -> None:
        if hg.distributed.process_index() == 1:
            gone.wait(10)
        on_every_rank(lambda x: hg.lax.psum(x, "x"))

    with pytest.raises(DistributedTimeoutError, match=r"rank 0, in psum .*: rank 1 did not come to it within 0.3 s"):
        simulate(2, timeout=0.3).run(_releasing(late, gone))

    def leaves() -> None:
        if hg.distributed.process_index() == 0:
            on_every_rank(lambda x: hg.lax.psum(x, "x"))

    with pytest.raises(DistributedError, match="rank 1 has ended its program"):
        ranks(2, leaves)


def _releasing(main: Any, event: threading.Event) -> Any:
    """``main``, after which, on rank 0, nobody waits for the event."""

    def run() -> None:
        try:
            main()
        finally:
            if hg.distributed.process_index() == 0:
                event.set()

    return run


def _doubled(x: Any) -> Any:
    return x * 2


def test_mapped_functions_and_shardings_can_be_pickled() -> None:
    mesh = hg.make_mesh((1,), "x")
    f, sharding = pickle.loads(pickle.dumps((hg.shard_map(_doubled, mesh, P("x"), P("x")), NamedSharding(mesh, P("x", None)))))
    assert sharding == NamedSharding(mesh, P("x"))
    np.testing.assert_array_equal(np.asarray(f(X)), 2 * X)


def test_effects_without_results_happen() -> None:
    def main() -> Any:
        seen: list[Any] = []
        mesh = hg.make_mesh((2,), "x")

        def f(x: Any) -> Any:
            total = hg.lax.psum(x.sum(), "x")
            hg.debug.callback(lambda *v: seen.append([float(i) for i in v]), x[0], total)
            hg.debug.check(total < 10, "too much")
            return hg.scan(lambda c, v: (hg.debug.callback(lambda v: seen.append(float(v)), v) or c + v, None), total, x)[0]

        mapped = hg.shard_map(lambda x: f(x)[None], mesh, P("x"), P("x"))
        mapped(np.float32([1, 2]))
        with pytest.raises(hg.errors.CheckError, match="too much"):
            mapped(np.float32([10, 20]))
        return seen[:2]

    assert ranks(2, main) == [[[1.0, 3.0], 1.0], [[2.0, 3.0], 2.0]]
