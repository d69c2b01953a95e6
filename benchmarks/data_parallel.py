"""Training the character model on two processes of one core each: ``python -m benchmarks.data_parallel``.

Beside one process with both cores, and beside PyTorch's DistributedDataParallel of the same model under inductor, on two processes of one core each.
All train on the same batches of 16 rows of 128 characters; two processes have 8 rows each. Each contender takes its turn in every round, while the
others wait; the best round counts.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from examples.charlm import Model

MODEL = Model(symbols=96)
RANKS = 2
CONTENDERS = {"one process": 1, "two processes": RANKS, "DDP, inductor": RANKS}

Step = Callable[[np.ndarray], float]  # this rank's rows to the loss


def rows(step: int, rank: int, ranks: int) -> np.ndarray:
    """This rank's part of a batch: (rows, length + 1)."""
    all_rows = np.random.default_rng(step).integers(0, MODEL.symbols, (MODEL.batch, MODEL.length + 1), np.int32)
    each = MODEL.batch // ranks
    return all_rows[rank * each : (rank + 1) * each]


# --- contenders ------------------------------------------------------------------------------------------------------


def hologram_step(rank: int, ranks: int) -> Step:
    import hologram as hg
    import hologram.numpy as hnp
    from examples import charlm
    from hologram import nn, random
    from hologram.distributed import NamedSharding, PartitionSpec, make_array_from_process_local_data

    if ranks > 1:
        hg.distributed.initialize()
    mesh, replicated, by_row = hg.make_mesh((ranks,), "data"), PartitionSpec(), PartitionSpec("data")

    def loss(p: Any, tokens: Any) -> Any:
        return nn.cross_entropy(charlm.logits(MODEL, p, tokens[:, :-1]), tokens[:, 1:])

    def step(state: Any, tokens: Any) -> Any:
        p, mean, square, count = state
        count = count + 1
        value, slope = hg.value_and_grad(loss)(p, tokens)
        if ranks > 1:
            value, slope = hg.lax.pmean((value, slope), "data")
        mean = hg.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, slope)
        square = hg.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, slope)
        rate = 2e-3 / (1 - 0.9**count)
        p = hg.tree.map(lambda q, m, s: q - rate * m / (hnp.sqrt(s / (1 - 0.99**count)) + 1e-8), p, mean, square)
        return (p, mean, square, count), value

    mapped = step if ranks == 1 else hg.shard_map(step, mesh, (replicated, by_row), replicated)
    compiled = hg.jit(mapped, donate_argnums=0)
    p = charlm.start(MODEL, random.key(0))
    state = [(p, hg.tree.map(hnp.zeros_like, p), hg.tree.map(hnp.zeros_like, p), np.int32(0))]

    def run(tokens: np.ndarray) -> float:
        given = tokens if ranks == 1 else make_array_from_process_local_data(NamedSharding(mesh, by_row), tokens)
        state[0], value = compiled(state[0], given)
        return float(value)

    return run


def torch_network() -> Any:
    """The loss of the model as a module of PyTorch."""
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self, w: int) -> None:
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(w, bias=False) for _ in range(2)])
            self.qkv, self.out = nn.Linear(w, 3 * w, bias=False), nn.Linear(w, w, bias=False)
            self.up, self.down = nn.Linear(w, 4 * w, bias=False), nn.Linear(4 * w, w, bias=False)

        def forward(self, x: Any) -> Any:
            n, length, w = x.shape
            q, k, v = self.qkv(self.norms[0](x)).reshape(n, length, 3, MODEL.heads, -1).permute(2, 0, 3, 1, 4)
            seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(n, length, w))
            return x + self.down(nn.functional.gelu(self.up(self.norms[1](x)), approximate="tanh"))

    class Network(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.symbols, self.places = nn.Embedding(MODEL.symbols, MODEL.width), nn.Parameter(torch.randn(MODEL.length, MODEL.width) / 50)
            self.layers = nn.ModuleList([Layer(MODEL.width) for _ in range(MODEL.layers)])
            self.norm = nn.LayerNorm(MODEL.width, bias=False)

        def forward(self, tokens: Any, wanted: Any) -> Any:
            x = self.symbols(tokens) + self.places
            for layer in self.layers:
                x = layer(x)
            logits = self.norm(x) @ self.symbols.weight.T
            return nn.functional.cross_entropy(logits.reshape(-1, MODEL.symbols), wanted.reshape(-1))

    return Network()


def torch_step(rank: int, ranks: int) -> Step:
    import torch

    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    torch.manual_seed(0)
    network = torch.nn.parallel.DistributedDataParallel(torch_network(), gradient_as_bucket_view=True)
    compiled, optimiser = torch.compile(network), torch.optim.Adam(network.parameters(), 2e-3, betas=(0.9, 0.99), fused=True)

    def run(tokens: np.ndarray) -> float:
        given = torch.from_numpy(tokens).long()
        optimiser.zero_grad()
        value = compiled(given[:, :-1], given[:, 1:])
        value.backward()
        optimiser.step()
        return float(value.detach())

    return run


# --- processes -------------------------------------------------------------------------------------------------------


def work(contender: str) -> None:
    """A process of a contender: for each line of input, that many steps, of which it tells the seconds of the best and the last loss."""
    rank, ranks = int(os.environ.get("RANK", 0)), CONTENDERS[contender]
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, cores[:RANKS] if ranks == 1 else cores[rank : rank + 1])
    run = (torch_step if "inductor" in contender else hologram_step)(rank, ranks)
    done = 0
    for line in sys.stdin:
        times, loss = [], 0.0
        for _ in range(int(line)):
            tokens, done = rows(done, rank, ranks), done + 1
            began = time.perf_counter()
            loss = run(tokens)
            times.append(time.perf_counter() - began)
        print(json.dumps([min(times), loss]), flush=True)


def started(contender: str) -> list[subprocess.Popen[str]]:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    ranks = CONTENDERS[contender]
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks), "OMP_NUM_THREADS": str(RANKS // ranks)}
    where["GLOO_SOCKET_IFNAME"] = "lo"
    command = [sys.executable, "-m", "benchmarks.data_parallel", "--contender", contender]
    return [
        subprocess.Popen(command, env=os.environ | where | {"RANK": str(r)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for r in range(ranks)
    ]


def told(processes: list[subprocess.Popen[str]], steps: int) -> float:
    """The seconds of a contender's best step out of some: those of the slowest of its processes."""
    for p in processes:
        assert p.stdin is not None
        p.stdin.write(f"{steps}\n")
        p.stdin.flush()
    answers = [json.loads(p.stdout.readline()) for p in processes if p.stdout is not None]
    return float(max(seconds for seconds, _ in answers))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4, help="of a round")
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.contender:
        work(options.contender)
        return
    processes = {name: started(name) for name in CONTENDERS}
    try:
        best = {name: told(of, 2) for name, of in processes.items()}  # compiles
        for _ in range(options.rounds):
            best = {name: min(best[name], told(of, options.steps)) for name, of in processes.items()}
    finally:
        for p in (p for of in processes.values() for p in of):
            p.kill()
    for name, seconds in best.items():
        speed = MODEL.batch * MODEL.length / seconds
        print(f"{name:14} {seconds * 1e3:7.1f} ms a step {speed:8,.0f} characters a second, {best['one process'] / seconds:.2f} of one process")


if __name__ == "__main__":
    main()
