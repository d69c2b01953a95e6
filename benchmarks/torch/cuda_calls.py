"""What a call of a compiled model on CUDA costs the host: ``python -m benchmarks.torch.cuda_calls``.

The model is an MLP whose tensors PyTorch takes for the CPU's, and compiled graphs for CUDA's. The driver does nothing, so no time of a device or of a
driver is in the figures: they are of the way from tensors to the driver. The second one is of the whole of ``torch.compile``, guards included.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch._C._dynamo import guards

from benchmarks.device_calls import IdleApi
from hologram.backends.cuda import device as cuda_device
from hologram_torch.bridge import cuda
from hologram_torch.compile import targets
from hologram_torch.compile.backend import make_backend

CALLS = 300  # of a round
ROUNDS = 25


def main() -> None:
    device = cuda_device.Device(IdleApi(), 0)
    replaced: dict[str, Any] = {
        "device_of": lambda x: torch.device("cuda", 0),
        "empty_on": lambda device: guards._empty_strided_cpu,  # type: ignore[attr-defined]
        "raw_stream": lambda device: lambda: 7,
        "is_capturing": lambda: False,
    }
    cuda_device.found = lambda: ([device], None)  # type: ignore[assignment]
    for name, function in replaced.items():
        setattr(cuda, name, function)
    programs: list[targets.Compiled] = []
    compile_there = targets.CudaTarget.compile

    def noted(self: targets.CudaTarget, *args: Any) -> targets.Compiled:
        programs.append(compile_there(self, *args))
        return programs[-1]

    targets.CudaTarget.compile = noted  # type: ignore[method-assign]
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 64))
    x, fast = torch.randn(128, 256), torch.compile(model, backend=make_backend())
    with torch.no_grad():
        for _ in range(3):
            fast(x)
        (program,) = programs
        addresses = [1 << 20] * (len(program.executable.execution_plan.inputs) + len(program.executable.execution_plan.computed))
        print(f"{'a program, at addresses':32} {microseconds(lambda: program.run(*addresses)):8.1f} us")
        print(f"{'the compiled model':32} {microseconds(lambda: fast(x)):8.1f} us")


def microseconds(call: Callable[[], Any]) -> float:
    """Of one call: the median over rounds."""
    found = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        found.append((time.perf_counter() - start) / CALLS * 1e6)
    return statistics.median(found)


if __name__ == "__main__":
    main()
