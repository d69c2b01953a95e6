"""Initial parameters: functions of a key of ``hologram.random``, a shape and a type.

Weights have their inputs along axis -2 and their outputs along axis -1; the axes before them (a convolution's window) multiply both.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from hologram import dtypes, random
from hologram import numpy as hnp
from hologram.errors import ArgumentError, ShapeError
from hologram.support.user_lines import located
from hologram.trace.convert import element_type
from hologram.trace.tensor import Tensor

__all__ = [
    "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal",
    "ones", "uniform", "variance_scaling", "xavier_normal", "xavier_uniform", "zeros",
]  # fmt: skip

# the standard deviation of a normal distribution cut at -2 and 2
_CUT_DEVIATION = 0.87962566103423978


def _drawn(draw: Callable[[Any], Tensor], dtype: Any) -> Tensor:
    """Numbers drawn in the type that ``dtype`` is computed in, and rounded once."""
    to = element_type(dtype)
    return hnp.astype(draw(dtypes.compute_type(to).np), to)


def zeros(key: Any, shape: Sequence[int], dtype: Any = dtypes.float32) -> Tensor:
    """Zeros; ``key`` is not used."""
    return hnp.zeros(tuple(shape), dtype=dtype)


def ones(key: Any, shape: Sequence[int], dtype: Any = dtypes.float32) -> Tensor:
    """Ones; ``key`` is not used."""
    return hnp.ones(tuple(shape), dtype=dtype)


def normal(key: Any, shape: Sequence[int], dtype: Any = dtypes.float32, *, stddev: float = 0.01) -> Tensor:
    """Normally distributed around 0."""
    return _drawn(lambda work: stddev * random.normal(key, tuple(shape), dtype=work), dtype)


def uniform(key: Any, shape: Sequence[int], dtype: Any = dtypes.float32, *, limit: float = 0.01) -> Tensor:
    """Uniformly distributed from ``-limit`` to ``limit``."""
    return _drawn(lambda work: limit * (2 * random.uniform(key, tuple(shape), dtype=work) - 1), dtype)


def variance_scaling(
    key: Any, shape: Sequence[int], dtype: Any = dtypes.float32, *, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal"
) -> Tensor:
    """Of variance ``scale / n``, n being the number of inputs, of outputs, or their mean.

    ``mode``: fan_in, fan_out, fan_avg. ``distribution``: uniform, normal, or truncated_normal (cut at two standard deviations of what is cut).
    Raises ShapeError for fewer than two axes.
    """
    if len(shape) < 2:
        raise located(ShapeError(f"variance_scaling: weights have an axis of inputs and one of outputs, not the shape {list(shape)}"))
    window = math.prod(shape[:-2])
    inputs, outputs = window * shape[-2], window * shape[-1]
    counts = {"fan_in": inputs, "fan_out": outputs, "fan_avg": (inputs + outputs) / 2}
    if mode not in counts:
        raise located(ArgumentError(f"variance_scaling: mode is one of {', '.join(counts)}, not {mode!r}"))
    deviation = math.sqrt(scale / max(counts[mode], 1))
    if distribution == "uniform":
        return uniform(key, shape, dtype, limit=math.sqrt(3) * deviation)
    if distribution == "normal":
        return normal(key, shape, dtype, stddev=deviation)
    if distribution == "truncated_normal":
        size = deviation / _CUT_DEVIATION
        return _drawn(lambda work: size * random.truncated_normal(key, -2.0, 2.0, tuple(shape), dtype=work), dtype)
    raise located(ArgumentError(f"variance_scaling: distribution is one of uniform, normal, truncated_normal, not {distribution!r}"))


# (key, shape, dtype=float32) each. Glorot and Bengio 2010, He et al. 2015, LeCun et al. 1998
glorot_uniform = functools.partial(variance_scaling, mode="fan_avg", distribution="uniform")
glorot_normal = functools.partial(variance_scaling, mode="fan_avg")
he_uniform = functools.partial(variance_scaling, scale=2.0, distribution="uniform")
he_normal = functools.partial(variance_scaling, scale=2.0)
lecun_uniform = functools.partial(variance_scaling, distribution="uniform")
lecun_normal = variance_scaling
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal
