"""Messages between ranks: how many there are, in which thread, through which memory; and which ranks wait for each other at different calls."""

from __future__ import annotations

import collections
import threading
import time
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.distributed import PartitionSpec, messages, simulate, simulation, watch
from hologram.distributed.watch import Watch
from hologram.errors import DistributedError
from hologram.primitives.host import lanes
from hologram.support.world import Call, Network
from tests.support.distributed.launching import needs_torch

P = PartitionSpec
SIZE = 256


UPWARD, DOWNWARD = "upward", "downward"


class Wire:
    """Two process groups of two ranks. A message arrives in the first receive of its tag."""

    def __init__(self) -> None:
        self.lock = threading.Condition()
        self.sent: dict[Any, list[bytes]] = collections.defaultdict(list)
        self.asked: dict[Any, list[Work]] = collections.defaultdict(list)
        self.events: list[tuple[str, int]] = []

    def deliver(self, key: Any) -> None:
        while self.sent[key] and self.asked[key]:
            work, data = self.asked[key].pop(0), self.sent[key].pop(0)
            work.into[:] = np.frombuffer(data, np.uint8)
            work.done.set()


class Work:
    def __init__(self, into: Any) -> None:
        self.into, self.done = into, threading.Event()

    def wait(self, at_most: Any) -> None:
        if not self.done.wait(at_most.total_seconds()):
            raise RuntimeError("timed out")


class Group:
    """What a process group of torch has of what is used."""

    def __init__(self, wire: Wire, rank: int, way: str) -> None:
        self.wire, self.rank, self.way = wire, rank, way

    def send(self, tensors: list[Any], to: int, tag: int) -> Work:
        work, key = Work(None), (self.way, self.rank, to, tag)
        with self.wire.lock:
            self.wire.events.append(("send", self.rank))
            self.wire.sent[key].append(tensors[0].numpy().tobytes())
            self.wire.deliver(key)
        work.done.set()
        return work

    def recv(self, tensors: list[Any], source: int, tag: int) -> Work:
        work, key = Work(tensors[0].numpy()), (self.way, source, self.rank, tag)
        with self.wire.lock:
            self.wire.events.append(("receive", self.rank))
            self.wire.asked[key].append(work)
            self.wire.deliver(key)
        return work


def worlds(wire: Wire) -> list[Any]:
    from hologram.distributed.gloo import GlooWorld

    groups = [(Group(wire, r, UPWARD), Group(wire, r, DOWNWARD)) for r in range(2)]
    return [GlooWorld(*groups[r], r, 2, 5.0, ["rank 0", "rank 1"], None, Network()) for r in range(2)]


