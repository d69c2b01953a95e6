"""Predictions: what ranks send is what they are predicted to send, clocks go on as the schedule says, and meshes need not be there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import hologram as hg
from hologram.distributed import Mesh, NamedSharding, Network, PartitionSpec, predict, prediction, simulate, simulation
from hologram.distributed.prediction import traffic
from hologram.errors import ArgumentError
from tests.support.distributed.overlap import SIZE, gradients, weights

P = PartitionSpec
RUNS = {
    "psum": lambda x: hg.lax.psum(x, "x"),
    "pmax": lambda x: hg.lax.pmax(x, "x"),
    "all_gather": lambda x: hg.lax.all_gather(x, "x"),
    "psum_scatter": lambda x: hg.lax.psum_scatter(x, "x", tiled=True),
    "all_to_all": lambda x: hg.lax.all_to_all(x, "x", 0, 0, tiled=True),
    "ppermute": lambda x: hg.lax.ppermute(x, "x", [(0, 1), (1, 0)]),
    "pbroadcast": lambda x: hg.lax.pbroadcast(x, "x", 1),
}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("size", [12, 1_200_000])
@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_send_what_is_predicted(name: str, size: int, ranks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: Counter[int] = Counter()
    begin = simulation._Rank.begin

    def counting(self: Any, call: Any, sends: Mapping[int, Any], receives: Any, phase: int = 0) -> Any:
        sent[self.rank] += sum(a.nbytes for a in sends.values())
        return begin(self, call, sends, receives, phase)

    monkeypatch.setattr(simulation._Rank, "begin", counting)
    x = np.ones(size, np.float32)
    specs = P("x") if name in ("psum_scatter", "all_to_all", "ppermute") else P()
    simulate(ranks).run(lambda: hg.shard_map(RUNS[name], hg.make_mesh((ranks,), "x"), P(), specs, check_vma=False)(x))
    assert max(sent.values()) == traffic(name, x.nbytes, ranks)[1]


def test_communication_hides_behind_computation() -> None:
    mesh = Mesh(np.arange(512), "x")
    step = hg.shard_map(gradients, mesh, (P(), P("x")), P())
    x = hg.ShapeDtypeStruct((512 * SIZE, SIZE), "float32", sharding=NamedSharding(mesh, P("x")))
    slow, fast = (predict(step, mesh, Network(1e-6, bandwidth, 0.0))(weights(), x) for bandwidth in (1e6, 1e15))
    assert slow.bytes_sent == fast.bytes_sent == len(weights()) * 2 * (4 * SIZE**2 - 4 * SIZE**2 // 512)
    assert slow.seconds == pytest.approx(slow.compute_seconds + slow.exposed_seconds)
    assert slow.exposed_seconds < slow.communication_seconds and fast.seconds < slow.seconds
    assert fast.seconds == pytest.approx(fast.compute_seconds, rel=0.5)
    least = 4 * (2 * len(weights()) * SIZE**2 + SIZE**2)  # weights, updated weights and the rank's rows alone
    assert least <= slow.peak_bytes < 20 * least
    assert "ms a call" in str(slow)


def test_ranks_that_share_a_core_take_turns_and_hide_nothing() -> None:
    mesh = Mesh(np.arange(8), "x")
    step = hg.shard_map(gradients, mesh, (P(), P("x")), P())
    x = hg.ShapeDtypeStruct((8 * SIZE, SIZE), "float32", sharding=NamedSharding(mesh, P("x")))
    network = Network(1e-6, 1e9, 0.0)
    own, shared = predict(step, mesh, network)(weights(), x), predict(step, mesh, network, ranks_per_core=4)(weights(), x)
    assert shared.compute_seconds == pytest.approx(4 * own.compute_seconds)
    assert shared.communication_seconds == pytest.approx(own.communication_seconds) == pytest.approx(shared.exposed_seconds)
    assert shared.seconds == pytest.approx(shared.compute_seconds + shared.communication_seconds)
    with pytest.raises(ArgumentError, match=r"ranks_per_core is at least 1, not 0\.5"):
        predict(step, mesh, ranks_per_core=0.5)


@pytest.mark.parametrize(("ranks_per_core", "is_shared"), [(None, False), (1, False), (2, True)])
def test_ranks_that_share_a_core_share_its_caches(ranks_per_core: float | None, is_shared: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In each wait others go through their memory, which counts as no time of this rank's; of collectives that begin together once."""
    turns, worlds = [], []  # type: ignore[var-annotated]
    shares, waits = prediction._Planned.share_caches, prediction._Planned.wait

    def sharing(self: Any, nbytes: int) -> None:
        worlds.append(nbytes)
        shares(self, nbytes)

    def waiting(self: Any, sent: bool = True) -> None:
        before = self.seconds
        waits(self, sent)
        turns.append(self.seconds > before)
        self.seconds += 1000.0  # that others take besides

    monkeypatch.setattr(prediction._Planned, "share_caches", sharing)
    monkeypatch.setattr(prediction._Planned, "wait", waiting)
    mesh, x = Mesh(np.arange(4), "x"), np.ones((4, 1 << 14), np.float32)
    ring = [(i, (i + 1) % 4) for i in range(4)]
    f = hg.shard_map(lambda x: (hg.lax.ppermute(x[0], "x", ring), hg.lax.ppermute(x[1], "x", ring[::-1])), mesh, P(), P("x"), check_vma=False)
    found = predict(f, mesh, Network(), measure=True, ranks_per_core=ranks_per_core)(x)
    assert turns == [is_shared, False] * (prediction.REPEATS + 1)
    assert len(worlds) == is_shared and all(x.nbytes <= nbytes for nbytes in worlds)
    assert found.compute_seconds < 0


