"""Special functions, under the names of ``scipy.special``; also called ``hologram.numpy.special``. See docs/special.md.

Every function takes Tensors, NumPy arrays and numbers that broadcast, computes integers in the default float type, has derivatives, and works
under ``jit``, ``vmap`` and in loops. Tables of accuracy stand in docs/special.md.
"""

from typing import TYPE_CHECKING

from hologram.special import (
    basic,
    bessel,
    bessel_orders,
    combinatorial,
    elliptic,
    exponential_integrals,
    faddeeva,
    gamma_functions,
    hypergeometric,
    incomplete_beta,
    incomplete_gamma,
    integrals,
    inverse_beta,
    inverse_gamma,
    spherical_harmonics,
    transformations,
)

_GAMMA = (gamma_functions, incomplete_gamma, inverse_gamma, incomplete_beta, inverse_beta)
_INTEGRALS = (exponential_integrals, integrals, elliptic, faddeeva)
_MODULES = (basic, *_GAMMA, *_INTEGRALS, bessel, bessel_orders, hypergeometric, spherical_harmonics, combinatorial, transformations)
globals().update({name: getattr(module, name) for module in _MODULES for name in module.__all__})
__all__ = sorted(name for module in _MODULES for name in module.__all__)

if TYPE_CHECKING:
    from hologram.special.basic import *  # noqa: F403
    from hologram.special.bessel import *  # noqa: F403
    from hologram.special.bessel_orders import *  # noqa: F403
    from hologram.special.combinatorial import *  # noqa: F403
    from hologram.special.elliptic import *  # noqa: F403
    from hologram.special.exponential_integrals import *  # noqa: F403
    from hologram.special.faddeeva import *  # noqa: F403
    from hologram.special.gamma_functions import *  # noqa: F403
    from hologram.special.hypergeometric import *  # noqa: F403
    from hologram.special.incomplete_beta import *  # noqa: F403
    from hologram.special.incomplete_gamma import *  # noqa: F403
    from hologram.special.integrals import *  # noqa: F403
    from hologram.special.inverse_beta import *  # noqa: F403
    from hologram.special.inverse_gamma import *  # noqa: F403
    from hologram.special.spherical_harmonics import *  # noqa: F403
    from hologram.special.transformations import *  # noqa: F403
