"""Derivatives of derivatives of ``shard_map``: those of the same program without ranks, in each order of modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.distributed import PartitionSpec as P
from hologram.distributed import ShardedArray, process_allgather

X = np.random.default_rng(0).normal(size=(8, 4))


class Program(NamedTuple):
    """``run(x)`` of a rank's part, and the ``meaning`` of it for the whole array; the result is the same on all ranks, or divided by ``out``."""

    run: Callable[[Any], Any]
    meaning: Callable[[Any], Any]
    spec: Any = P("i")
    out: Any = P()
    shape: tuple[int, ...] = (4,)
    names: tuple[str, ...] = ("i",)


def _blocks(x: Any) -> Any:
    return x.reshape(4, 2, 4)


def _permuted(x: Any) -> Any:
    return hnp.roll(_blocks(x), 1, 0)


LAX = hg.lax
PROGRAMS = {
    "psum": Program(lambda x: LAX.psum((x**3).sum(), "i"), lambda x: (x**3).sum()),
    "psum in between": Program(
        lambda x: LAX.psum((hnp.sin(LAX.psum(x**2, "i")) * x).sum(), "i"), lambda x: (hnp.sin((_blocks(x) ** 2).sum(0)) * _blocks(x)).sum()
    ),
    "sum of a sum": Program(lambda x: (hnp.sin(LAX.psum(x**2, "i")) ** 2).sum(), lambda x: (hnp.sin((_blocks(x) ** 2).sum(0)) ** 2).sum()),
    "replicated argument": Program(lambda x: LAX.psum((x**3 * (1 + LAX.axis_index("i"))).sum(), "i"), lambda x: 10 * (x**3).sum(), P()),
    "nothing but replicated": Program(lambda x: hnp.sin(x**2).sum(), lambda x: hnp.sin(x**2).sum(), P()),
    "pmean": Program(lambda x: LAX.pmean((x**4).sum(), "i"), lambda x: (x**4).sum() / 4),
    "all_gather": Program(
        lambda x: LAX.psum((hnp.sin(LAX.all_gather(x, "i").sum(0)) * x).sum(), "i"), lambda x: (hnp.sin(_blocks(x).sum(0)) * _blocks(x)).sum()
    ),
    "psum_scatter": Program(
        lambda x: LAX.psum((LAX.psum_scatter(x**2, "i", scatter_dimension=1) ** 2).sum(), "i"),
        lambda x: ((_blocks(x) ** 2).sum(0) ** 2).sum(),
    ),
    "ppermute": Program(
        lambda x: LAX.psum((hnp.sin(LAX.ppermute(x**2, "i", [(k, (k + 1) % 4) for k in range(4)])) * x).sum(), "i"),
        lambda x: (hnp.sin(_permuted(x**2)) * _blocks(x)).sum(),
    ),
    "all_to_all": Program(
        lambda x: LAX.psum((LAX.all_to_all(x**2, "i", 1, 1, tiled=True) * x).sum(), "i"),
        lambda x: (hnp.swapaxes(_blocks(x**2), 0, 2) * _blocks(x)).sum(),
    ),
    "pbroadcast": Program(
        lambda x: LAX.psum((LAX.pbroadcast(x**2, "i", 2) * x).sum(), "i"), lambda x: (_blocks(x**2)[2:3] * _blocks(x)).sum()
    ),
    "divided result": Program(lambda x: x**3 * LAX.psum(x.sum(), "i"), lambda x: x**3 * x.sum(), P("i"), P("i")),
    "scan": Program(
        lambda x: LAX.psum(hg.scan(lambda c, _: (hnp.sin(LAX.pmean(c, "i")) + c * c, None), x, None, length=2)[0].sum(), "i"),
        lambda x: hg.scan(lambda c, _: (hnp.sin(c.mean(0)) + c * c, None), _blocks(x), None, length=2)[0].sum(),
    ),
    "two axes": Program(
        lambda x: LAX.psum(LAX.psum((x**3).sum(0), "a").sum() ** 2, "b"),
        lambda x: ((x**3).sum(0).reshape(2, 2).sum(1) ** 2).sum(),
        P("a", "b"), P(), (2, 2), ("a", "b"),
    ),
    "one axis of two": Program(lambda x: LAX.psum((x**3).sum(0), "a") ** 2, lambda x: (x**3).sum(0) ** 2, P("a"), P(), (2, 2), ("a", "b")),
    "divided by one axis of two": Program(lambda x: x**2 * LAX.pmean(x, "b"), lambda x: x**3, P("a"), P("a"), (2, 2), ("a", "b")),
}  # fmt: skip
WEIGHTS = np.cos(np.arange(32.0)).reshape(8, 4)


def scalar(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def of(x: Any) -> Any:
        y = f(x)
        return (y * WEIGHTS.reshape(-1)[: y.size].reshape(y.shape)).sum()

    return of


def derivatives(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The second derivative applied to a direction, in all orders of modes, and the gradient of what has a third."""
    g = hg.grad(scalar(f))

    def of(x: Any) -> list[Any]:
        t = hnp.cos(x)
        return [
            hg.grad(lambda x: (g(x) * t).sum())(x),
            hg.jvp(g, (x,), (t,))[1],
            hg.grad(lambda x: hg.jvp(scalar(f), (x,), (t,))[1])(x),
            hg.jvp(lambda x: hg.jvp(scalar(f), (x,), (t,))[1], (x,), (t,))[1],
            hg.grad(lambda x: (hg.grad(lambda x: (g(x) ** 2).sum())(x) * t).sum())(x),
        ]

    return of


@pytest.mark.costly(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_of_derivatives(name: str) -> None:
    p = PROGRAMS[name]
    wanted = hg.jit(derivatives(p.meaning))(X)

    def run() -> Any:
        mesh = hg.make_mesh(p.shape, p.names)
        mapped = hg.shard_map(p.run, mesh, p.spec, p.out, check_vma=False)
        gather = hg.shard_map(lambda y: LAX.all_gather(y, p.names[0], tiled=True), mesh, p.out, P(), check_vma=False)
        whole = mapped if p.out == P() else lambda x: gather(mapped(x))
        return [np.asarray(process_allgather(y)) if isinstance(y, ShardedArray) else np.asarray(y) for y in hg.jit(derivatives(whole))(X)]

    for found in hg.distributed.simulate(4).run(run):
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, np.asarray(b), rtol=1e-9, atol=1e-9 * float(abs(b).max()))
