"""Programs as tutorials of JAX's shard_map and of torch.distributed have them, each with what one process computes for it.

``program(mesh)`` gives what rank 0 has at the end, on a mesh with one axis ``i``; ``alone()`` the same, by NumPy or on one rank.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

import hologram as hg
import hologram.numpy as hnp
from hologram import lax
from hologram.distributed import Mesh, NamedSharding, PartitionSpec

P = PartitionSpec
PROGRAMS: dict[str, tuple[Callable[[Mesh], Any], Callable[[], Any]]] = {}


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def program(alone: Callable[[], Any]) -> Callable[[Any], Any]:
    def note(function: Any) -> Any:
        PROGRAMS[function.__name__] = function, alone
        return function

    return note


def put(x: np.ndarray, mesh: Mesh, *spec: Any) -> Any:
    return hg.device_put(x, NamedSharding(mesh, P(*spec)))


def whole(x: Any) -> np.ndarray:
    return np.asarray(hg.distributed.process_allgather(x))


def ring(size: int, by: int = 1) -> list[tuple[int, int]]:
    return [(i, (i + by) % size) for i in range(size)]


# --- shard_map -------------------------------------------------------------------------------------------------------

A, B = normal(24, 48, seed=1), normal(48, 16, seed=2)


@program(lambda: A @ B)
def collective_matmul(mesh: Mesh) -> Any:
    """The gather of ``A``'s columns is taken apart: one block is multiplied while the next goes round."""
    size = mesh.shape["i"]

    @hg.jit
    @hg.shard_map(mesh=mesh, in_specs=(P(None, "i"), P(None, "i")), out_specs=P(None, "i"))
    def product(a: Any, b: Any) -> Any:
        rows = a.shape[1]
        total = hnp.zeros((a.shape[0], b.shape[1]), a.dtype)
        for hop in range(size):
            owner = (lax.axis_index("i") - hop) % size
            total = total + a @ lax.dynamic_slice_in_dim(b, owner * rows, rows, 0)
            a = lax.ppermute(a, "i", ring(size))
        return total

    return whole(product(A, B))


@program(lambda: A @ B)
def matmul_by_reduced_scatter(mesh: Mesh) -> Any:
    """Both divided along what is summed."""
    f = hg.shard_map(lambda a, b: lax.psum_scatter(a @ b, "i", tiled=True), mesh, (P(None, "i"), P("i")), P("i"))
    return whole(f(A, B))


LAYERS = [normal(16, 16, seed=s) / 4 for s in range(4)]
INPUT, TARGET = normal(24, 16, seed=7), normal(24, 16, seed=8)


def network(ws: list[Any], x: Any) -> Any:
    for w in ws:
        x = hnp.tanh(x @ w)
    return x


def alone_gradient() -> Any:
    return [np.asarray(g) for g in hg.grad(lambda ws: hnp.mean((network(ws, INPUT) - TARGET) ** 2))([hnp.asarray(w) for w in LAYERS])]


@program(alone_gradient)
def fully_sharded_gradient(mesh: Mesh) -> Any:
    """Weights lie in parts, and are gathered before they are needed: their gradients come back reduced and scattered."""

    @hg.shard_map(mesh=mesh, in_specs=(P("i"), P("i"), P("i")), out_specs=P())
    def loss(ws: Any, x: Any, y: Any) -> Any:
        gathered = [lax.all_gather(w, "i", tiled=True) for w in ws]
        return lax.pmean(hnp.mean((network(gathered, x) - y) ** 2), "i")

    parts = [put(w, mesh, "i") for w in LAYERS]
    return [whole(g) for g in hg.jit(hg.grad(loss))(parts, put(INPUT, mesh, "i"), put(TARGET, mesh, "i"))]


@program(alone_gradient)
def averaged_gradient(mesh: Mesh) -> Any:
    """As ``average_gradients`` of torch's tutorial: each rank its rows, gradients summed one by one and divided by the number of ranks."""

    def local(ws: Any, x: Any, y: Any) -> Any:
        grads = hg.grad(lambda ws: hnp.mean((network(ws, x) - y) ** 2))(ws)
        return [lax.psum(g, "i") / lax.axis_size("i") for g in grads]

    step = hg.jit(hg.shard_map(local, mesh, (P(), P("i"), P("i")), P()))
    return [np.asarray(g) for g in step([hnp.asarray(w) for w in LAYERS], INPUT, TARGET)]


@program(lambda: np.asarray(network([hnp.asarray(w) for w in LAYERS], hnp.asarray(INPUT))))
def pipeline(mesh: Mesh) -> Any:
    """Each rank has some layers; microbatches go from rank to rank, in a scan."""
    size, microbatches = mesh.shape["i"], 6
    batches = INPUT.reshape(microbatches, -1, 16)

    @hg.jit
    @hg.shard_map(mesh=mesh, in_specs=(P("i"), P()), out_specs=P())
    def run(ws: Any, batches: Any) -> Any:
        rank = lax.axis_index("i")

        def step(state: Any, t: Any) -> Any:
            x = hnp.where(rank == 0, batches[hnp.minimum(t, microbatches - 1)], state)
            for k in range(ws.shape[0]):
                x = hnp.tanh(x @ ws[k])
            return lax.ppermute(x, "i", ring(size)), x

        steps = microbatches + size - 1
        start = hnp.zeros_like(batches[0]) + 0 * ws[0, 0, 0]
        _, made = hg.scan(step, start, hnp.arange(steps))
        last = hnp.where(rank == size - 1, made[size - 1 :], 0)
        return lax.psum(last, "i").reshape(-1, 16)

    return np.asarray(run(np.stack(LAYERS), batches))


