"""Ready kernels: programs of one op for all sizes, which graphs that run op by op share.

A kernel is compiled when its op is first met with operands of these types, and kept. Its extents are symbols. Elementwise ops see flat arrays, so a
kernel serves every rank; reductions and scans see the axes before the reduced ones, these, and those after them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hologram.backends.build import build
from hologram.ir.devices import CPU, backend
from hologram.ir.graph import Graph
from hologram.ir.leaves import input_
from hologram.ir.node import Builder, Node
from hologram.ir.op import Op
from hologram.ir.symbolic import Int, var
from hologram.settings import settings
from hologram.support.lru_cache import Recent

KERNEL_LIMIT = 512
REFERENCE_USES = 64  # of an op whose reference has a kernel's bits, until it gets a kernel: about as many runs take as long as compiling one

Form = tuple[int | str, ...]  # an operand's axes: names are symbols


class Signature(NamedTuple):
    """What a kernel is made for: ``term`` is an op that computes what the op itself takes, of the same operands; None for none."""

    op: Op
    term: Op | None
    attrs: tuple[Any, ...]
    operands: tuple[tuple[str, Form], ...]  # type and form of each


class Kernel:
    """The program of a signature."""

    def __init__(self, signature: Signature) -> None:
        graph = _graph(signature)
        self._executable = build(backend(CPU), graph, "standard")
        self._symbols = () if self._executable.sizes is None else tuple(self._executable.sizes.symbols)
        self._call = self._executable.for_all_sizes()

    def at(self, sizes: dict[str, int]) -> tuple[Callable[..., None], tuple[int, ...]]:
        """A function of the addresses of the operands and the result, and the integers that it takes behind them."""
        if self._call is None:
            return self._executable.bound(sizes=sizes), ()
        return self._call, tuple([sizes[s] for s in self._symbols])


_kernels = Recent(KERNEL_LIMIT)
_uses = Recent(KERNEL_LIMIT)


def kernel(signature: Signature) -> Kernel:
    """The kernel of a signature, compiled if there is none. Raises what the compiler raises."""
    key = signature, settings.code
    found = _kernels.get(key)
    if found is None:
        found = Kernel(signature)
        _kernels.put(key, found)
    return found


def is_ready(signature: Signature) -> bool:
    """Whether the kernel of a signature is there."""
    return _kernels.get((signature, settings.code)) is not None


def kernel_unless_rare(signature: Signature) -> Kernel | None:
    """The kernel of a signature whose op's reference has its bits; None where that is to be used, because few have asked so far."""
    key = signature, settings.code
    if _kernels.get(key) is None:
        uses = _uses.get(key) or 0
        if uses < REFERENCE_USES:
            _uses.put(key, uses + 1)
            return None
    return kernel(signature)


def clear() -> None:
    """Forgets all kernels."""
    _kernels.clear()
    _uses.clear()


def _graph(signature: Signature) -> Graph:
    b = Builder()
    symbols = {name: var(name, 1) for _, form in signature.operands for name in form if isinstance(name, str)}
    inputs = []
    for i, (dtype, form) in enumerate(signature.operands):
        shape: tuple[Int, ...] = tuple([symbols[n] if isinstance(n, str) else n for n in form])
        inputs.append(b(input_, (), (i, shape, dtype, None)))
    operands = tuple(inputs) if signature.term is None else (b(signature.term, tuple(inputs)),)
    return Graph(inputs, [b(signature.op, operands, signature.attrs)])


# --- signatures of nodes ---------------------------------------------------------------------------------------------


class Use(NamedTuple):
    """The kernel that a node takes, and the values of its symbols."""

    signature: Signature
    sizes: dict[str, int]


def elementwise(node: Node) -> Use:
    """The use of a kernel by an elementwise node of some elements."""
    form: Form = ("n0",) if node.shape else ()
    operands = tuple([(x.dtype.name, form if x.shape else ()) for x in node.inputs])
    return Use(Signature(node.op, None, node.attrs, operands), {"n0": static_prod(node.shape)} if form else {})


def kernel_of(use: Use, has_bits: bool) -> Kernel | None:
    """The kernel of a use; None where the reference of the op, which ``has_bits`` of a kernel, is used instead, because few have asked so far."""
    signature = use.signature
    return kernel_unless_rare(signature) if has_bits and signature.term is None else kernel(signature)


def along_axes(node: Node, axes: tuple[int, ...], operands: Sequence[Node], term: Op | None) -> Use:
    """The use of a kernel by a reduction or scan along adjacent ``axes`` of what ``term`` makes of ``operands``."""
    shape = node.inputs[0].shape
    before, along, after = shape[: axes[0]], shape[axes[0] : axes[-1] + 1], shape[axes[-1] + 1 :]
    sizes = {"n0": static_prod(before), "n1": static_prod(along)}
    columns = static_prod(after)
    if columns != 1 or (after and node.op.kind == "scan"):  # a scan down columns has the order of one, also down a single column
        sizes["n2"] = columns
    moved = {"axes": (1,), "axis": 1}
    attrs = tuple([moved.get(name, value) for name, value in zip(node.op.attrs, node.attrs, strict=True)])
    return Use(Signature(node.op, term, attrs, tuple([(x.dtype.name, tuple(sizes) if x.shape else ()) for x in operands])), sizes)


def static_prod(shape: Sequence[Any]) -> int:
    """The product of extents that are known."""
    return math.prod(shape)


__all__ = ["Kernel", "Signature", "Use", "along_axes", "clear", "elementwise", "is_ready", "kernel", "kernel_of", "kernel_unless_rare", "static_prod"]