def test_loops_count_each_step() -> None:
    mesh = Mesh(np.arange(4), "x")
    looped = hg.shard_map(lambda x: hg.scan(lambda c, _: (hg.lax.psum(c, "x") / 4, None), x, None, length=10)[0], mesh, P(), P(), check_vma=False)
    assert predict(looped, mesh, Network())(np.ones(3, np.float32)).messages == 10 * traffic("psum", 12, 4)[2]


def test_a_mesh_of_many_ranks() -> None:
    mesh = Mesh(np.arange(16_384).reshape(128, 128), ("a", "b"))
    f = hg.shard_map(lambda x: hg.lax.psum(x, "a"), mesh, P("a", "b"), P(None, "b"))
    sharding = NamedSharding(mesh, P("a", "b"))
    found = predict(f, mesh, Network(10e-6, 10e9))(hg.ShapeDtypeStruct((1 << 14, 1 << 14), "float32", sharding=sharding))
    assert found.bytes_sent == traffic("psum", 4 * 128 * 128, 128)[1]


def test_what_is_no_mesh() -> None:
    with pytest.raises(ArgumentError, match="predict takes a Mesh"):
        predict(lambda x: x, 4)  # type: ignore[arg-type]


@pytest.mark.parametrize("sizes", [[1 << 18, 1 << 18, 1 << 18], [1 << 18, 1 << 19, 100, 200]])
def test_large_arrays_of_one_sum_are_reduced_one_after_the_other(sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """As many messages are predicted as are sent, each round of large ones with its rendezvous."""
    begun: Counter[int] = Counter()
    begin = simulation._Rank.begin

    def counting(self: Any, call: Any, sends: Mapping[int, Any], receives: Any, phase: int = 0) -> Any:
        begun[self.rank] += len(sends)
        return begin(self, call, sends, receives, phase)

    monkeypatch.setattr(simulation._Rank, "begin", counting)
    arrays = [np.ones(n, np.float32) for n in sizes]
    simulate(2).run(lambda: hg.shard_map(lambda *xs: hg.lax.psum(xs, "x"), hg.make_mesh((2,), "x"), P(), P(), check_vma=False)(*arrays))
    mesh = Mesh(np.arange(2), "x")
    f = hg.shard_map(lambda *xs: hg.lax.psum(xs, "x"), mesh, P(), P(), check_vma=False)
    slow, fast = (predict(f, mesh, Network(0.0, 1e15, 0.0, rendezvous))(*arrays) for rendezvous in (1.0, 0.0))
    assert begun[0] == slow.messages
    assert slow.communication_seconds - fast.communication_seconds == pytest.approx(slow.messages)


def test_what_a_sum_adds_up_is_computed() -> None:
    mesh, x = Mesh(np.arange(8), "x"), np.ones(1 << 22, np.float32)
    moved, summed = (
        predict(hg.shard_map(f, mesh, P(), P(), check_vma=False), mesh, Network())(x)
        for f in (lambda x: hg.lax.ppermute(x, "x", [(0, 1), (1, 0)]), lambda x: hg.lax.psum(x, "x"))
    )
    assert summed.compute_seconds > moved.compute_seconds
