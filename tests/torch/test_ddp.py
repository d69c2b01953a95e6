"""DistributedDataParallel with gloo: two processes train a model of Hologram's layers to the weights of plain torch."""

from __future__ import annotations

import copy
import multiprocessing
import multiprocessing.connection
import sys
import tempfile
import warnings
from datetime import timedelta
from pathlib import Path

import pytest
import torch

import hologram_torch as ht

STEPS, ROWS = 5, 8
LONGEST = 150  # s


def plain_model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 3))


def data() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(STEPS, 2 * ROWS, 6, generator=generator), torch.randint(0, 3, (STEPS, 2 * ROWS), generator=generator)


def train(model: torch.nn.Module, inputs: torch.Tensor, labels: torch.Tensor, loss: torch.nn.Module) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for x, y in zip(inputs, labels, strict=True):
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()


def worker(rank: int, folder: str) -> None:
    """One of the two processes: trains on its half of each batch, and writes its weights."""
    rendezvous = f"file://{folder}/rendezvous"
    torch.distributed.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=2, timeout=timedelta(seconds=120))
    model = plain_model()
    ht.convert(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch's about itself
        parallel = torch.nn.parallel.DistributedDataParallel(model)
    inputs, labels = data()
    mine = slice(rank * ROWS, (rank + 1) * ROWS)
    train(parallel, inputs[:, mine], labels[:, mine], ht.nn.CrossEntropyLoss())
    torch.save(model.state_dict(), Path(folder) / f"{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.mark.skipif(not torch.distributed.is_available() or sys.platform == "win32", reason="this build of torch has no gloo")
def test_two_processes_train_to_the_weights_of_torch() -> None:
    with tempfile.TemporaryDirectory() as folder:
        context = multiprocessing.get_context("spawn")  # autograd does not survive a fork
        workers = [context.Process(target=worker, args=(rank, folder), daemon=True) for rank in range(2)]
        for process in workers:
            process.start()
        multiprocessing.connection.wait([process.sentinel for process in workers], timeout=LONGEST)  # one that fails leaves the other waiting
        for process in workers:
            process.join(LONGEST if all(other.exitcode in (None, 0) for other in workers) else 0)
        ended = [process.exitcode for process in workers]
        for process in workers:
            process.kill()
        assert ended == [0, 0]
        states = [torch.load(Path(folder) / f"{rank}.pt") for rank in range(2)]
    expected = copy.deepcopy(plain_model())
    train(expected, *data(), torch.nn.CrossEntropyLoss())
    for name, weights in expected.state_dict().items():
        assert torch.equal(states[0][name], states[1][name])
        torch.testing.assert_close(states[0][name], weights, rtol=1e-4, atol=1e-5)
