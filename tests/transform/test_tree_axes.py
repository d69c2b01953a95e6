"""Transforms that add and take away axes, of arrays that are divided among processes: results have the right sharding, or there is an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
from hologram.distributed import NamedSharding, ShardedArray, process_allgather
from hologram.distributed import PartitionSpec as P
from hologram.errors import TransformError

RANKS = 4
X = np.random.default_rng(0).normal(size=(8, 3, 4)).astype(np.float32)


def whole(x: Any) -> Any:
    """A pytree of arrays, with those that are divided gathered."""
    return hg.tree.map(np.asarray, process_allgather(x)) if isinstance(x, ShardedArray) else np.asarray(x)


def results(f: Callable[[Any], Any]) -> list[Any]:
    """What ``f(mesh)`` gives on each simulated rank."""
    return hg.distributed.simulate(RANKS, timeout=60).run(lambda: f(hg.make_mesh((RANKS,), "i")))


def mapped(mesh: Any, spec: Any) -> Any:
    """Each element less the sum of its axis that is divided."""
    axis = spec.parts.index("i")
    return hg.shard_map(lambda x: x * 2 - hg.lax.psum(x.sum(axis, keepdims=True), "i"), mesh, spec, spec)


def by_numpy(x: np.ndarray, axis: int) -> np.ndarray:
    return x * 2 - x.sum(axis, keepdims=True)


@pytest.mark.parametrize("sharded", [True, False])
@pytest.mark.parametrize("out_axis", [0, 1, -1])
@pytest.mark.parametrize(("in_axis", "divided"), [(0, 2), (1, 0), (1, 2), (2, 0), (-2, 0)])
def test_vmap(in_axis: int, divided: int, out_axis: int, sharded: bool) -> None:
    axis = divided - (divided > in_axis % 3)  # of an example

    def run(mesh: Any) -> Any:
        spec = P(*[None] * axis, "i")
        x = hg.device_put(X, NamedSharding(mesh, P(*[None] * divided, "i"))) if sharded else X
        return whole(hg.jit(hg.vmap(mapped(mesh, spec), in_axes=in_axis, out_axes=out_axis))(x))

    wanted = np.stack([by_numpy(x, axis) for x in np.moveaxis(X, in_axis, 0)], out_axis)
    for found in results(run):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sharded", [True, False])
@pytest.mark.parametrize("loop", ["scan", "map"])
def test_loops(loop: str, sharded: bool) -> None:
    def run(mesh: Any) -> Any:
        f = mapped(mesh, P(None, "i"))
        x = hg.device_put(X, NamedSharding(mesh, P(None, None, "i"))) if sharded else X
        g = (lambda x: hg.scan(lambda c, row: (c + 1, f(row)), 0, x)[1]) if loop == "scan" else (lambda x: hg.lax.map(f, x))
        return whole(hg.jit(g)(x))

    for found in results(run):
        np.testing.assert_allclose(found, np.stack([by_numpy(x, 1) for x in X]), rtol=1e-5, atol=1e-5)


def test_jacobians() -> None:
    def run(mesh: Any) -> Any:
        f = hg.shard_map(lambda x: hg.lax.psum((x**2).sum(0), "i"), mesh, P("i"), P())
        g = hg.shard_map(lambda x: x**2, mesh, P("i"), P("i"))
        x, parts = X[:, 0], hg.device_put(X[:, 0], NamedSharding(mesh, P("i")))
        return [whole(hg.jit(j)(a)) for j, a in ((hg.jacrev(f), x), (hg.jacrev(f), parts), (hg.jacfwd(f), x), (hg.jacfwd(g), x))]

    x = X[:, 0]
    summed = np.zeros((4, 8, 4), np.float32)
    squares = np.zeros((8, 4, 8, 4), np.float32)
    for i, j in np.ndindex(8, 4):
        summed[j, i, j] = squares[i, j, i, j] = 2 * x[i, j]
    for found in results(run):
        for a, wanted in zip(found, [summed, summed, summed, squares], strict=True):
            np.testing.assert_allclose(a, wanted, rtol=1e-6)


REFUSED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "vmap over the divided axis": lambda f, g, x: hg.vmap(lambda row: row)(x),
    "scan over it": lambda f, g, x: hg.scan(lambda c, row: (c, row), 0, x),
    "map over it": lambda f, g, x: hg.lax.map(lambda row: row, x),
    "map over it in batches": lambda f, g, x: hg.lax.map(lambda row: row, x, batch_size=2),
    "jacfwd of a divided argument": lambda f, g, x: hg.jacfwd(f)(x),
    "jacrev of a divided result": lambda f, g, x: hg.jacrev(g)(X),
    "hessian": lambda f, g, x: hg.hessian(f)(x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_divided_axes_are_refused(name: str) -> None:
    def run(mesh: Any) -> Any:
        f = hg.shard_map(lambda x: hg.lax.psum((x**2).sum(), "i"), mesh, P("i"), P())
        g = hg.shard_map(lambda x: x**2, mesh, P("i"), P("i"))
        x = hg.device_put(X, NamedSharding(mesh, P("i")))
        with pytest.raises(TransformError, match="divided among processes: "):
            hg.jit(lambda x: REFUSED[name](f, g, x))(x)

    results(run)
