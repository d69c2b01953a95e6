"""Programs as JAX's users write them for sharded arrays: ``jit`` with shardings, plain ``jit`` of what ``device_put`` divided, and loops around
``shard_map``. As a module that is run, each rank prints digests of what these and the tutorials have at the end."""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np

import hologram as hg
import hologram.numpy as hnp
from hologram import lax
from hologram.distributed import Mesh, NamedSharding, PartitionSpec
from tests.support.distributed.tutorials import digests, normal, program, ring, whole

P = PartitionSpec
ROWS, WIDTH, HIDDEN = 16, 8, 16
X, Y = normal(ROWS, WIDTH, seed=20), normal(ROWS, 1, seed=21)
LAYERS = {"a": {"w": normal(WIDTH, HIDDEN, seed=22) / 3, "b": np.zeros(HIDDEN, np.float32)}, "b": {"w": normal(HIDDEN, 1, seed=23) / 3}}


def mlp_loss(p: Any, x: Any, y: Any) -> Any:
    return hnp.mean((hnp.tanh(x @ p["a"]["w"] + p["a"]["b"]) @ p["b"]["w"] - y) ** 2)


def descend(p: Any, slope: Any) -> Any:
    return hg.tree.map(lambda w, g: w - 0.1 * g, p, slope)


def trained_alone() -> Any:
    p = LAYERS
    for _ in range(5):
        p = descend(p, hg.grad(mlp_loss)(p, X, Y))
    return p


@program(trained_alone)
def data_parallel_by_jit(mesh: Mesh) -> Any:
    everywhere, by_row = NamedSharding(mesh, P()), NamedSharding(mesh, P("i"))

    @functools.partial(hg.jit, in_shardings=(everywhere, by_row, by_row), out_shardings=everywhere)
    def step(p: Any, x: Any, y: Any) -> Any:
        return descend(p, hg.grad(mlp_loss)(p, x, y))

    p = LAYERS
    for _ in range(5):
        p = step(p, X, Y)
    return p


def block_alone() -> Any:
    return hg.value_and_grad(lambda p: hnp.sum(block(p, X) ** 2))(BLOCK)


def block(p: Any, x: Any, divided: Any = lambda h: h) -> Any:
    h = divided(hnp.maximum(x @ p["up"], 0))
    return x + h @ p["down"]


BLOCK = {"up": normal(WIDTH, HIDDEN, seed=24), "down": normal(HIDDEN, WIDTH, seed=25)}


