"""Tensors as arguments of Numba's functions: read-only arrays in C order, over the memory of ``Tensor.numpy()``.

Numba calls :func:`when_needed` by an entry point before it compiles for the first time. Tensors may come later: then they call it.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

_registered: list[bool] = []


def when_needed() -> None:
    """Registers the class of Tensors, once, where both it and Numba are loaded; neither loads the other."""
    tensors = sys.modules.get("hologram.trace.tensor")
    if "numba.extending" in sys.modules and hasattr(tensors, "Tensor") and not _registered:
        _registered.append(True)
        _register(tensors.Tensor)  # type: ignore[union-attr]


def in_c_order(x: Any) -> Any:
    """The values of a Tensor as a C-contiguous array, which compiled code reads."""
    return np.ascontiguousarray(x.numpy()).reshape(x.shape)


def _register(tensor: type) -> None:
    from numba import typeof, types
    from numba.core import cgutils
    from numba.extending import models, register_model, typeof_impl, unbox

    class TensorType(types.Array):
        """The type of an argument that is a Tensor: an array that only its unboxing tells from others."""

    register_model(TensorType)(models.ArrayModel)

    @typeof_impl.register(tensor)
    def _type_of(x: Any, context: Any) -> Any:
        array = typeof(in_c_order(x))
        name = f"Tensor({array.dtype}, {array.ndim}d)"
        return TensorType(array.dtype, array.ndim, "C", readonly=True, name=name)

    @unbox(TensorType)
    def _unbox(of: Any, obj: Any, c: Any) -> Any:
        function = c.pyapi.unserialize(c.pyapi.serialize_object(in_c_order))
        array = c.pyapi.call_function_objargs(function, (obj,))
        c.pyapi.decref(function)
        failed = cgutils.is_null(c.builder, array)
        native = c.pyapi.to_native_value(of.copy(), c.builder.select(failed, obj, array))  # which refuses what is no array
        c.pyapi.decref(array)
        return native
