"""Lowering of ``native`` nodes, such as short sorts: a step that calls a kernel which the backend has ready under a name."""

from __future__ import annotations

from hologram.graph.fusion.groups import Group
from hologram.graph.kernel.ir import Buffer, Kernel
from hologram.graph.lower.lowered import Lowered
from hologram.ir.symbolic import Int, atoms

KEY_NS = 8.0  # of one key
UNKNOWN_NS = 100_000.0


def lower_native(group: Group) -> Lowered:
    """The step of a ``native`` node: a kernel that the backend has under a name, on memory."""
    (node,) = group.nodes
    (keys,) = node.inputs
    n = keys.shape[1]
    kernel = Kernel()
    kernel.params = [Buffer("b0", keys.dtype, "in", keys.size), Buffer("b1", node.dtype, "out", node.size)]
    kernel.ready = (f"{node.op.name}_{keys.dtype}", (n, *node.attrs))
    kernel.iterations = keys.shape[0]
    kernel.symbols = sorted({a.name for e in (kernel.iterations, n) for a in atoms(e)})
    kernel.cost = _cost(n)
    return Lowered(kernel, [keys, node], group)


def _cost(n: Int) -> float:
    return KEY_NS * n + 3.0 if isinstance(n, int) else UNKNOWN_NS
