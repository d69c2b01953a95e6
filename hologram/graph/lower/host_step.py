"""Lowering of host ops: a step between kernels that calls a routine once, on operands and results in memory.

The routine is the backend's affair: a library's, called natively, or the row's ``reference``, called through Python.
"""

from __future__ import annotations

from typing import Any

from hologram import dtypes
from hologram.dtypes import real_of
from hologram.graph.fusion.groups import Call
from hologram.graph.library.fft.sizes import work_elements
from hologram.ir.graph import Graph, bodies
from hologram.ir.node import Node
from hologram.ir.op import Op, Shape
from hologram.ir.symbolic import is_static, prod
from hologram.primitives.control import project
from hologram.primitives.host import fourier

CALL_NS = 5_000.0  # of a call through Python
ELEMENT_NS = 1.0
TRANSFORM_COST = 0.1  # of a Fourier transform, for each element and each doubling of their number
_TRANSFORMS = (fourier.fft, fourier.rfft, fourier.irfft)


class HostStep:
    """``results`` are nodes for all results of ``node``, wanted or not; ``bindings`` the operands and results, in order.

    ``workspace`` is memory for the routine, None for none; ``cost`` is rough nanoseconds.
    """

    __slots__ = ("node", "results", "workspace", "bindings", "cost")
    in_place: tuple[tuple[int, int], ...] = ()

    def __init__(self, call: Call) -> None:
        node = self.node = call.node
        wanted = {r.attrs[0]: r for r in call.results}
        assert node.op.results is not None
        types = node.op.results(node.inputs, node.attrs)
        self.results = [wanted[i] if i in wanted else _unwanted(node, i, t) for i, t in enumerate(types)]
        nbytes = fourier_workspace(node)
        self.workspace = _unwanted(node, len(types), ((nbytes,), dtypes.uint8)) if nbytes else None
        self.bindings = [*self.reads(), *self.writes()]
        self.cost = CALL_NS + ELEMENT_NS * work(node)

    @property
    def op(self) -> Op:
        return self.node.op

    @property
    def title(self) -> str:
        """What the step is, for people."""
        return self.op.name

    def reads(self) -> list[Node]:
        """The arrays that the routine reads."""
        return [x for x in self.node.inputs if x.size != 0]

    def writes(self) -> list[Node]:
        """The arrays that the routine writes."""
        return [x for x in self.results if x.size != 0] + ([] if self.workspace is None else [self.workspace])

    def shared(self) -> list[tuple[Node, Node]]:
        """``(result, operand)`` where sharing a buffer saves a copy: none."""
        return []

    def overwrites(self, result: Node, operand: Node) -> bool:
        """Whether ``result`` may be written where ``operand`` is read."""
        return False


def _unwanted(node: Node, index: int, of: tuple[Shape, Any]) -> Node:
    """A result that nobody reads: memory for the routine to write."""
    return Node(project, (node,), (index, of[0], of[1].name), *of)


def work(node: Node) -> float:
    """Rough scalar operations of a host op: of its matrices' elements each as many as the longest side. With symbols a guess."""
    if node.op in _TRANSFORMS:
        n = prod(node.inputs[0].shape)
        return float(n * n.bit_length() * TRANSFORM_COST) if isinstance(n, int) else CALL_NS
    largest = max((n for x in node.inputs if isinstance(n := prod(x.shape), int)), default=1)
    longest = max((n for x in node.inputs for n in x.shape[-2:] if isinstance(n, int)), default=1)
    return float(largest * longest * node.op.cost)


def fourier_workspace(node: Node) -> int:
    """Bytes of memory that a Fourier transform takes besides its operand and result; 0 for other ops, and where sizes are symbols."""
    x = node.inputs[0] if node.inputs else None
    if node.op not in _TRANSFORMS or x is None or not all(map(is_static, x.shape)):
        return 0
    n = node.attrs[1] if node.op is fourier.irfft else 0
    return 2 * real_of(x.dtype).itemsize * work_elements(node.op.name, x.shape, node.attrs[0], n, real_of(x.dtype).itemsize)  # type: ignore[arg-type]


def host_nodes(graph: Graph) -> list[Node]:
    """The host ops of a graph and of the bodies in it."""
    out: list[Node] = []
    for n in graph.nodes():
        if n.op.kind == "host":
            out.append(n)
        elif n.op.kind == "control":
            out += [h for b in bodies(n) for h in host_nodes(b.graph)]
    return out
