"""Kernels written as text, compiled for the CPU and run."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from hologram.backends.llvm.graph.module import render_module
from hologram.backends.llvm.toolchain import target
from hologram.backends.native import calls, storage
from hologram.graph.kernel.ir import Kernel
from hologram.graph.kernel.parser import parse_kernel
from hologram.graph.kernel.verify import verify_kernel
from hologram.graph.lower.lowered import Lowered
from hologram.ir.aval import aval
from hologram.settings import override
from tests.support.building import Draft


def compiled(text: str, level: str = "", checked: bool = True, cost: float = 0.0) -> Callable[..., list[np.ndarray]]:
    """A function of the arrays that a kernel of static sizes reads, which gives those that it writes, flat.

    ``cost``: nanoseconds of a chunk, by which threads share the kernel or not.
    """
    with override(target=level):
        of = target.host()
    kernel, module = rendered(text, of, checked, cost)
    code = target.link(target.compile_ir(module, of), calls.symbols())

    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        outs = [storage.empty(aval(b.dtype, (b.size,))) for b in kernel.params if b.role != "in"]
        calls.run(code.address("graph"), [storage.copy_of(a) for a in arrays], outs)
        return [storage.view(s) for s in outs]

    return run


def rendered(text: str, of: target.Target, checked: bool, cost: float = 0.0) -> tuple[Kernel, str]:
    """A kernel, verified, and a module that runs it."""
    kernel = parse_kernel(text)
    verify_kernel(kernel)
    kernel.cost = cost
    return kernel, render_module(_lone(kernel), None, "exact", of, checked)


def _lone(kernel: Kernel) -> Any:
    """As much of a schedule as rendering asks of it, for one kernel. Its parameters are the slots of the call, those that are read first."""
    d = Draft()
    nodes = [d.input(b.size, dtype=b.dtype.name) for b in kernel.params]
    inputs = [n for n, b in zip(nodes, kernel.params, strict=True) if b.role == "in"]
    computed = [n for n in nodes if n not in inputs]
    low = Lowered(kernel, nodes, None)  # type: ignore[arg-type]
    slot_of = {n: i for i, n in enumerate(inputs + computed)}
    return SimpleNamespace(
        steps=[low], kernels=[low], inputs=inputs, constants=[], computed=computed, slot_of=slot_of, symbol_slots={}, buffer=lambda n: n
    )