# --- messages --------------------------------------------------------------------------------------------------------

VALUES = normal(48, seed=3)
COUNTS = np.round(100 * VALUES)  # of which sums are exact in every order


@program(lambda: COUNTS.reshape(-1, 4).sum(0))
def ring_allreduce(mesh: Mesh) -> Any:
    """As torch's tutorial writes it: each rank's four numbers go once round, and everyone adds up what passes."""
    size = mesh.shape["i"]

    def reduce(x: Any) -> Any:
        own = x.reshape(-1, 4).sum(0)
        total = passing = own
        for _ in range(size - 1):
            passing = lax.ppermute(passing, "i", ring(size))
            total = total + passing
        return total

    return np.asarray(hg.jit(hg.shard_map(reduce, mesh, P("i"), P(), check_vma=False))(COUNTS))


def alone_heat() -> Any:
    u = VALUES
    for _ in range(20):
        u = u + np.float32(0.2) * (np.roll(u, 1) + np.roll(u, -1) - 2 * u)
    return u


@program(alone_heat)
def heat_by_halos(mesh: Mesh) -> Any:
    """An explicit heat equation on a circle: neighbours send each other their edges before each step."""
    size = mesh.shape["i"]

    def step(_: Any, u: Any) -> Any:
        left, right = lax.ppermute(u[-1:], "i", ring(size)), lax.ppermute(u[:1], "i", ring(size, -1))
        wide = hnp.concatenate([left, u, right])
        return u + np.float32(0.2) * (wide[:-2] + wide[2:] - 2 * u)

    return whole(hg.jit(hg.shard_map(lambda u: hg.fori_loop(0, 20, step, u), mesh, P("i"), P("i")))(VALUES))


@program(lambda: np.sort(VALUES))
def odd_even_sort(mesh: Mesh) -> Any:
    """Each rank sorts its part; then neighbours keep the smaller and the larger half of both, in turns."""
    size = mesh.shape["i"]

    @hg.jit
    @hg.shard_map(mesh=mesh, in_specs=P("i"), out_specs=P("i"))
    def run(x: Any) -> Any:
        rank, n, x = lax.axis_index("i"), len(x), hnp.sort(x)
        for turn in range(size):
            pairs = [(i, i + 1) for i in range(turn % 2, size - 1, 2)]
            there = lax.ppermute(x, "i", [*pairs, *[(b, a) for a, b in pairs]])
            both = hnp.sort(hnp.concatenate([x, there]))
            is_left = (rank - turn) % 2 == 0
            has_peer = hnp.where(is_left, rank + 1 < size, rank > 0)
            x = hnp.where(has_peer, hnp.where(is_left, both[:n], both[n:]), x)
        return x

    return whole(run(VALUES))


FIELD = (normal(16, 24, seed=4) + 1j * normal(16, 24, seed=5)).astype(np.complex64)


@program(lambda: np.fft.fft2(FIELD))
def fft_in_two_dimensions(mesh: Mesh) -> Any:
    """Rows are transformed where they lie, then exchanged for columns."""

    def transform(rows: Any) -> Any:
        rows = hnp.fft.fft(rows, axis=1)
        return hnp.fft.fft(lax.all_to_all(rows, "i", 1, 0, tiled=True), axis=0)

    return whole(hg.jit(hg.shard_map(transform, mesh, P("i"), P(None, "i")))(FIELD))


# --- algorithms ------------------------------------------------------------------------------------------------------