def on_both(function: Any, made: list[Any]) -> list[Any]:
    results: list[Any] = [None, None]

    def play(rank: int) -> None:
        results[rank] = function(made[rank], rank)

    threads = [threading.Thread(target=play, args=(rank,)) for rank in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(20)
    return results


@needs_torch
@pytest.mark.parametrize("nbytes", [1, 4, 4096, messages.ROOM_BYTES, messages.ROOM_BYTES + 1])
def test_messages_come_in_order_whoever_is_first(nbytes: int) -> None:
    """Several of one tag under way at a time, of two phases and sizes, with pauses on either side."""

    def exchange(world: Any, rank: int) -> list[int]:
        rng, found, call = np.random.default_rng(rank), [], Call("same", "")
        for i in range(12):
            if rng.random() < 0.3:
                time.sleep(0.002)
            out = [np.full(n, 2 * i + phase, np.uint8) for phase, n in ((0, nbytes), (1, nbytes), (0, nbytes + 1))]
            into = [np.zeros_like(a) for a in out]
            messages = [world.begin(call, {1 - rank: a}, {1 - rank: b}, p) for a, b, p in zip(out, into, (0, 1, 0), strict=True)]
            for m in messages:
                m.wait()
            found += [(set(b.tolist()), set(a.tolist())) for a, b in zip(out, into, strict=True)]
        return [a == b and len(a) == 1 for a, b in found]

    for said in on_both(exchange, worlds(Wire())):
        assert said == [True] * 36


@needs_torch
def test_small_messages_go_into_room_that_is_there() -> None:
    """A message is one send. Room is offered to more messages each time, up to a limit, and memory is used again."""
    wire, count = Wire(), 4 * messages.MAX_STOCK

    def exchange(world: Any, rank: int) -> list[Any]:
        kept = []
        for i in range(count):
            into = np.zeros(4, np.uint8)
            world.begin(Call("small", ""), {1 - rank: np.full(4, i, np.uint8)}, {1 - rank: into}).wait()
            kept.append((into[0], {id(m) for free in world.post._free.values() for m in free}))
        return kept

    for rank, said in enumerate(on_both(exchange, worlds(wire))):
        assert [int(value) for value, _ in said] == list(range(count))
        assert len(set().union(*[rooms for _, rooms in said])) <= messages.MAX_STOCK + 2
        events = [what for what, of in wire.events if of == rank]
        assert events.count("send") == count and events.count("receive") <= count + messages.MAX_STOCK
        last = "".join(what[0] for what in events).split("s")[-2 * messages.MAX_STOCK :]
        assert max(map(len, last)) > messages.MAX_STOCK // 2, "offers are made together"
        assert sum(map(bool, last)) <= 2 + len(last) // messages.MAX_STOCK


@needs_torch
def test_offers_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MAX_OFFERED_BYTES", 10)
    wire = Wire()

    def exchange(world: Any, rank: int) -> list[int]:
        for i in range(40):
            into = np.zeros(1 + i % 4, np.uint8)
            world.begin(Call("small", ""), {1 - rank: np.full_like(into, i)}, {1 - rank: into}).wait()
            assert set(into) == {i}
        return [m.room.memory.size for stock in world.post._stocks.values() for m in stock.offers]

    for rank, left in enumerate(on_both(exchange, worlds(wire))):
        assert 0 < sum(left) <= 10
        assert [of for _, of in wire.events].count(rank) == 40 + 40 + len(left)


@needs_torch
def test_each_connection_carries_data_one_way() -> None:
    """One on which both ranks send at a time keeps a rank that shares a core with its receiver waiting for the scheduler."""
    wire = Wire()

    def exchange(world: Any, rank: int) -> None:
        for nbytes in (4, messages.ROOM_BYTES + 1, 2 * messages.ROOM_BYTES):
            world.begin(Call("sized", ""), {1 - rank: np.zeros(nbytes, np.uint8)}, {1 - rank: np.zeros(nbytes, np.uint8)}).wait()

    on_both(exchange, worlds(wire))
    assert {(way, source) for way, source, _, _ in wire.sent} == {(UPWARD, 0), (DOWNWARD, 1)}


@needs_torch
def test_close_ends_the_connections_of_both_groups() -> None:
    wire = Wire()
    made = worlds(wire)
    made[1].close()
    assert {(way, source) for way, source, _, _ in wire.asked} == {(UPWARD, 0), (DOWNWARD, 0)}


@needs_torch
def test_one_rank_ends_after_its_last_message() -> None:
    """Who then offers room for messages that nobody will send has lost nothing."""
    wire = Wire()
    made = worlds(wire)
    on_both(lambda world, rank: world.begin(Call("a", ""), {1 - rank: np.ones(4, np.uint8)}, {1 - rank: np.zeros(4, np.uint8)}).wait(), made)
    into = np.zeros(4, np.uint8)
    made[1].begin(Call("a", ""), {0: np.full(4, 7, np.uint8)}, {})
    group = made[0].post._downward
    receive = group.recv

    def ended(tensors: list[Any], source: int, tag: int) -> Any:
        group.recv = gone
        return receive(tensors, source, tag)

    def gone(*_: Any) -> Any:
        raise RuntimeError("Connection closed by peer")

    group.recv = ended
    made[0].begin(Call("a", ""), {}, {1: into}).wait()
    assert into.tolist() == [7] * 4
    with pytest.raises(DistributedError, match="rank 1 is lost: Connection closed"):
        made[0].begin(Call("a", ""), {}, {1: into})


# --- threads ---------------------------------------------------------------------------------------------------------


def beside(rows: int) -> Any:
    """A sum of ``rows`` rows that is under way while a product is computed."""

    def f(small: Any, x: Any) -> Any:
        total = hg.lax.psum(small, "x")
        for _ in range(3):
            x = hnp.tanh(x @ x)
        return x + hnp.sum(total)

    def main() -> Any:
        mesh = hg.make_mesh((hg.distributed.process_count(),), ("x",))
        step = hg.jit(hg.shard_map(f, mesh, P(), P(), check_vma=False))
        return np.asarray(step(np.ones((rows, SIZE), np.float32), np.eye(SIZE, dtype=np.float32))).tobytes()

    return main


@pytest.mark.parametrize(("ranks", "rows", "lane"), [(2, 1, set()), (2, 256, {0, 1}), (3, 1, {0})])
def test_small_collectives_are_not_handed_to_another_thread(ranks: int, rows: int, lane: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the first rank's of several, which has the sum to send before the program waits."""
    handed: set[int] = set()
    submit, begun, started = lanes.Lane.submit, lanes.begun, []

    def watched(self: Any, world: Any, job: Any) -> Any:
        handed.add(world.rank)
        return submit(self, world, job)

    monkeypatch.setattr(lanes.Lane, "submit", watched)
    monkeypatch.setattr(lanes, "begun", lambda world, *args: (started.append(world.rank), begun(world, *args))[1])
    results = simulate(ranks).run(beside(rows))
    assert len(set(results)) == 1
    assert handed == lane and set(started) == set(range(ranks)) - lane
    assert not lanes._under_way


def test_a_small_collective_under_way_is_settled_where_the_program_fails() -> None:
    waits = simulation._Messages.wait
    waited: list[int] = []

    def main() -> None:
        mesh = hg.make_mesh((2,), ("x",))

        def fails(v: Any) -> None:
            raise ValueError("beside")

        def f(small: Any, x: Any) -> Any:
            total = hg.lax.psum(small, "x")
            for _ in range(3):
                x = hnp.tanh(x @ x)
            hg.debug.callback(fails, hnp.sum(x))
            return x + total

        with pytest.raises(Exception, match="beside"):
            hg.jit(hg.shard_map(f, mesh, P(), P(), check_vma=False))(np.float32(1), np.eye(SIZE, dtype=np.float32))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation._Messages, "wait", lambda self, sent=True: (waited.append(self.rank.rank), waits(self, sent))[1])
        simulate(2).run(main)
    assert sorted(waited) == [0, 1] and not lanes._under_way


# --- the watch -------------------------------------------------------------------------------------------------------


class Store(dict):  # type: ignore[type-arg]
    """What a store of torch's has of what is used."""

    def set(self, key: str, value: str) -> None:
        self[key] = value.encode()

    def check(self, keys: list[str]) -> bool:
        return all(k in self for k in keys)


def watched(waits: list[list[tuple[int, str]]], ends: dict[int, int] | None = None) -> list[int]:
    """The ranks whose watch closes their connections; each rank waits for ranks at calls, until it is looked at so many times."""
    store, closed = Store(), []
    watches = [Watch(None, r, lambda r=r: closed.append(r)) for r in range(len(waits))]  # type: ignore[misc]
    numbers = [[w.waits(peer, Call(text, "")) for peer, text in of] for w, of in zip(watches, waits, strict=True)]
    for w in watches:
        w._store = store
    for look in range(4):
        for rank, w in enumerate(watches):
            if ends is not None and ends.get(rank) == look:
                for number in numbers[rank]:
                    w.goes_on(number)
            since = [watch._Wait(n, peer, call.text, str(call)) for n, (peer, call, _) in w._waits.items()]
            if since:
                w._look(since)
    return closed


@pytest.mark.parametrize(
    ("waits", "stuck"),
    [
        ([[(1, "a")], [(0, "b")]], True),
        ([[(1, "a")], [(0, "a")]], False),  # slow
        ([[(1, "a")], [(2, "b")], [(1, "c")]], True),  # of three the other two
        ([[(1, "a"), (1, "b")], [(0, "b")]], False),  # one of two threads has started what the other is at
        ([[(1, "a"), (1, "b")], [(0, "c")]], True),
        ([[(1, "a")], [(2, "b")], []], False),  # the third is busy
    ],
)
def test_ranks_that_wait_for_each_other_at_different_calls(waits: Any, stuck: bool) -> None:
    assert bool(watched(waits)) == stuck


def test_a_rank_that_goes_on_is_not_stuck() -> None:
    assert not watched([[(1, "a")], [(0, "b")]], ends={1: 1})
    assert not watched([[(1, "a")], [(0, "b")]], ends={0: 1})


def test_the_end_waits_for_a_look_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread inside of the engine's native code when the interpreter ends aborts the process."""
    monkeypatch.setattr(watch, "PATIENCE", -1.0)
    inside, events = threading.Event(), []

    class Slow(Store):
        def set(self, key: str, value: str) -> None:
            inside.set()
            time.sleep(0.3)
            super().set(key, value)
            events.append("left")

    w = Watch(Slow(), 0, lambda: None)
    w.waits(1, Call("a", ""))
    w._interrupts._writer.send(b"\x00")  # it looks at once
    assert inside.wait(20)
    w.end()
    events.append("ended")
    assert events == ["left", "ended"]
