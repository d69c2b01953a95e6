"""Frozen graphs: inference graphs whose parameters are constants, which are packed and folded once for as long as they do not change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch import fx
from torch._guards import TracingContext
from torch.optim.optimizer import register_optimizer_step_post_hook

from hologram.ir.strides import contiguous_strides
from hologram_torch.bridge.interop import to_numpy
from hologram_torch.compile.targets import HOST

Call = Callable[[list[Any]], Any]
MAX_CHANGES = 8  # of the parameters of a graph, after which they are arguments: packing them again costs more than a call


def parameters(graph: fx.Graph) -> list[int]:
    """The arguments of the graph being compiled that are parameters or buffers of modules, on the CPU, and are not assigned to in it."""
    context = TracingContext.try_get()
    metadata = None if context is None else context.fw_metadata
    if metadata is None:
        return []
    placeholders = list(graph.find_nodes(op="placeholder"))
    return [i for i in metadata.static_input_indices if _is_constant(placeholders[i])]


def _is_constant(node: fx.Node) -> bool:
    val = node.meta.get("val")
    plain = isinstance(val, torch.Tensor) and val.device.type == HOST and val.layout is torch.strided
    return plain and all(u.target is not torch.ops.aten.copy_.default or u.args[0] is not node for u in node.users)


@cache
def _count_fused_steps() -> None:
    """Makes steps of fused optimisers count as versions of their parameters, since PyTorch's fused kernels do not count them."""
    register_optimizer_step_post_hook(_count_step)


def _count_step(optimiser: torch.optim.Optimizer, args: Any, options: Any) -> None:
    for group in optimiser.param_groups:
        if group.get("fused"):
            torch.autograd.graph.increment_version([p for p in group["params"] if not p.is_inference()])


class Frozen:
    """A graph as a function of a list, whose arguments at ``positions`` are constants. ``write`` compiles it for given values of them.

    Each call compares addresses and version counters of these arguments with those of the constants, and compiles anew where any differs. The version
    counts what PyTorch's operations and optimisers do to a tensor. It does not count writes past them: through ``.data``, through a tensor that was
    assigned to ``.data``, NumPy or DLPack.
    """

    _boxed_call = True

    def __init__(self, positions: Sequence[int], write: Callable[[Mapping[int, torch.Tensor]], Call]) -> None:
        _count_fused_steps()
        self._positions, self._write, self._changes = positions, write, 0
        self._state: tuple[list[tuple[int, int, int]], Call, Any] | None = None

    def __call__(self, args: list[Any]) -> Any:
        state = self._state
        if state is None:
            return self._renewed(args)(args)
        for position, address, version in state[0]:
            x = args[position]
            if x.data_ptr() != address or x._version != version:
                return self._renewed(args)(args)
        return state[1](args)

    def _renewed(self, args: list[Any]) -> Call:
        """Compiles the graph for the current values of the parameters."""
        # those of inference mode count no versions; aliases keep the memory, so that nothing else comes to be at its address
        frozen = {i: args[i].detach() for i in self._positions if not args[i].is_inference()} if self._changes < MAX_CHANGES else {}
        self._changes += 1
        known = [(i, x.data_ptr(), x._version) for i, x in frozen.items()]
        program = self._write(frozen)
        self._state = known, program, frozen
        return program


def base_array(x: torch.Tensor, base: tuple[int, ...]) -> Any:
    """Copies the elements of a tensor that is in C order to an array of shape ``base``."""
    return to_numpy(x.as_strided(base, contiguous_strides(base))).copy()
