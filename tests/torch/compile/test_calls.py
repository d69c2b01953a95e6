"""Calls of compiled models: memory over thousands of them, threads, forked workers."""

from __future__ import annotations

import functools
import gc
import multiprocessing
import os
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import hologram_torch  # noqa: F401
from hologram_torch.compile import backend


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def model() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 300), nn.GELU(), nn.Linear(300, 8))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="resident memory is read from /proc, which this system lacks")
@pytest.mark.parametrize("training", [False, True])
def test_memory_stays_flat(training, everything):
    m, x = model(), torch.randn(128, 64)
    fast = torch.compile(m, backend=backend)

    def call() -> None:
        if training:
            m.zero_grad()
            fast(x).sum().backward()
        else:
            with torch.no_grad():
                fast(x)

    for _ in range(200 if everything else 100):
        call()
    gc.collect()
    before = resident_bytes()
    for _ in range(10_000 if everything else 250):
        call()
    gc.collect()
    assert resident_bytes() - before < 4 << 20


def test_results_give_their_memory_back_to_the_allocator():
    from hologram.backends.native import storage

    fast = torch.compile(lambda x: x * 2, backend=backend)
    x = torch.randn(1 << 20)
    y = fast(x)
    live = storage.statistics()["live"]
    keep = y[5:7]
    del y
    assert storage.statistics()["live"] == live  # a view keeps it
    del keep
    assert storage.statistics()["live"] <= live - x.nbytes


def test_threads():
    m = model()
    fast = torch.compile(m, backend=backend)
    inputs = [torch.randn(32, 64) for _ in range(4)]
    with torch.no_grad():
        expected = [m(x) for x in inputs]
        fast(inputs[0])
    errors: list[BaseException] = []

    def work(i: int) -> None:
        try:
            with torch.no_grad():
                for _ in range(50):
                    torch.testing.assert_close(fast(inputs[i]), expected[i])
        except BaseException as e:  # noqa: BLE001
            errors.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors


def test_a_result_is_freed_by_another_thread():
    fast = torch.compile(lambda x: x * 2, backend=backend)
    box = [fast(torch.ones(1 << 16))]
    t = threading.Thread(target=box.clear)
    t.start()
    t.join()
    assert not box


class Scaled(Dataset):
    """Rows that a compiled function makes, in whichever process asks."""

    def __init__(self) -> None:
        self.rows = torch.arange(64.0).reshape(16, 4)
        self.scale = torch.compile(lambda x: x.sin() * 3, backend=backend)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> torch.Tensor:
        return self.scale(self.rows[i])


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_worker_of_a_data_loader():
    rows = Scaled()
    rows[0]  # compiled, and run, before the fork
    found = torch.cat(list(DataLoader(rows, batch_size=4, num_workers=1, multiprocessing_context="fork")))
    torch.testing.assert_close(found, rows.rows.sin() * 3)
    torch.testing.assert_close(rows[1], rows.rows[1].sin() * 3)


def test_compiled_code_goes_when_dynamo_is_reset():
    programs: list[weakref.ref[Any]] = []

    def kept(module: torch.fx.GraphModule, example_inputs: Any) -> Any:
        program = functools.partial(module.forward)
        programs.append(weakref.ref(program))
        return program

    torch.compile(lambda x: x + 1, backend=kept)(torch.randn(3))
    torch._dynamo.reset()
    gc.collect()
    assert [p() for p in programs] == [None]
