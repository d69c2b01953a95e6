"""The NumPy-like namespace: the Python Array API standard, 2024.12, and the NumPy names people expect beside it.

Every function takes Tensors, NumPy arrays, nested lists and Python scalars, and gives Tensors. What holds for all is not said by each:

- Types: floats without a ``dtype`` are float32, integers int64. Arrays promote by the Array API's table, an integer with a float to the float's
  type; a Python scalar is weak, and takes the type of an array of its kind (:func:`result_type`).
- Views: what is called a view shares memory with its argument where NumPy's would: an assignment to elements of one changes the other.
- Errors (:mod:`hologram.errors`): AxisOutOfRange for an axis that is not there, ShapeError for shapes that do not broadcast, DTypeError for types
  that are not taken, ArgumentError for what is no array, TracedValueError where a value is needed that is being traced.
- Examples assume ``import hologram.numpy as hnp`` and ``import numpy as np``.
"""

import importlib
from typing import Any

from hologram.numpy import (
    application,
    assembly,
    calculus,
    complexes,
    creation,
    elementwise,
    floats,
    grids,
    indexing,
    inspection,
    integers,
    linear,
    manipulation,
    polynomials,
    questions,
    reductions,
    sorting,
    statistics,
    types,
    updates,
    windows,
)
from hologram.trace.tensor import Tensor

_MODULES = (
    *(types, elementwise, complexes, creation, manipulation, indexing, updates, reductions, linear, sorting, statistics, calculus, assembly),
    *(inspection, application, floats, grids, integers, polynomials, questions, windows),
)
_NAMES = elementwise.FUNCTIONS | {name: getattr(module, name) for module in _MODULES for name in module.__all__}
# these would hide, inside their own modules, what the modules need themselves
_NAMES["array"] = _NAMES.pop("array_")
_NAMES["broadcast_shapes"] = _NAMES.pop("broadcast_shapes_")
globals().update(_NAMES)

ndarray = Tensor
__array_api_version__ = "2024.12"
__all__ = [*sorted(_NAMES), "ndarray"]


_EXTENSIONS = ("fft", "linalg")  # packages of their own, imported when they are first used


def __getattr__(name: str) -> Any:
    if name in _EXTENSIONS:
        return importlib.import_module(f"hologram.{name}")
    raise AttributeError(f"hologram.numpy has no {name!r}")
