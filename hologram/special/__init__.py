"""Special functions, under the names of ``scipy.special``; also called ``hologram.numpy.special``. See docs/special.md.

Every function takes Tensors, NumPy arrays and numbers that broadcast, computes integers in the default float type, has derivatives, and works
under ``jit``, ``vmap`` and in loops. Tables of accuracy stand in docs/special.md.
"""

from hologram.special import basic, exponential_integrals, gamma_functions, incomplete_beta, incomplete_gamma, transformations

_MODULES = (basic, gamma_functions, incomplete_gamma, incomplete_beta, exponential_integrals, transformations)
globals().update({name: getattr(module, name) for module in _MODULES for name in module.__all__})
__all__ = sorted(name for module in _MODULES for name in module.__all__)
