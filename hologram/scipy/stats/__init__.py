"""Names of ``jax.scipy.stats`` and ``scipy.stats``: distributions, and what is computed of samples. See docs/scipy.md.

A distribution is an object whose methods take parameters by position or by name, as SciPy's: ``norm.logpdf(x, loc=0, scale=1)``. Sampling takes a
key: ``norm.rvs(size=3, random_state=hg.random.key(0))``.
"""

from hologram.scipy.stats import continuous, discrete, gamma_families, multivariate, samples

_MODULES = (continuous, discrete, gamma_families, multivariate, samples)
globals().update({name: getattr(module, name) for module in _MODULES for name in module.__all__})
__all__ = sorted(name for module in _MODULES for name in module.__all__)
