"""Discrete Fourier transforms: the Array API standard's extension, 2025.12, and NumPy's names for two axes. See docs/linalg.md.

Transforms are computed in the precision of their argument: float32 gives complex64, float64 complex128; integers become float32. On CPUs they run
natively, on all threads; those of ``exact`` programs have the bits of NumPy's (docs/internals/fft.md).
"""

import numpy

from hologram.fft import derivatives, frequencies, transforms
from hologram.numpy.numpy_keywords import with_numpy_names

_MODULES = (frequencies, transforms)
globals().update(with_numpy_names({name: getattr(module, name) for module in _MODULES for name in module.__all__}, numpy.fft))
__all__ = ["derivatives", *sorted(name for module in _MODULES for name in module.__all__)]