POINTS = np.concatenate([normal(32, 2, seed=s) + 6 * np.float32([s % 2, s // 2]) for s in range(3)])


def k_means_step(points: Any, centres: Any, total: Callable[[Any], Any]) -> Any:
    nearest = hnp.argmin(((points[:, None] - centres) ** 2).sum(-1), axis=1)
    member = (nearest[:, None] == hnp.arange(3)).astype(np.float32)
    sums, counts = total((member.T @ points, member.sum(0)))
    return sums / hnp.maximum(counts, 1)[:, None]


def k_means_of(points: Any, total: Callable[[Any], Any]) -> Any:
    return hg.fori_loop(0, 8, lambda _, c: k_means_step(points, c, total), hnp.asarray(POINTS[::32]))


@program(lambda: np.asarray(k_means_of(hnp.asarray(POINTS), lambda x: x)))
def k_means(mesh: Mesh) -> Any:
    run = hg.shard_map(lambda points: k_means_of(points, lambda x: lax.psum(x, "i")), mesh, P("i"), P())
    return np.asarray(hg.jit(run)(POINTS))


MATRIX = (lambda m: m @ m.T / 24 + np.eye(24, dtype=np.float32))(normal(24, 24, seed=6))


@program(lambda: np.linalg.solve(MATRIX.astype(np.float64), VALUES[:24].astype(np.float64)))
def conjugate_gradients(mesh: Mesh) -> Any:
    """Rows of the matrix and of all vectors are divided; dot products are sums over ranks, and end the loop on all ranks at once."""

    @hg.jit
    @hg.shard_map(mesh=mesh, in_specs=(P("i"), P("i")), out_specs=P("i"))
    def solve(a: Any, b: Any) -> Any:
        def dot(x: Any, y: Any) -> Any:
            return lax.psum(x @ y, "i")

        def step(state: Any) -> Any:
            x, r, p, rr = state
            ap = a @ lax.all_gather(p, "i", tiled=True)
            alpha = rr / dot(p, ap)
            x, r = x + alpha * p, r - alpha * ap
            new = dot(r, r)
            return x, r, r + new / rr * p, new

        start = (hnp.zeros_like(b), b, b, dot(b, b))
        return hg.while_loop(lambda s: s[3] > 1e-10, step, start)[0]

    return whole(solve(MATRIX, VALUES[:24]))


LOGITS, LABELS = normal(12, 48, seed=9), np.random.default_rng(9).integers(0, 48, 12)


def alone_loss() -> Any:
    shifted = LOGITS - LOGITS.max(1, keepdims=True)
    p = np.exp(shifted) / np.exp(shifted).sum(1, keepdims=True)
    return -np.log(p[np.arange(12), LABELS]).mean(), (p - np.eye(48, dtype=np.float32)[LABELS]) / 12


@program(alone_loss)
def vocabulary_parallel_loss(mesh: Mesh) -> Any:
    """Cross entropy of classes that are divided among ranks, and its derivative."""

    @hg.shard_map(mesh=mesh, in_specs=(P(None, "i"), P()), out_specs=P())
    def loss(part: Any, labels: Any) -> Any:
        width = part.shape[1]
        largest = lax.pmax(hg.stop_gradient(part.max(1)), "i")
        total = lax.psum(hnp.exp(part - largest[:, None]).sum(1), "i")
        place = labels - lax.axis_index("i") * width
        here = (place >= 0) & (place < width)
        picked = hnp.take_along_axis(part, hnp.where(here, place, 0)[:, None], axis=1)[:, 0]
        return hnp.mean(hnp.log(total) + largest - lax.psum(hnp.where(here, picked, 0), "i"))

    value, gradient = hg.jit(hg.value_and_grad(loss))(put(LOGITS, mesh, None, "i"), LABELS)
    return np.asarray(value), whole(gradient)


EXPERTS = normal(4, 16, 16, seed=10) / 4
CHOICE = np.random.default_rng(10).integers(0, 4, 24)


@program(lambda: np.tanh(np.einsum("tk,tkn->tn", INPUT, EXPERTS[CHOICE])))
def experts(mesh: Mesh) -> Any:
    """Each rank has some experts, and all tokens that chose them are sent there and back."""
    size = mesh.shape["i"]

    @hg.jit
    @hg.shard_map(mesh=mesh, in_specs=(P("i"), P("i"), P("i")), out_specs=P("i"))
    def run(weights: Any, tokens: Any, choice: Any) -> Any:
        sent = hnp.where((choice == hnp.arange(4)[:, None])[:, :, None], tokens, 0)  # (expert, token, width)
        arrived = lax.all_to_all(sent, "i", 0, 1, tiled=True)
        done = hnp.tanh(arrived @ weights)
        back = lax.all_to_all(done, "i", 1, 0, tiled=True)
        return hnp.take_along_axis(back, choice[None, :, None], axis=0)[0]

    assert size in (1, 2, 4)
    return whole(run(EXPERTS, INPUT, CHOICE))


@program(lambda: (INPUT - INPUT.mean(0)) / np.sqrt(INPUT.var(0) + np.float32(1e-5)))
def synchronised_batch_norm(mesh: Mesh) -> Any:
    def normalise(x: Any) -> Any:
        mean = lax.pmean(x.mean(0), "i")
        variance = lax.pmean(((x - mean) ** 2).mean(0), "i")
        return (x - mean) / hnp.sqrt(variance + np.float32(1e-5))

    return whole(hg.jit(hg.shard_map(normalise, mesh, P("i"), P("i")))(INPUT))


# --- running them ----------------------------------------------------------------------------------------------------


def run(name: str) -> list[np.ndarray]:
    """What this rank has at the end of a program."""
    function, _ = PROGRAMS[name]
    return [np.asarray(x) for x in hg.tree.leaves(function(hg.make_mesh((hg.distributed.process_count(),), "i")))]


def digests() -> dict[str, str]:
    return {name: hashlib.sha256(b"".join(x.tobytes() for x in run(name))).hexdigest() for name in PROGRAMS}
