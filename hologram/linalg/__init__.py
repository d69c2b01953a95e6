"""Linear algebra: the Array API standard's extension, 2025.12, and what JAX and NumPy have beside it. See docs/linalg.md.

Matrices stand in the last two axes of stacks. Factorizations run in LAPACK, in float32, float64, complex64 and complex128; integers become float32.
"""

import numpy

from hologram.linalg import decompositions, derivatives, norms, products, systems
from hologram.numpy.numpy_keywords import with_numpy_names

_MODULES = (decompositions, norms, products, systems)
globals().update(with_numpy_names({name: getattr(module, name) for module in _MODULES for name in module.__all__}, numpy.linalg))
__all__ = ["derivatives", *sorted(name for module in _MODULES for name in module.__all__)]