@program(block_alone)
def tensor_parallel_by_constraints(mesh: Mesh) -> Any:
    columns, rows = NamedSharding(mesh, P(None, "i")), NamedSharding(mesh, P("i", None))
    p = hg.device_put(BLOCK["up"], columns), hg.device_put(BLOCK["down"], rows)

    @hg.jit
    def run(up: Any, down: Any) -> Any:
        def total(q: Any) -> Any:
            return hnp.sum(block(q, X, lambda h: lax.with_sharding_constraint(h, columns)) ** 2)

        return hg.value_and_grad(total)({"up": up, "down": down})

    value, slope = run(*p)
    assert slope["up"].sharding == columns and slope["up"].addressable_data().shape == (WIDTH, HIDDEN // mesh.size)
    return value, hg.tree.map(whole, slope)


FIELD = normal(32, 8, seed=26)


def wave_alone() -> Any:
    u = FIELD
    for _ in range(6):
        padded = np.pad(u, ((1, 1), (0, 0)))
        u = u + np.float32(0.1) * (padded[2:] + padded[:-2] - 2 * u)
    return u


@program(wave_alone)
def stencil_with_closed_ends(mesh: Mesh) -> Any:
    """Halos from both neighbours; the first and the last rank get zeros."""
    up = [(r, r + 1) for r in range(mesh.size - 1)]

    @hg.jit
    @hg.shard_map(mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    def run(u: Any) -> Any:
        def step(_: Any, v: Any) -> Any:
            above, below = lax.ppermute(v[-1:], "i", up), lax.ppermute(v[:1], "i", [(d, s) for s, d in up])
            padded = hnp.concatenate([above, v, below])
            return v + np.float32(0.1) * (padded[2:] + padded[:-2] - 2 * v)

        return hg.fori_loop(0, 6, step, u)

    return whole(run(FIELD))


SIGNAL = normal(128, seed=27)


@program(lambda: np.fft.fft(SIGNAL).astype(np.complex64))
def fft_of_one_dimension(mesh: Mesh) -> Any:
    """In four steps: columns, twiddle factors, rows, each rank with a part of the columns, then of the rows."""
    n1, n2 = 8, 16

    @hg.jit
    @hg.shard_map(mesh=mesh, in_specs=P(None, "i"), out_specs=P("i"))
    def run(x: Any) -> Any:  # (n1, part of n2): element j1 * n2 + j2
        inner = hnp.fft.fft(x, axis=0)
        j2 = lax.axis_index("i") * x.shape[1] + hnp.arange(x.shape[1])
        inner = inner * hnp.exp(-2j * np.pi / (n1 * n2) * (hnp.arange(n1)[:, None] * j2)).astype("complex64")
        rows = lax.all_to_all(inner, "i", 0, 1, tiled=True)  # (part of n1, n2)
        return hnp.fft.fft(rows, axis=1)

    return whole(run(SIGNAL.reshape(n1, n2))).T.reshape(-1)


NUMBERS = np.random.default_rng(28).permutation(64).astype(np.float32)


@program(lambda: np.sort(NUMBERS))
def sample_sort(mesh: Mesh) -> Any:
    """Splitters from samples of all ranks; what belongs to a rank is sent there, filled up with infinities."""
    size = mesh.size

    @hg.jit
    @hg.shard_map(mesh=mesh, in_specs=P("i"), out_specs=(P("i"), P("i")))
    def run(x: Any) -> Any:
        mine = hnp.sort(x)
        samples = hnp.sort(lax.all_gather(mine[:: max(1, len(x) // size)], "i", tiled=True))
        splitters = samples[len(samples) // size :: len(samples) // size][: size - 1]
        owner = hnp.searchsorted(splitters, mine, side="right")
        sent = hnp.where(owner == hnp.arange(size)[:, None], mine, np.inf)  # (rank, everything)
        there = hnp.sort(lax.all_to_all(sent, "i", 0, 0, tiled=True).ravel())
        return there, hnp.isfinite(there).sum()[None]

    values, counts = (whole(r) for r in run(NUMBERS))
    return np.concatenate([part[:n] for part, n in zip(values.reshape(size, -1), counts, strict=True)])


VECTORS = normal(8, 24, seed=29)


@program(lambda: VECTORS.sum(0, dtype=np.float64).astype(np.float32))
def allreduce_by_two_rings(mesh: Mesh) -> Any:
    """Half of the vector goes round each way."""
    n = mesh.size

    @hg.jit
    @hg.shard_map(mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    def run(x: Any) -> Any:
        own = x.sum(0)
        there, back = own[:12], own[12:]
        for _ in range(n - 1):
            there = lax.ppermute(there, "i", ring(n)) + own[:12]
            back = lax.ppermute(back, "i", ring(n, -1)) + own[12:]
        return hnp.concatenate([there, back])[None]

    found = whole(run(VECTORS))
    return found[0]


POINTS = (normal(32, 2, seed=30) + 4 * np.random.default_rng(31).integers(0, 2, (32, 1))).astype(np.float32)


def moved_centres(points: Any, centres: Any) -> Any:
    nearest = hnp.argmin(((points[:, None] - centres) ** 2).sum(-1), axis=1)
    member = (nearest[:, None] == hnp.arange(2)).astype(np.float32)
    return (member.T @ points) / hnp.maximum(member.sum(0), 1)[:, None]


def clustered_alone() -> Any:
    return hg.fori_loop(0, 5, lambda _, c: moved_centres(POINTS, c), hnp.asarray(POINTS[:2]))


@program(clustered_alone)
def k_means_by_jit(mesh: Mesh) -> Any:
    points = hg.make_array_from_callback(POINTS.shape, NamedSharding(mesh, P("i")), lambda index: POINTS[index])
    run = hg.jit(lambda p: hg.fori_loop(0, 5, lambda _, c: moved_centres(p, c), p[:2]))
    return run(points)


MATRIX = np.eye(16, dtype=np.float32) * 4 + 0.2 * normal(16, 16, seed=32)
MATRIX = ((MATRIX + MATRIX.T) / 2).astype(np.float32)
RIGHT = normal(16, seed=33)


@program(lambda: np.linalg.solve(MATRIX.astype(np.float64), RIGHT).astype(np.float32))
def conjugate_gradients_of_divided_vectors(mesh: Mesh) -> Any:
    """The loop's vectors stay divided: elementwise steps by parts, the product under ``shard_map``."""
    by_row = NamedSharding(mesh, P("i"))
    multiply = hg.shard_map(lambda a, v: a @ lax.all_gather(v, "i", tiled=True), mesh, (P("i"), P("i")), P("i"))
    dot = hg.shard_map(lambda u, v: lax.psum(hnp.sum(u * v), "i"), mesh, (P("i"), P("i")), P())

    @functools.partial(hg.jit, in_shardings=(by_row, by_row), out_shardings=by_row)
    def solve(a: Any, b: Any) -> Any:
        def step(state: Any) -> Any:
            x, r, p, before = state
            ap = multiply(a, p)
            alpha = before / dot(p, ap)
            x, r = x + alpha * p, r - alpha * ap
            now = dot(r, r)
            return x, r, r + (now / before) * p, now

        return hg.while_loop(lambda s: s[3] > 1e-10, step, (0 * b, b, b, dot(b, b)))[0]

    return whole(solve(MATRIX, RIGHT))


STAGES = normal(8, 4, 4, seed=34) / 2
BATCHES = normal(6, 2, 4, seed=35)


def piped_alone() -> Any:
    def loss(ws: Any) -> Any:
        h = hnp.asarray(BATCHES)
        for w in ws:
            h = hnp.tanh(h @ w)
        return hnp.sum(h**2)

    return hg.value_and_grad(loss)(hnp.asarray(STAGES))


@program(piped_alone)
def pipeline_in_a_scan(mesh: Mesh) -> Any:
    """Each rank has some layers; microbatches move on in each step of a scan. The derivative is that of the whole."""
    n, count = mesh.size, len(BATCHES)

    def forward(ws: Any, batches: Any) -> Any:
        rank = lax.axis_index("i")

        def layers(h: Any) -> Any:
            return hg.scan(lambda v, w: (hnp.tanh(v @ w), None), h, ws)[0]

        def tick(state: Any, t: Any) -> Any:
            arrived = hnp.where(rank == 0, batches[hnp.minimum(t, count - 1)], state)
            done = layers(arrived)
            out = hnp.where((rank == n - 1) & (t >= n - 1), hnp.sum(done**2), 0)
            return lax.ppermute(done, "i", ring(n)), out

        _, losses = hg.scan(tick, hnp.zeros((2, 4), np.float32), hnp.arange(count + n - 1))
        return lax.psum(losses.sum(), "i")

    mapped = hg.shard_map(forward, mesh, (P("i"), P()), P())
    value, slope = hg.jit(hg.value_and_grad(mapped))(hg.device_put(STAGES, NamedSharding(mesh, P("i"))), BATCHES)
    return value, whole(slope)


def adam(p: Any, g: Any, mean: Any, square: Any) -> Any:
    mean = hg.tree.map(lambda m, x: 0.9 * m + 0.1 * x, mean, g)
    square = hg.tree.map(lambda s, x: 0.99 * s + 0.01 * x * x, square, g)
    return hg.tree.map(lambda w, m, s: w - 0.01 * m / (hnp.sqrt(s) + 1e-8), p, mean, square), mean, square


def clipped(g: Any) -> Any:
    """As optimisers' libraries write it."""
    norm = hnp.sqrt(sum(hnp.sum(hnp.square(x)) for x in hg.tree.leaves(g)))
    return hg.tree.map(lambda x: x * hnp.minimum(1.0, 0.05 / norm), g)


WEIGHTS = {"a": {"w": LAYERS["a"]["w"]}, "b": {"w": LAYERS["b"]["w"]}}


def weights_loss(p: Any) -> Any:
    return hnp.mean((hnp.tanh(X @ p["a"]["w"]) @ p["b"]["w"] - Y) ** 2)


def adam_alone() -> Any:
    p, mean, square = WEIGHTS, hg.tree.map(np.zeros_like, WEIGHTS), hg.tree.map(np.zeros_like, WEIGHTS)
    for _ in range(4):
        p, mean, square = adam(p, clipped(hg.grad(weights_loss)(p)), mean, square)
    return p, mean


@program(adam_alone)
def zero_adam_with_clipping(mesh: Mesh) -> Any:
    """The optimiser's state and the weights are divided, and so is the update; the norm is that of all."""
    by_row = NamedSharding(mesh, P("i"))
    p, mean, square = (hg.device_put(t, by_row) for t in (WEIGHTS, hg.tree.map(np.zeros_like, WEIGHTS), hg.tree.map(np.zeros_like, WEIGHTS)))

    @functools.partial(hg.jit, out_shardings=by_row, donate_argnums=(1, 2))
    def step(q: Any, m: Any, s: Any) -> Any:
        return adam(q, clipped(hg.grad(weights_loss)(q)), m, s)

    for _ in range(4):
        p, mean, square = step(p, mean, square)
    assert mean["a"]["w"].addressable_data().shape == (WIDTH // mesh.size, HIDDEN)
    return hg.tree.map(whole, (p, mean))


if __name__ == "__main__":
    hg.distributed.initialize(timeout=60)
    print(json.dumps({"rank": hg.distributed.process_index(), "digests": digests()}), flush=True)
