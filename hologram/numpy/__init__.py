"""The NumPy-like namespace: the Python Array API standard, 2024.12, and the NumPy names people expect beside it.

Every function takes Tensors, NumPy arrays and Python scalars, and gives Tensors.
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
