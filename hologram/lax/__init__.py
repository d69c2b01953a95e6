"""Names of ``jax.lax``: elementwise functions, shapes, reductions, windows, convolutions, gather and scatter, loops and branches, solvers,
collectives.

What has the same meaning in ``hologram.numpy``, ``hologram.special`` and ``hologram.control`` is the same function here: so operands broadcast and
promote, where JAX raises.
"""

from typing import Any

from hologram import numpy as hnp
from hologram import special
from hologram.control import associative_scan, cond, fori_loop, map, scan, switch, while_loop
from hologram.distributed.collectives import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    pbroadcast,
    pmax,
    pmean,
    pmin,
    ppermute,
    psum,
    psum_scatter,
)
from hologram.distributed.shardings import with_sharding_constraint
from hologram.lax import convolution, elementwise, indexing, linalg, products, reductions, shapes, solvers, sorting, transforms, windows
from hologram.numpy.indexing.dynamic import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
)
from hologram.transform.api import stop_gradient

_MODULES = (convolution, elementwise, indexing, products, reductions, shapes, solvers, sorting, transforms, windows)
_OF_NUMPY = (
    "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor broadcast_shapes cbrt ceil cos cosh "
    "empty exp expm1 floor imag log log1p nextafter pow real reciprocal rsqrt sin sinh sqrt square stack tan tanh unstack"
).split()
_RENAMED = {
    "eq": "equal", "ge": "greater_equal", "gt": "greater", "is_finite": "isfinite", "le": "less_equal", "logistic": "sigmoid", "lt": "less",
    "max": "maximum", "min": "minimum", "mul": "multiply", "ne": "not_equal", "neg": "negative", "shift_left": "left_shift", "sub": "subtract",
}  # fmt: skip
_SPECIAL = {
    "bessel_i0e": "i0e", "bessel_i1e": "i1e", "betainc": "betainc", "digamma": "digamma", "erf": "erf", "erf_inv": "erfinv", "erfc": "erfc",
    "igamma": "gammainc", "igammac": "gammaincc", "lgamma": "gammaln", "polygamma": "polygamma", "zeta": "zeta",
}  # fmt: skip
_NAMES: dict[str, Any] = {name: getattr(module, name) for module in _MODULES for name in module.__all__}
_NAMES |= {name: getattr(hnp, name) for name in _OF_NUMPY} | {name: getattr(hnp, of) for name, of in _RENAMED.items()}
_NAMES |= {name: getattr(special, of) for name, of in _SPECIAL.items()}
globals().update(_NAMES)

__all__ = [
    "all_gather", "all_to_all", "associative_scan", "axis_index", "axis_size", "cond", "dynamic_index_in_dim", "dynamic_slice",
    "dynamic_slice_in_dim", "dynamic_update_index_in_dim", "dynamic_update_slice", "dynamic_update_slice_in_dim", "fori_loop", "linalg", "map",
    "pbroadcast", "pmax", "pmean", "pmin", "ppermute", "psum", "psum_scatter", "scan", "stop_gradient", "switch", "while_loop",
    "with_sharding_constraint",
]  # fmt: skip
__all__ += sorted(_NAMES)


def __getattr__(name: str) -> Any:  # for type checkers: the names above are set from tables
    raise AttributeError(f"module 'hologram.lax' has no attribute {name!r}")
