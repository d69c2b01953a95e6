"""Names of ``jax.scipy.signal``: convolutions, correlations, spectra, and windows by name. See docs/scipy.md."""

from hologram.scipy.signal import convolution, spectral, windows

_MODULES = (convolution, spectral, windows)
globals().update({name: getattr(module, name) for module in _MODULES for name in module.__all__})
__all__ = sorted(name for module in _MODULES for name in module.__all__)
