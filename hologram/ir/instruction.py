"""Scalar instructions, of which kernels and decompositions of ops consist."""

from __future__ import annotations

from typing import Any

from hologram.dtypes import DType
from hologram.ir.op import Op
from hologram.ir.symbolic import Int


class Ins:
    """``name = op(args; attrs)``: one value of type ``dtype``. ``op`` is an op definition or a name of ``KERNEL_OPS``.

    attrs: load ``(buffer, index)`` with an optional mask as its one argument; const ``(dtype name, bits)``; index
    ``(expression,)``; inside ``(expression, size)``; scan ``(accumulator,)``; else the op's own.

    ``name``, if not empty: what index expressions call the value, unlike any other in the kernel. ``extent``: the value is known to be an index
    from 0 up to ``extent`` - 1; None: any integer. ``assumed``: by its algorithm more is known of it than that, such as where a search ends, so
    that not every access through it can be proved to be inside of its buffer.
    """

    __slots__ = ("op", "args", "attrs", "dtype", "name", "extent", "assumed", "level", "stage")
    level: int
    stage: int

    def __init__(self, op: Op | str, args: tuple[Any, ...], attrs: tuple[Any, ...], dtype: DType) -> None:
        self.op, self.args, self.attrs, self.dtype = op, args, attrs, dtype
        self.name = ""
        self.extent: Int | None = None
        self.assumed = False

    @property
    def opname(self) -> str:
        return self.op if isinstance(self.op, str) else self.op.name
