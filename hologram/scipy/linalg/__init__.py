"""Names of ``jax.scipy.linalg`` and ``scipy.linalg``: factorizations, functions of matrices, matrices of a known structure. See docs/scipy.md."""

from hologram.scipy.linalg import factorizations, matrix_functions, special_matrices

_MODULES = (factorizations, matrix_functions, special_matrices)
globals().update({name: getattr(module, name) for module in _MODULES for name in module.__all__})
__all__ = sorted(name for module in _MODULES for name in module.__all__)
