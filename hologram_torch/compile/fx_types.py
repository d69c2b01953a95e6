"""Types of the values in an FX graph: shapes, strides and element types, with numbers in the place of symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from hologram.ir.symbolic import Expr, Int
from hologram_torch.bridge import cuda
from hologram_torch.compile.symbolic_sizes import MIN_SIZE, NotSymbolic, SymbolicSizes

Sizes = Mapping[Any, Any]  # values of symbols: numbers, or the variables of SymbolicSizes
Symbols = frozenset[Any]


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor's shape, strides, offset in its storage, element type and device, such as ``cuda:0``. Sizes are numbers, or symbolic
    (:mod:`symbolic_sizes`). The offset is None where it depends on positions (:mod:`positions`). ``lazy``: a conjugation or negation of it is
    pending."""

    shape: tuple[Int, ...]
    strides: tuple[Int, ...]
    offset: Int | None
    dtype: torch.dtype
    device: str
    lazy: bool


POSITION = TensorType((), (), 0, torch.int64, "cpu", False)  # of an integer that programs take as an operand

NUMBER = TensorType((), (), 0, torch.float64, "cpu", False)  # of a float that depends on symbolic sizes: an operand, too


class UnknownSize(Exception):
    """An extent that depends on values."""


def number(x: Any, sizes: Sizes) -> Any:
    """The number that a symbolic one has for these sizes. Raises UnknownSize where they do not tell it, and NotSymbolic where there is no
    polynomial in symbolic sizes that equals it."""
    if not isinstance(x, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return x
    if isinstance(sizes, SymbolicSizes):
        return _symbolic(x, sizes)
    value = x.node.expr.subs(sizes)
    if not value.is_number and value not in (True, False):
        raise UnknownSize(str(x))
    if isinstance(x, torch.SymInt):
        return int(value)
    return float(value) if isinstance(x, torch.SymFloat) else bool(value)


def _symbolic(x: Any, sizes: SymbolicSizes) -> Int:
    if not isinstance(x, torch.SymInt):
        raise NotSymbolic(f"the number {x}")
    try:
        return sizes.integer(x.node.expr)
    except KeyError:
        raise UnknownSize(str(x)) from None


def _extent(n: Any, sizes: Sizes) -> Int:
    found: Int = number(n, sizes)
    if isinstance(found, Expr):
        sizes.assume(found - MIN_SIZE)  # type: ignore[attr-defined]
    return found


def symbols_of(x: Any) -> Symbols:
    """The symbols that a number depends on."""
    return frozenset(x.node.expr.free_symbols) if isinstance(x, (torch.SymInt, torch.SymFloat, torch.SymBool)) else frozenset()


def typed(val: Any, sizes: Sizes, positions: Symbols = frozenset()) -> Any:
    """The type of ``node.meta["val"]``: a TensorType for a tensor and for an integer that depends on ``positions``, a number for other numbers, lists
    of these for lists. None for what segments do not take: tensors without strides, and truths that depend on symbolic sizes."""
    if isinstance(val, torch.Tensor):
        shape = tuple(_extent(n, sizes) for n in val.shape)
        if val.layout is not torch.strided:
            return None
        strides = tuple(number(n, sizes) for n in val.stride())
        offset = val.storage_offset()
        known = None if symbols_of(offset) & positions else number(offset, sizes)
        return TensorType(shape, strides, known, val.dtype, str(cuda.device_of(val)), val.is_conj() or val.is_neg())
    if isinstance(val, (list, tuple)):
        return [typed(v, sizes, positions) for v in val]
    if isinstance(sizes, SymbolicSizes) and isinstance(val, (torch.SymFloat, torch.SymBool)):
        return NUMBER if isinstance(val, torch.SymFloat) else None
    return POSITION if symbols_of(val) & positions else number(val, sizes)


def sizes_of(placeholders: Sequence[fx.Node], args: Sequence[Any]) -> dict[Any, Any]:
    """The values of the symbols in one call. A stride says what no extent does: strides of tangents may be others than the graph promises."""
    numbers: dict[Any, Any] = {}
    extents: dict[Any, Any] = {}
    strides: dict[Any, Any] = {}

    def note(found: dict[Any, Any], symbolic: Any, value: Any) -> None:
        if isinstance(symbolic, (torch.SymInt, torch.SymFloat)) and symbolic.node.expr.is_Symbol:
            found.setdefault(symbolic.node.expr, value)

    for node, x in zip(placeholders, args, strict=True):
        val = node.meta.get("val")
        if x is None:  # in a call a token is nothing
            continue
        if isinstance(val, torch.Tensor):
            for symbolic, value in zip(val.shape, x.shape, strict=True):
                note(extents, symbolic, value)
            for symbolic, value in zip(val.stride(), x.stride(), strict=True):
                note(strides, symbolic, value)
        else:
            note(numbers, val, x)
    return strides | extents | numbers


def is_dynamic(graph: fx.Graph) -> bool:
    """Whether sizes in the graph are symbols."""
    for node in graph.find_nodes(op="placeholder"):
        val = node.meta.get("val")
        if isinstance(val, (torch.SymInt, torch.SymFloat)):
            return True
        if isinstance(val, torch.Tensor) and any(isinstance(n, torch.SymInt) for n in (*val.shape, *val.stride())):
            return True
    return False
