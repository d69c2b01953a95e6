"""Divided arrays outside of ``shard_map``: what is done with them has the values of one process, or is refused; ``jit`` with shardings."""

from __future__ import annotations

import copy
import operator
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import lax
from hologram.distributed import NamedSharding, PartitionSpec, ShardedArray, process_allgather, simulate
from hologram.errors import ArgumentError, DistributedError, GatherWarning, HologramError, ShapeError, TransformError
from hologram.scipy.sparse.linalg import cg

P = PartitionSpec
X = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
V = np.random.default_rng(1).standard_normal(8).astype(np.float32)


@pytest.fixture(autouse=True)
def gathering() -> Iterator[None]:
    """Arrays may be gathered; what is expected to warn says so itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GatherWarning)
        yield


def ranks(main: Callable[[Any], Any], shape: tuple[int, ...] = (4,), names: tuple[str, ...] = ("i",)) -> list[Any]:
    return simulate(int(np.prod(shape)), timeout=20).run(lambda: main(hg.make_mesh(shape, names)))


def put(x: Any, mesh: Any, *spec: Any) -> Any:
    return hg.device_put(x, NamedSharding(mesh, P(*spec)))


def whole(x: Any) -> Any:
    return hg.tree.map(lambda v: np.asarray(process_allgather(v) if isinstance(v, ShardedArray) else v), x)


def same(found: Any, want: Any) -> None:
    pairs = [[np.asarray(v) for v in hg.tree.leaves(t)] for t in (found, want)]
    assert len(pairs[0]) == len(pairs[1])
    for a, b in zip(*pairs, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


# --- what users write ------------------------------------------------------------------------------------------------


def with_function(module: Any, name: str, run: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    return lambda x: run(getattr(module, name), x)


BY_PARTS: dict[str, Callable[[Any], Any]] = {
    **{name: with_function(operator, name, lambda f, x: f(x, x)) for name in "add sub mul truediv floordiv mod lt le gt ge eq ne".split()},
    **{f"{name} number": with_function(operator, name, lambda f, x: f(f(x, 2), 3.0)) for name in "add sub mul truediv pow lt".split()},
    **{f"number {name}": with_function(operator, name, lambda f, x: f(2.0, x)) for name in "add sub mul truediv pow lt".split()},
    **{f"array {name}": with_function(operator, name, lambda f, x: f(X[0], x)) for name in "add sub mul truediv".split()},
    **{f"{name} Tensor": with_function(operator, name, lambda f, x: f(x, hnp.asarray(X))) for name in "add sub mul truediv".split()},
    **{name: with_function(hnp, name, lambda f, x: f(x)) for name in "sin exp sqrt tanh square negative abs sign isnan".split()},
    "maximum": lambda x: hnp.maximum(x, 0.5),
    "negative zero": lambda x: (x * 0.0) * -0.0,
    "column": lambda x: x + X[:, :1],
    "stretched": lambda x: hnp.add(x, X[None, :2, None, :1] * np.ones((1, 1, 8, 4), np.float32)),
    "list": lambda x: x + [1, 2, 3, 4],
    "neg": lambda x: -x,
    "abs": abs,
    "cast": lambda x: x.astype("float64"),
    "in place": lambda x: operator.iadd(x, 1),
    "integer": lambda x: x.astype("int32") << 2 & 7 | 1 ^ 3,
    "tree": lambda x: hg.tree.map(lambda w, g: w - 0.1 * g, {"a": x}, {"a": x})["a"],
    "clip": lambda x: lax.mul(x, x),
}
GATHERED: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: hnp.sum(x),
    "method": lambda x: x.sum(axis=0),
    "mean": lambda x: x - x.mean(),
    "tree mean": lambda x: hg.tree.map(lambda v: v - v.mean(), {"a": x}),
    "norm": lambda x: hnp.sqrt(sum(hnp.sum(hnp.square(v)) for v in hg.tree.leaves([x, x]))),
    "linalg.norm": lambda x: hnp.linalg.norm(x),
    "reduce": lambda x: hg.tree.reduce(lambda a, b: a + b.sum(), [x, x], np.float32(0)),
    "raveled": lambda x: hg.flatten_util.ravel_pytree({"a": x})[0],
    "matmul": lambda x: x @ X.T,
    "rmatmul": lambda x: X.T @ x,
    "transposed": lambda x: x.T,
    "indexed": lambda x: x[3, 1:],
    "updated": lambda x: x.at[0].set(1.0),
    "items": lambda x: list(x)[5],
    "sort": lambda x: hnp.sort(x, axis=0),
    "where": lambda x: hnp.where(x > 0, x, 0),
    "joined": lambda x: hnp.concatenate([x, X]),
    "softmax": lambda x: hg.nn.softmax(x, axis=0),
    "einsum": lambda x: hnp.einsum("ij,ik->jk", x, x),
    "cumsum": lambda x: lax.cumsum(x, axis=0),
    "lax.reduce": lambda x: lax.reduce(x, np.float32(0), lax.add, (0,)),
    "associative_scan": lambda x: hg.associative_scan(lambda a, b: a + b, x),
    "cg": lambda x: cg(lambda v: hg.tree.map(lambda u: 2 * u, v), x)[0],
    "asarray": lambda x: hnp.asarray(x) * 1,
    "cond": lambda x: hg.cond(x.sum() > 1e9, lambda v: v * 0, lambda v: v * 2, x),
    "scan": lambda x: hg.scan(lambda c, r: (c * r, c.sum()), x, np.float32([1, 2])),
    "while": lambda x: hg.while_loop(lambda v: v.max() < 50, lambda v: 2 * v, x),
    "tree.map into whole": lambda x: hg.tree.map(lambda w, g: w + g.sum(), {"a": X}, {"a": x}),
}
EVERYTHING = BY_PARTS | GATHERED


@pytest.mark.parametrize("name", EVERYTHING)
def test_values_are_those_of_one_process(name: str) -> None:
    f = EVERYTHING[name]

    def main(mesh: Any) -> Any:
        x = put(X, mesh, "i")
        eager, jitted = f(x), hg.jit(f)(x)
        if name in BY_PARTS:
            assert isinstance(eager, ShardedArray) and isinstance(jitted, ShardedArray)
            assert eager.sharding == jitted.sharding and "i" in eager.sharding.spec.names()
        return whole(eager), whole(jitted)

    want = hg.tree.map(np.asarray, hg.jit(f)(X))
    for eager, jitted in ranks(main):
        same(eager, want)
        same(jitted, want)


DIFFERENTIATED: dict[str, Callable[[Any], Any]] = {
    "by parts": lambda x: hnp.sum((x * X + hnp.sin(x)) ** 2),
    "norm": lambda x: hnp.sqrt(sum(hnp.sum(hnp.square(v)) for v in hg.tree.leaves({"a": x}))),
    "product": lambda x: hnp.sum(hnp.tanh(x @ X.T) ** 2),
    "mixed": lambda x: hnp.sum(x.mean(axis=0) * (x - x.mean()) ** 2),
    "twice": lambda x: hnp.sum(hg.grad(lambda y: hnp.sum(hnp.sin(y) * y[0] * X))(x) ** 2),
    "loop": lambda x: hnp.sum(hg.fori_loop(0, 3, lambda _, v: hnp.sin(v) * v.sum(), x)),
    "checkpoint": lambda x: hnp.sum(hg.checkpoint(lambda v: hnp.exp(v) @ X.T)(x)),
    "closed over": lambda x: hnp.sum(hg.jit(lambda: x * x.sum())()),
}


@pytest.mark.costly(2)
@pytest.mark.parametrize("name", DIFFERENTIATED)
def test_derivatives_are_those_of_one_process(name: str) -> None:
    f = DIFFERENTIATED[name]

    def main(mesh: Any) -> Any:
        x = put(X, mesh, "i")
        value, slope = hg.jit(hg.value_and_grad(f))(x)
        assert slope.sharding == x.sharding
        along = hg.jit(lambda v: hg.jvp(f, (v,), (v,))[1])(x)
        placed = hg.jit(hg.grad(lambda v: f(hg.device_put(v, NamedSharding(mesh, P("i"))))))(X)
        wished = hg.jit(hg.grad(lambda v: f(lax.with_sharding_constraint(v, NamedSharding(mesh, P(None, "i"))))))(X)
        return whole((value, slope, along, placed, wished))

    value, slope = hg.value_and_grad(f)(X)
    want = value, slope, hg.jvp(f, (X,), (X,))[1], slope, slope
    for found in ranks(main):
        for a, b in zip(found, want, strict=True):
            np.testing.assert_allclose(a, np.asarray(b), rtol=2e-4, atol=1e-4)


def test_arrays_that_are_divided_otherwise_meet() -> None:
    def main(mesh: Any) -> Any:
        x, y = put(X, mesh, "a", "b"), put(X, mesh, None, ("a", "b"))
        rows, columns = put(V, mesh, ("b", "a")), put(X[0], mesh, "b")
        found = x + y, y + x, x * rows[:, None], x - columns, columns - x, (x + 1) @ (y.T + 1)
        assert found[0].sharding == x.sharding and found[1].sharding == y.sharding and found[4].shape == X.shape
        return whole(found)

    want = X + X, X + X, X * V[:, None], X - X[0], X[0] - X, (X + 1) @ (X.T + 1)
    for found in ranks(main, (2, 2), ("a", "b")):
        same(found, want)


def test_an_array_is_a_leaf() -> None:
    def main(mesh: Any) -> None:
        x = put(X, mesh, "i")
        state = {"w": x, "n": 3}
        assert hg.tree.leaves(state)[1] is x and hg.tree.flatten(state)[1] == hg.tree.structure({"w": 0, "n": 0})
        assert hg.tree_util.all_leaves([x]) and not hg.tree_util.is_tree_node(ShardedArray)
        assert hg.tree.paths(state)[1] == ("['w']", x) and hg.tree.leaves_with_path(state)[1][1] is x
        assert hg.tree.transpose(hg.tree.structure([0]), hg.tree.structure({"a": 0}), [{"a": x}])["a"][0] is x
        assert hg.tree.map(lambda v: v.shape, x) == X.shape and len(x) == 8 and x.nbytes == X.nbytes
        for made in (copy.copy(x), pickle.loads(pickle.dumps(x)), hg.jit(lambda v: v)(x), x.block_until_ready()):
            assert made.sharding == x.sharding
            np.testing.assert_array_equal(np.asarray(made.addressable_data()), np.asarray(x.addressable_data()))

    ranks(main)


REFUSED: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "NumPy": (np.asarray, DistributedError),
    "bool": (bool, DistributedError),
    "float": (float, DistributedError),
    "device_get": (hg.device_get, DistributedError),
    "tree.all": (hg.tree.all, DistributedError),
    "ufunc": (np.sin, TypeError),
    "hash": (hash, TypeError),
    "assignment": (lambda x: operator.setitem(x, 0, 1), TypeError),
    "grad": (lambda x: hg.grad(lambda v: (v * v).sum())(x), TransformError),
    "vmap": (lambda x: hg.vmap(hnp.sum)(x), TransformError),
    "scanned": (lambda x: hg.scan(lambda c, v: (c, v), 0.0, x), TransformError),
    "map": (lambda x: lax.map(hnp.sum, x), TransformError),
    "map of blocks": (lambda x: lax.map(hnp.sum, x, batch_size=2), TransformError),
    "shapes": (lambda x: x + X[:3], ShapeError),
    "unknown": (lambda x: x.unknown, AttributeError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_meaning_is_refused(name: str) -> None:
    f, error = REFUSED[name]

    def main(mesh: Any) -> None:
        with pytest.raises(error):
            f(put(X, mesh, "i"))

    ranks(main)


@pytest.mark.parametrize("read", [lambda y, x: y + x, lambda y, x: y + x[:1], lambda y, x: y * hnp.sum(x)])
def test_a_function_of_parts_does_not_read_whole_arrays(read: Any) -> None:
    def main(mesh: Any) -> None:
        x = put(X, mesh, "i")
        with pytest.raises(ArgumentError, match=r"reads an array with PartitionSpec\('i'\) from around it: give it as an argument"):
            hg.shard_map(lambda y: read(y, x), mesh, P(), P(), check_vma=False)(X)

    ranks(main)


def test_gathering_warns_with_the_line_and_the_array() -> None:
    mesh = hg.distributed.Mesh(range(2), "i")
    x = hg.ShapeDtypeStruct(X.shape, "float32", sharding=NamedSharding(mesh, P("i")))
    told = hg.distributed.predict(lambda v: v * 2 + v, mesh, hg.distributed.Network())(x)
    assert told.messages == 0
    text = r"an array of shape \[8, 4\] with PartitionSpec\('i'\) is gathered on each of 2 ranks"
    with pytest.warns(GatherWarning, match=text) as caught:
        told = hg.distributed.predict(lambda v: v @ X.T, mesh, hg.distributed.Network())(x)
    assert told.bytes_sent == X.nbytes // 2 and all(w.filename == __file__ for w in caught)


# --- jit with shardings ----------------------------------------------------------------------------------------------


def test_arguments_and_results_are_divided_as_jit_is_told() -> None:
    def main(mesh: Any) -> Any:
        rows, columns, everywhere = (NamedSharding(mesh, P(*spec)) for spec in (("i",), (None, "i"), ()))
        options = {"in_shardings": (rows, {"a": None, "b": everywhere}), "out_shardings": {"y": columns, "t": None}}
        f = hg.jit(lambda x, n, w: {"y": x * n + w["a"], "t": (x @ w["b"]).sum()}, static_argnums=1, **options)
        found = [f(given, 3, {"a": X[0], "b": X.T}) for given in (X, put(X, mesh, "i"), put(X, mesh, None, "i"))]
        assert all(r["y"].sharding == columns and type(r["t"]) is hg.Tensor for r in found)
        alone = hg.jit(lambda x: x + 1, out_shardings=rows)(X)
        assert alone.sharding == rows
        back = hg.jit(lambda x: x + 1, in_shardings=rows, out_shardings=everywhere)(X)
        assert type(back) is hg.Tensor
        by_name = hg.jit(lambda x, n: x * n, in_shardings=rows, static_argnames="n", donate_argnums=0)(put(X, mesh, "i"), 2)
        return whole((found, alone, back, by_name))

    one = {"y": X * 3 + X[0], "t": (X @ X.T).sum()}
    for found in ranks(main):
        same(found, ([one] * 3, X + 1, X + 1, X * 2))


def test_shardings_that_do_not_fit() -> None:
    def main(mesh: Any) -> None:
        rows = NamedSharding(mesh, P("i"))
        for options in ({"in_shardings": P("i")}, {"out_shardings": "cpu"}):
            with pytest.raises(ArgumentError, match="takes NamedShardings"):
                hg.jit(lambda x: x, **options)
        with pytest.raises(ArgumentError, match="in_shardings .* does not match the structure"):
            hg.jit(lambda x: x, in_shardings=(rows, rows))(X)
        with pytest.raises(ArgumentError, match="arguments are given by position, not by name: x"):
            hg.jit(lambda x: x, in_shardings=rows)(x=X)
        with pytest.raises(ShapeError, match="does not divide"):
            hg.jit(lambda x: x, in_shardings=rows)(X[:3])
        with pytest.raises(ShapeError, match="for an array with 0 axes"):
            lax.with_sharding_constraint(2.0, rows)
        with pytest.raises(ArgumentError, match="the shardings has .* for one array"):
            lax.with_sharding_constraint(X, P("i"))
        other = hg.distributed.Mesh([3, 2, 1, 0], "i")
        with pytest.raises(HologramError, match="lies on"):
            put(X, mesh, "i") + put(X, other, "i")

    ranks(main)


def test_sizes_that_change_and_new_arrays() -> None:
    def main(mesh: Any) -> Any:
        f, found = hg.jit(lambda x: (x * 2 + x.sum(), x - 1)), []
        for n in (4, 8, 12, 16, 20):
            x = np.arange(n, dtype=np.float32)
            found.append(whole(f(put(x, mesh, "i"))))
        return found

    for found in ranks(main):
        for n, got in zip((4, 8, 12, 16, 20), found, strict=True):
            x = np.arange(n, dtype=np.float32)
            same(got, (x * 2 + x.sum(), x - 1))


def test_arrays_from_callbacks_and_parts() -> None:
    def main(mesh: Any) -> Any:
        rows = NamedSharding(mesh, P(None, "i"))
        asked: list[Any] = []
        x = hg.make_array_from_callback(X.shape, rows, lambda index: asked.append(index) or X[index], dtype="float64")
        assert asked == [x.addressable_shards[0].index] and x.dtype == np.float64
        everywhere = hg.make_array_from_callback(X.shape, NamedSharding(mesh, P()), lambda index: X[index])
        assert type(everywhere) is hg.Tensor
        y = hg.make_array_from_single_device_arrays(X.shape, rows, [x.addressable_data()])
        with pytest.raises(ShapeError, match=r"a part of shape \[8, 4\], not \[8, 1\]"):
            hg.make_array_from_callback(X.shape, rows, lambda index: X)
        with pytest.raises(ArgumentError, match="one part of an array, and 2 are given"):
            hg.make_array_from_single_device_arrays(X.shape, rows, [X, X])
        with pytest.raises(ArgumentError, match="takes a NamedSharding"):
            hg.make_array_from_callback(X.shape, P(), lambda index: X)
        return whole((x, everywhere, y))

    for found in ranks(main):
        same(found, (X.astype(np.float64), X, X.astype(np.float64)))
