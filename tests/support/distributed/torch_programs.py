"""Programs of torch.distributed, eager and compiled, that ``torchrun`` starts: ``-m tests.support.distributed.torch_programs FOLDER``.

Each rank writes a file of JSON into the folder: for each program, how far compiled results and gradients are from eager mode's, how many graphs were
compiled and into how many segments; or the error.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

hologram_backend: Any = importlib.import_module("hologram_torch.compile.backend")  # whose package has a function of that name

SIZE = 16
Found = list[torch.Tensor]
Program = Callable[[DeviceMesh, bool], Found]


def compiled(f: Any, compiles: bool) -> Any:
    return torch.compile(f, backend="hologram") if compiles else f


class Block(nn.Module):
    """A layer of one's own: Dynamo leaves frames of torch's layers alone that are called from what it does not trace, as hooks are."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(x)))


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = Block(SIZE, 32), Block(SIZE, 48)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


def own_rows(seed: int = 1) -> torch.Tensor:
    torch.manual_seed(seed + dist.get_rank())
    return torch.randn(8, SIZE)


def whole(x: torch.Tensor) -> torch.Tensor:
    return x.full_tensor() if isinstance(x, DTensor) else x


def trained(model: nn.Module, run: Any, x: torch.Tensor) -> Found:
    """Losses, gradients and parameters after some steps of SGD."""
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for _ in range(3):
        optimiser.zero_grad()
        loss = run(x).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(whole(loss.detach()))
    return [*losses, *[whole(p.grad) for p in model.parameters()], *[whole(p.detach()) for p in model.parameters()]]


# --- programs --------------------------------------------------------------------------------------------------------


def ddp(mesh: DeviceMesh, compiles: bool) -> Found:
    model = DistributedDataParallel(Network())
    return trained(model, compiled(model, compiles), own_rows())


def ddp_of_compiled(mesh: DeviceMesh, compiles: bool) -> Found:
    model = DistributedDataParallel(compiled(Network(), compiles))
    return trained(model, model, own_rows())


def ddp_of_many_buckets(mesh: DeviceMesh, compiles: bool) -> Found:
    first, dist._DEFAULT_FIRST_BUCKET_BYTES = dist._DEFAULT_FIRST_BUCKET_BYTES, 1000
    try:
        model = DistributedDataParallel(Network(), bucket_cap_mb=0.001)
        return trained(model, compiled(model, compiles), own_rows())
    finally:
        dist._DEFAULT_FIRST_BUCKET_BYTES = first


def fsdp(mesh: DeviceMesh, compiles: bool) -> Found:
    model = Network()
    for block in (model.first, model.second):
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return trained(model, compiled(model, compiles), own_rows())


def fsdp_of_compiled(mesh: DeviceMesh, compiles: bool) -> Found:
    """Blocks are compiled, and then sharded: what torch advises."""
    model = Network()
    for block in (model.first, model.second):
        if compiles:
            block.compile(backend="hologram")
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return trained(model, model, own_rows())


def tensor_parallel(mesh: DeviceMesh, compiles: bool) -> Found:
    model = parallelize_module(Network(), mesh, {"first.up": ColwiseParallel(), "first.down": RowwiseParallel()})
    torch.manual_seed(5)
    return trained(model, compiled(model, compiles), torch.randn(8, SIZE))


def dtensors(mesh: DeviceMesh, compiles: bool) -> Found:
    """Products and a reduction of DTensors, placed anew on the way."""

    def program(a: DTensor, b: DTensor) -> DTensor:
        product = torch.tanh(a @ b).redistribute(mesh, [Replicate()])
        return (product * torch.arange(4.0)[:, None].repeat(2, 1).sum()).sum(0).redistribute(mesh, [Replicate()])

    torch.manual_seed(7)
    a, b = torch.randn(8, SIZE), torch.randn(SIZE, 4)
    pieces = [distribute_tensor(x, mesh, [placement]).requires_grad_() for x, placement in ((a, Shard(1)), (b, Shard(0)))]
    out = compiled(program, compiles)(*pieces)
    out.sum().backward()
    return [whole(out.detach()), *[whole(p.grad) for p in pieces]]


