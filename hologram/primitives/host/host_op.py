"""Host ops: operations that a routine outside of kernels runs, as a step of its own in a graph's one call.

A host op has one or more results, which ``project`` nodes pick. It is never fused with anything, nor run twice. Backends may know a native routine
for it; otherwise its ``reference`` runs, called from native code, with the GIL.

``callback(call)``: a user's function, see :func:`hologram.pure_callback`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hologram.dtypes import DType
from hologram.ir.op import Op, Shape, register

if TYPE_CHECKING:
    from hologram.ir.node import Node

Type = tuple[Shape, DType]


def define_host_op(
    name: str,
    arity: int | None,
    results: Callable[..., list[Type]],
    reference: Any,
    *attrs: str,
    kinds: str = "fc",
    cost: int = 1,
    sizes: tuple[str, ...] = (),
) -> Op:
    """Defines a host op. ``results(inputs, attrs)`` raises ShapeError or DTypeError; ``reference`` gives a list of arrays of these types;
    ``sizes`` are names of attributes that hold extents."""

    def infer(inputs: tuple[Node, ...], given: tuple[Any, ...]) -> Type:
        return results(inputs, given)[0]

    return register(Op(name, "host", arity, infer, reference, attrs=attrs, kinds=kinds, cost=cost, results=results, sizes=sizes))


class Call(ABC):
    """A function of NumPy arrays, and the types of its results. Equal only to itself."""

    __slots__ = ("types", "__weakref__")

    def __init__(self, types: Sequence[Type]) -> None:
        self.types = list(types)

    @abstractmethod
    def run(self, arrays: Sequence[np.ndarray], lead: tuple[int, ...] = ()) -> Sequence[np.ndarray]:
        """The results; ``lead``: arrays and results are stacks with these axes in front."""

    def __str__(self) -> str:
        return f"{type(self).__name__}@{id(self):x}"


def _callback_results(inputs: tuple[Node, ...], attrs: tuple[Any, ...]) -> list[Type]:
    return list(attrs[0].types)


def _callback(*args: Any) -> Sequence[np.ndarray]:
    *arrays, call = args
    return call.run([a.copy() for a in arrays])  # what the function keeps does not change under it


callback = define_host_op("callback", None, _callback_results, _callback, "call", kinds="biufc")
