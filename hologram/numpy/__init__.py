"""The NumPy-like namespace: the Python Array API standard, 2025.12, and the NumPy names people expect beside it.

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

import numpy

from hologram.numpy import complexes, creation, files
from hologram.numpy.along_axes import counting, positions, reductions, searching, segments, sets, sorting
from hologram.numpy.analysis import application, calculus, polynomials, statistics, windows
from hologram.numpy.arrangement import assembly, grids, lines, manipulation, padding
from hologram.numpy.elementwise import composed, functions
from hologram.numpy.indexing import dynamic, index_arrays, read, updates
from hologram.numpy.introspection import inspection, questions, types
from hologram.numpy.numbers import floats, integers
from hologram.numpy.numpy_keywords import with_numpy_keywords, with_numpy_names
from hologram.numpy.products import linear
from hologram.numpy.shaping import joining, shapes
from hologram.numpy.ufuncs.catalogue import ufuncs
from hologram.numpy.ufuncs.ufunc import ufunc
from hologram.support.wording import did_you_mean
from hologram.trace.tensor import Tensor

_MODULES = (
    *(types, functions, composed, complexes, creation, shapes, joining, manipulation, padding, assembly, lines, read, updates, dynamic, index_arrays),
    *(reductions, linear, sorting, searching, positions, sets, counting, statistics, calculus, inspection, application, files, floats, grids),
    *(integers, polynomials, questions, segments, windows),
)
_NAMES = functions.FUNCTIONS | {name: getattr(module, name) for module in _MODULES for name in module.__all__}
# these would hide, inside their own modules, what the modules need themselves
_NAMES["array"] = _NAMES.pop("array_")
_NAMES["broadcast_shapes"] = _NAMES.pop("broadcast_shapes_")
_NAMES = with_numpy_names(with_numpy_keywords(_NAMES), numpy)
_NAMES |= ufuncs(_NAMES)
_NAMES["ufunc"] = ufunc
globals().update(_NAMES)

ndarray = Tensor
__array_api_version__ = "2025.12"

# Names whose code stands above this package; they are imported when they are first used. None is for the module itself.
_ABOVE = {
    "fft": ("hologram.fft", None),
    "lib": ("hologram.numpy.lib", None),
    "linalg": ("hologram.linalg", None),
    "special": ("hologram.special", None),
    "polyfit": ("hologram.linalg.polynomial_fit", "polyfit"),
}
__all__ = sorted([*_NAMES, "ndarray", "polyfit"])


def __getattr__(name: str) -> Any:
    if name not in _ABOVE:
        raise AttributeError(f"hologram.numpy has no {name!r}{did_you_mean(name, __dir__())}")
    place, attribute = _ABOVE[name]
    module = importlib.import_module(place)
    return getattr(module, attribute) if attribute else module


def __dir__() -> list[str]:
    return sorted({*globals(), *_ABOVE})
