"""A cluster of ``distributed`` with two processes: programs of Tensors and NumPy blocks, what travels, and the memory of workers."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from tests.support.runner.libraries import library

distributed = library("distributed")
da = library("dask.array")
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore:Sending large graph", "ignore:Creating scratch"
)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    options: dict[str, Any] = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "memory_limit": "1GiB",
        "dashboard_address": "127.0.0.1:0",
        "host": "127.0.0.1",
    }
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def test_programs_are_traced_once_a_worker(client: Any) -> None:
    def function(block: Any) -> Any:
        import builtins

        builtins.traced = getattr(builtins, "traced", 0) + 1  # type: ignore[attr-defined]
        return hnp.tanh(block) * 2

    a = np.random.default_rng(0).normal(size=(64, 8))
    d = da.from_array(hg.tensor(a), chunks=(4, 8))
    for _ in range(2):
        found = hg.dask.fuse((d.map_blocks(function, meta=d._meta) + 1).sum(axis=0)).compute()
        assert type(found) is hg.Tensor
        np.testing.assert_allclose(np.asarray(found), (2 * np.tanh(a) + 1).sum(axis=0))
    counts = client.run(lambda: getattr(__import__("builtins"), "traced", 0)).values()
    assert max(counts) == 1


def test_free_memory_of_workers_goes_back(client: Any) -> None:
    def kept() -> Any:
        from hologram.backends.native import storage

        return storage.statistics()["cached"]

    blocks = da.map_blocks(lambda block_info=None: np.ones((4 << 20,)), chunks=((4 << 20,) * 6,), dtype=float, meta=np.empty(0))
    tensors = hg.dask.fuse(blocks.map_blocks(hg.asarray, meta=hg.tensor(np.empty(0))) * 2.0)
    with distributed.Client(client.cluster):  # results live as long as their client
        total = tensors.persist()
        assert float(total.sum().compute()) == 2.0 * 6 * (4 << 20)
        del total
    for _ in range(50):
        if max(client.run(kept).values()) <= (1 << 30) // 16:
            return
        client.run(lambda: __import__("time").sleep(0.1))
    pytest.fail("workers keep more free memory than a sixteenth of their limit")


TENSORS = {
    "rows": lambda: hg.tensor(np.arange(12.0).reshape(3, 4)),
    "pending": lambda: hg.tensor(np.arange(12.0).reshape(3, 4)) + 1,
    "transposed": lambda: hg.tensor(np.arange(12.0).reshape(3, 4)).T,
    "scalar": lambda: hg.tensor(2.5),
    "empty": lambda: hnp.zeros((0, 3)),
    "bool": lambda: hg.tensor([True, False]),
    "complex": lambda: hg.tensor(np.array([1 + 2j, 3])),
    "bfloat16": lambda: hnp.asarray([1, 2, 3], dtype="bfloat16"),
}


@pytest.mark.parametrize("kind", TENSORS)
def test_tensors_travel(kind: str) -> None:
    protocol = library("distributed.protocol")
    x = TENSORS[kind]()
    header, frames = protocol.serialize(x)
    y = protocol.deserialize(header, [memoryview(bytearray(f)) for f in frames])
    assert (type(y), y.shape, y.dtype) == (hg.Tensor, x.shape, x.dtype)
    assert np.array_equal(np.asarray(y), np.asarray(x))


def test_tensors_travel_without_copies() -> None:
    protocol = library("distributed.protocol")
    x = hg.tensor(np.arange(1000.0))
    _, (frame,) = protocol.serialize(x)
    assert np.shares_memory(np.frombuffer(frame), x.numpy())
    arrived = protocol.deserialize(_, [frame])
    assert np.shares_memory(arrived.numpy(), x.numpy())
    buffers: list[Any] = []
    pickled = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
    assert len(pickled) < 1000 and np.shares_memory(np.frombuffer(buffers[0]), x.numpy())
    assert np.array_equal(np.asarray(pickle.loads(pickled, buffers=buffers)), np.arange(1000.0))


def test_sizes_of_tensors_are_told() -> None:
    x = hg.tensor(np.ones((1000, 10)))
    pending = x + 1
    for t in (x, pending):
        assert 80_000 <= sys.getsizeof(t) <= 81_000
    sizeof = library("dask.sizeof").sizeof
    assert sizeof(x) >= 80_000
