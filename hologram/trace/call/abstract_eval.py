"""Arrays without their elements: shape and type in the place of an argument or a result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hologram.errors import ShapeError
from hologram.support.user_lines import located
from hologram.trace import tree
from hologram.trace.call.signature import Call, Signature, name_of
from hologram.trace.call.trace_call import trace_call
from hologram.trace.checks import as_function, shape_of
from hologram.trace.convert import element_type

__all__ = ["ShapeDtypeStruct", "eval_shape", "flatten_described_call"]


class ShapeDtypeStruct:
    """Shape and element type of an array, without the array: it may stand for one in :func:`eval_shape` and :func:`export`.

    ``sharding`` says how it is divided, for :func:`hologram.distributed.predict`.

    Raises ShapeError, ArgumentError and DTypeError for what describes no array.

    >>> hg.ShapeDtypeStruct((2, 3), "float32")
    ShapeDtypeStruct(shape=(2, 3), dtype=float32)
    """

    __slots__ = ("dtype", "shape", "sharding")

    def __init__(self, shape: Any, dtype: Any, *, sharding: Any = None) -> None:
        self.shape, self.dtype, self.sharding = shape_of(shape, "ShapeDtypeStruct"), element_type(dtype).np, sharding

    def __repr__(self) -> str:
        over = "" if self.sharding is None else f", sharding={self.sharding}"
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype}{over})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> Any:
        return self.shape, self.dtype, self.sharding


def flatten_described_call(signature: Signature, args: tuple[Any, ...], options: dict[str, Any]) -> Call:
    """The call with these arguments, arrays of no memory standing for descriptions. Raises ShapeError for extents that are symbols."""

    def of(x: Any) -> Any:
        if not isinstance(x, ShapeDtypeStruct):
            return x
        shape = [n for n in x.shape if isinstance(n, int)]
        if len(shape) < len(x.shape):
            raise located(ShapeError(f"{x} stands for no array: its extents must be integers"))
        return np.broadcast_to(np.zeros((), x.dtype), shape)

    given, named = tree.map(of, (args, options))
    return signature.flatten_call(given, named)


def eval_shape(f: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
    """Shapes and element types of the results of ``f(*args, **options)``, without computing anything.

    The structure of the result with a :class:`ShapeDtypeStruct` in the place of every array. Only the arguments' types count, and a
    :class:`ShapeDtypeStruct` may stand for an array. Raises ArgumentError for what is no function, and what ``f`` raises.

    >>> hg.eval_shape(hnp.matmul, hg.ShapeDtypeStruct((1000, 20), "float32"), np.ones((20, 3), np.float32))
    ShapeDtypeStruct(shape=(1000, 3), dtype=float32)
    """
    signature = Signature(as_function(f, "eval_shape"), (), (), False)
    traced = trace_call(name_of(f), f, flatten_described_call(signature, args, options))
    return tree.unflatten(traced.out_tree, [ShapeDtypeStruct(x.shape, x.dtype) for x in traced.graph.outputs[: traced.out_tree.leaves]])