def functional(mesh: DeviceMesh, compiles: bool) -> Found:
    """Functional collectives between what is compiled, without derivatives."""

    def program(x: torch.Tensor) -> Found:
        y = torch.sin(x) * 2
        total = collectives.all_reduce(y, "sum", mesh) + 1
        extreme = collectives.all_reduce(y.exp(), "max", mesh).log()
        everyone = collectives.all_gather_tensor(total * x, 0, mesh)
        part = collectives.reduce_scatter_tensor(everyone.cos(), "sum", 1, mesh)
        swapped = collectives.all_to_all_single(y + 1, None, None, mesh)
        sent = collectives.broadcast(y - extreme, 0, mesh)
        half = collectives.all_reduce(y.to(torch.bfloat16), "sum", mesh).float()
        several = collectives.all_reduce_coalesced([y.square(), total.sqrt().nan_to_num()], "sum", mesh)
        return [total, extreme, everyone.neg(), part.abs(), swapped.tanh(), sent * 3, half, *[s + 1 for s in several]]

    return [x.clone() for x in compiled(program, compiles)(own_rows())]


def functional_with_derivatives(mesh: DeviceMesh, compiles: bool) -> Found:
    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        everyone = collectives.all_gather_tensor_autograd(torch.tanh(x @ w), 0, mesh)
        part = collectives.reduce_scatter_tensor_autograd(everyone.sin() * 2, "sum", 0, mesh)
        swapped = collectives.all_to_all_single_autograd(part.exp(), None, None, mesh)
        return (swapped * x).sum()

    x, w = own_rows().requires_grad_(), torch.eye(SIZE).mul(0.5).requires_grad_()
    out = compiled(program, compiles)(x, w)
    out.backward()
    return [out.detach(), x.grad, w.grad]  # type: ignore[list-item]


def legacy(mesh: DeviceMesh, compiles: bool) -> Found:
    """Collectives in place, of torch.distributed itself."""

    def program(x: torch.Tensor) -> Found:
        y = x * 2
        dist.all_reduce(y)
        gathered = torch.empty(dist.get_world_size() * 8, SIZE)
        dist.all_gather_into_tensor(gathered, y.sin())
        return [y + 1, gathered.cos()]

    return list(compiled(program, compiles)(own_rows()))


PROGRAMS: dict[str, Program] = {
    f.__name__: f
    for f in (
        ddp,
        ddp_of_compiled,
        ddp_of_many_buckets,
        fsdp,
        fsdp_of_compiled,
        tensor_parallel,
        dtensors,
        functional,
        functional_with_derivatives,
        legacy,
    )  # fmt: skip
}


def compared(program: Program, mesh: DeviceMesh) -> dict[str, Any]:
    want = program(mesh, False)
    torch._dynamo.reset()
    writers: list[Any] = []
    write = hologram_backend._written

    def noted(unit: Any, *args: Any) -> Any:
        return write(unit._replace(observe=lambda stage, module, writer: writers.append(writer)), *args)

    hologram_backend._written = noted
    try:
        found = program(mesh, True)
    finally:
        hologram_backend._written = write
    assert len(found) == len(want)
    apart = [float((a - b).abs().max() / (1 + b.abs().max())) for a, b in zip(found, want, strict=True)]
    return {"apart": max(apart), "programs": len(writers), "segments": sum(len(segments) for w in writers for segments, _ in w.partition.stages)}


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # of torch's about itself: names of collectives change
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    said: dict[str, Any] = {}
    for name in sys.argv[2:] or PROGRAMS:
        try:
            said[name] = compared(PROGRAMS[name], mesh)
        except Exception as e:  # noqa: BLE001  what the test reports
            said[name] = {"error": "".join(traceback.format_exception(e))[-3000:]}
    (Path(sys.argv[1]) / f"{dist.get_rank()}.json").write_text(json.dumps(said))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
