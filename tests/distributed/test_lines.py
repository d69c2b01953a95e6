"""Lines between processes of one machine: messages come in their order, whoever reads them, and whoever waits is told of an end."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from hologram.distributed.lines import Lines, Listener, machine
from hologram.distributed.messages import ROOM_BYTES

pytestmark = pytest.mark.skipif(not machine(), reason="there are no such sockets here")
SECONDS = 20.0
SOON = timedelta(seconds=SECONDS)


def connected(ranks: int, timeout: float = SECONDS) -> list[Lines]:
    pairs: list[dict[int, socket.socket]] = [{} for _ in range(ranks)]
    for a, b in itertools.combinations(range(ranks), 2):
        pairs[a][b], pairs[b][a] = socket.socketpair(socket.AF_UNIX)
    return [Lines(of, timeout) for of in pairs]


@pytest.fixture
def pair() -> Iterator[list[Lines]]:
    lines = connected(2)
    yield lines
    for end in lines:
        end.close()
        end.leave()


def message(number: int, size: int = 8) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 256, size, np.uint8)


def received(lines: Lines, source: int, tag: int, size: int = 8) -> tuple[Any, np.ndarray]:
    into = np.zeros(size, np.uint8)
    return lines.receive(into, source, tag), into


def test_the_nth_message_of_a_tag_is_the_nth_that_was_asked_for(pair: list[Lines]) -> None:
    """Asked for before it is sent and behind it, and waited for in another order."""
    first, early = received(pair[1], 0, 5), received(pair[1], 0, 6)
    for number, tag in enumerate((5, 5, 6, 5)):
        pair[0].send(message(number), 1, tag)
    second, third = received(pair[1], 0, 5), received(pair[1], 0, 5)
    for asked in (early, third, first, second):
        asked[0].wait(SOON)
    for asked, number in ((first, 0), (second, 1), (early, 2), (third, 3)):
        np.testing.assert_array_equal(asked[1], message(number))


def test_ranks_that_all_send_more_than_the_kernel_keeps() -> None:
    """In a ring, none of whose ranks reads before it has sent all."""
    ranks, count = 3, 40
    lines = connected(ranks)

    def run(rank: int) -> None:
        for k in range(count):
            lines[rank].send(message(k + 100 * rank, ROOM_BYTES), (rank + 1) % ranks, 7)
        source = (rank - 1) % ranks
        for k in range(count):
            asked, into = received(lines[rank], source, 7, ROOM_BYTES)
            asked.wait(SOON)
            np.testing.assert_array_equal(into, message(k + 100 * source, ROOM_BYTES))

    with ThreadPoolExecutor(ranks) as pool:
        for done in [pool.submit(run, rank) for rank in range(ranks)]:
            done.result(SECONDS)
    for end in lines:
        end.leave()


def test_threads_read_for_each_other(pair: list[Lines]) -> None:
    """Each of some threads waits for its own tag on the same line."""
    tags, rounds = range(4), 200

    def wait(tag: int) -> None:
        for k in range(rounds):
            asked, into = received(pair[1], 0, tag)
            asked.wait(SOON)
            np.testing.assert_array_equal(into, message(1000 * tag + k))

    with ThreadPoolExecutor(len(tags)) as pool:
        done = [pool.submit(wait, tag) for tag in tags]
        for k in range(rounds):
            for tag in tags:
                pair[0].send(message(1000 * tag + k), 1, tag)
        for d in done:
            d.result(SECONDS)


@pytest.mark.parametrize("ends", ["close", "leave"])
def test_who_waits_is_told_of_an_end(pair: list[Lines], ends: str) -> None:
    """What was sent before comes nevertheless."""
    pair[0].send(message(1), 1, 1)
    before, into = received(pair[1], 0, 1)
    waits, errors = [received(pair[1], 0, tag)[0] for tag in (2, 3)], []

    def wait(asked: Any) -> None:
        with pytest.raises(RuntimeError) as e:
            asked.wait(SOON)
        errors.append(str(e.value))

    threads = [threading.Thread(target=wait, args=(asked,)) for asked in waits]
    for t in threads:
        t.start()
    before.wait(SOON)
    np.testing.assert_array_equal(into, message(1))
    getattr(pair[0], ends)()
    for t in threads:
        t.join(SECONDS)
    assert errors == ["Connection closed by peer"] * 2
    with pytest.raises(RuntimeError):
        pair[1].send(message(2), 0, 1)


def test_a_rank_that_is_late() -> None:
    lines = connected(2, 0.2)
    with pytest.raises(RuntimeError, match="timed out"):
        received(lines[1], 0, 1)[0].wait(timedelta(seconds=0.2))
    with pytest.raises(RuntimeError, match="timed out"):
        for _ in range(100):
            lines[0].send(message(0, ROOM_BYTES), 1, 1)
    for end in lines:
        end.leave()


def test_ranks_of_a_machine_find_each_other() -> None:
    listeners = [Listener(3) for _ in range(3)]
    paths = {rank: listener.path for rank, listener in enumerate(listeners)}
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda rank: listeners[rank].connect(rank, paths, SECONDS), range(3)))
    lines = [Lines(sockets, SECONDS) for sockets in found]
    for a, b in itertools.permutations(range(3), 2):
        lines[a].send(message(10 * a + b), b, 1)
    for a, b in itertools.permutations(range(3), 2):
        asked, into = received(lines[b], a, 1)
        asked.wait(SOON)
        np.testing.assert_array_equal(into, message(10 * a + b))
    for end in (*lines, *listeners):
        getattr(end, "leave", end.close)()
