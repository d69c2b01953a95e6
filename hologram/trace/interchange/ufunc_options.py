"""``dtype`` of NumPy's ufuncs, ``np.add(x, y, dtype="float64")``: the type in which a ufunc of Tensors computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from hologram.errors import DTypeError
from hologram.support.user_lines import located
from hologram.trace.tensor import Tensor, namespace


def with_dtype(of: np.ufunc, inputs: tuple[Any, ...], options: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The inputs in the type that ``dtype`` names, and the other options. Nothing changes where ``of`` has no loop of that type alone.

    Raises DTypeError where an input cannot be cast within its kind, as NumPy's default casting has it.
    """
    if options.get("dtype") is None:
        return inputs, {k: v for k, v in options.items() if k != "dtype"}
    dtype = np.dtype(options["dtype"])
    if of.nout != 1 or f"{dtype.char * of.nin}->{dtype.char}" not in of.types:
        return inputs, options
    for x in inputs:
        if hasattr(x, "dtype") and not np.can_cast(x.dtype, dtype, "same_kind"):
            raise located(DTypeError(f"numpy.{of.__name__} with dtype={dtype} takes no {x.dtype}: cast it with astype first"))
    hnp = namespace()
    arrays = [hnp.astype(x if type(x) is Tensor else hnp.asarray(x), dtype) for x in inputs]
    return tuple(arrays), {k: v for k, v in options.items() if k != "dtype"}
