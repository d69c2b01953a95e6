"""Marker ops of transforms and placement: they mean nothing to the value, which is their first input's, and all but one are gone before a kernel is
made.

- ``mark``: an input of a derivative level, or a symbolic tangent. ``token`` belongs to the level, so that levels inside one another are never
  confused.
- ``stop``: has no derivative.
- ``custom``: the first input is a value, the others the arguments of the function it was computed from; ``rule`` is that function's own
  derivative, of whose results the value is number ``index``.
- ``mapped``: the first input is a value, the others the arguments it was computed from; ``rule`` says what the function is on stacks of these, where
  the value is never asked for.
- ``pullback``: the derivative of such a function that is known in reverse only, as a linear map: inputs ``saved`` values, the arguments and their
  tangents. It stands for the tangents of all results, of which ``part`` picks one.
- ``example``: stands, under ``vmap``, for one example of a stack; it has no value at all.
- ``place``: where the value is wanted: on ``device``, where what is computed from it is then computed too; "" lets it stay where it is, and binds
  nothing that is computed from it.
- ``barrier``: what is computed from it is not merged with what is computed from its first input, and waits for the second. It stays in the graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DifferentiationError, TracedValueError
from hologram.ir.op import Op, Shape, register
from hologram.primitives.scalar.elementwise import broadcast_shape, rounded


def _infer_pullback(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    return (), dtypes.default_float


def _infer_part(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    _, results = attrs
    shape, dtype = results[attrs[0]]
    return shape, dtypes.of(dtype)


def _infer_first(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    return inputs[0].shape, inputs[0].dtype


def _infer_example(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    _, shape, dtype = attrs
    return shape, dtypes.of(dtype)


def _infer_barrier(inputs: tuple[Any, ...], attrs: tuple[Any, ...]) -> tuple[Shape, DType]:
    return broadcast_shape("barrier", inputs), inputs[0].dtype


def _spread_first(x: Any, after: Any) -> Any:
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, after.shape))


def _first(x: Any, *_: Any) -> Any:
    return x


def _no_value(*_: Any) -> Any:
    raise TracedValueError("one example of a vmap has no value of its own")


def _reverse_only(*_: Any) -> Any:
    raise DifferentiationError("a derivative that is known in reverse mode only has no forward value")


def _define(name: str, arity: int | None, attrs: tuple[str, ...], infer: Any = _infer_first, reference: Any = _first) -> Op:
    return register(Op(name, "mark", arity, infer, reference, attrs=attrs, kinds="biufc", cost=0))


mark = _define("mark", 1, ("token",))
stop = _define("stop", 1, ())
custom = _define("custom", None, ("rule", "index"))
mapped = _define("mapped", None, ("rule", "index"))
pullback = _define("pullback", None, ("rule", "saved", "results"), _infer_pullback, _reverse_only)
part = _define("part", 1, ("index", "results"), _infer_part, _reverse_only)
place = _define("place", 1, ("device",))
example = register(Op("example", "leaf", 0, _infer_example, _no_value, attrs=("token", "shape", "dtype"), kinds="biufc", cost=0))
barrier = register(Op("barrier", "elementwise", 2, _infer_barrier, rounded(_spread_first), lower=_first, kinds="biufc", cost=0))
