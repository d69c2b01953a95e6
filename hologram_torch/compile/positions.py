"""Positions: integer arguments of a graph that say where tensors are read and written, and not how large they are.

Dynamo makes a symbol of an integer that changes from call to call. A program is compiled for each size, and takes positions as operands: so a loop
that writes to the next place of a cache finds the program of the step before.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from hologram import numpy as hnp
from hologram.trace.tensor import Tensor
from hologram_torch.aten.types import cast, tensor_of, type_of
from hologram_torch.compile.fx_types import Symbols, TensorType, symbols_of

aten = torch.ops.aten
NUMBERS = (operator.add, operator.sub, operator.mul, operator.neg)  # what a position may become


class NoPosition(Exception):
    """Why the value of a position has to be known when the program is compiled."""


def position_symbols(graph: fx.Graph) -> Symbols:
    """The symbols of integer arguments on which no shape and no strides in the graph depend, nor whether something is true."""
    found: set[Any] = set()
    for node in graph.find_nodes(op="placeholder"):
        val = node.meta.get("val")
        if isinstance(val, torch.SymInt) and val.node.expr.is_Symbol:
            found.add(val.node.expr)
    for node in graph.nodes:
        vals = node.meta.get("val")
        for val in vals if isinstance(vals, (list, tuple)) else (vals,):
            if isinstance(val, torch.Tensor):
                for n in (*val.shape, *(val.stride() if val.layout is torch.strided else ())):
                    found -= symbols_of(n)
            elif isinstance(val, (torch.SymFloat, torch.SymBool)):
                found -= symbols_of(val)
    return frozenset(found)


def _from_start(start: Any, n: int) -> Any:
    """A position along an axis of ``n`` elements, of which negative ones count from its end."""
    if type(start) is Tensor:
        return hnp.where(start < 0, start + n, start)
    return 0 if start is None else start + n * (start < 0)


def _require_step(step: int) -> None:
    if step != 1:
        raise NoPosition("a slice that moves has steps")


def _slice(of: TensorType, x: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    _require_step(step)
    return hnp.dynamic_slice_in_dim(x, _from_start(start, x.shape[dim]), of.shape[dim], axis=dim)


def _slice_scatter(of: TensorType, x: Tensor, source: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    _require_step(step)
    return hnp.dynamic_update_slice_in_dim(x, cast(source, type_of(x)), _from_start(start, x.shape[dim]), axis=dim)


def _select(of: TensorType, x: Tensor, dim: int, index: Any) -> Tensor:
    return hnp.dynamic_index_in_dim(x, _from_start(index, x.shape[dim]), axis=dim, keepdims=False)


def _select_scatter(of: TensorType, x: Tensor, source: Tensor, dim: int, index: Any) -> Tensor:
    return hnp.dynamic_update_index_in_dim(x, hnp.expand_dims(cast(source, type_of(x)), axis=dim), _from_start(index, x.shape[dim]), axis=dim)


def _arange(of: TensorType, start: Any, end: Any, step: int = 1, **options: Any) -> Tensor:
    if not isinstance(step, int):
        raise NoPosition("the step of a range")
    return cast(tensor_of(start, torch.int64) + hnp.arange(of.shape[0]) * step, of.dtype)


# from the type of the result and the arguments to the result; the table of ATen ops has rows for starts that are known
FORMS: dict[Any, Callable[..., Tensor]] = {
    aten.slice.Tensor: _slice,
    aten.slice_scatter.default: _slice_scatter,
    aten.select.int: _select,
    aten.select_scatter.default: _select_scatter,
    aten.arange.start: _arange,
    aten.arange.start_step: _arange,
}
