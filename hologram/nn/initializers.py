"""Initial parameters: functions of a key of ``hologram.random``, a shape and a type.

Weights have their inputs along axis -2 and their outputs along axis -1; the axes before them (a convolution's window) multiply both.
"""

from __future__ import annotations

import inspect
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
    to = dtypes.default_float if dtype is None else element_type(dtype)
    return hnp.astype(draw(dtypes.compute_type(to).np), to)


def zeros(key: Any, shape: Sequence[int], dtype: Any = None) -> Tensor:
    """Zeros of ``shape``; ``key`` is not used.

    >>> hg.nn.initializers.zeros(hg.random.key(0), (2,))
    Tensor([0., 0.], dtype=float32)
    """
    return hnp.zeros(tuple(shape), dtype=dtype)


def ones(key: Any, shape: Sequence[int], dtype: Any = None) -> Tensor:
    """Ones of ``shape``; ``key`` is not used.

    >>> hg.nn.initializers.ones(hg.random.key(0), (2,))
    Tensor([1., 1.], dtype=float32)
    """
    return hnp.ones(tuple(shape), dtype=dtype)


def normal(key: Any, shape: Sequence[int], dtype: Any = None, *, stddev: float = 0.01) -> Tensor:
    """Normally distributed numbers of mean 0 and standard deviation ``stddev``; of the default float type unless ``dtype`` says otherwise.

    >>> hg.nn.initializers.normal(hg.random.key(0), (3,))
    Tensor([ 0.01622642,  0.02025265, -0.00433594], dtype=float32)
    """
    return _drawn(lambda work: stddev * random.normal(key, tuple(shape), dtype=work), dtype)


def uniform(key: Any, shape: Sequence[int], dtype: Any = None, *, limit: float = 0.01) -> Tensor:
    """Uniformly distributed numbers from ``-limit`` to ``limit``; of the default float type unless ``dtype`` says otherwise.

    >>> hg.nn.initializers.uniform(hg.random.key(0), (3,))
    Tensor([ 0.00895334,  0.0095716 , -0.00335417], dtype=float32)
    """
    return _drawn(lambda work: limit * (2 * random.uniform(key, tuple(shape), dtype=work) - 1), dtype)


def variance_scaling(
    key: Any, shape: Sequence[int], dtype: Any = None, *, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal"
) -> Tensor:
    """Random weights of variance ``scale / n``, n being the number of inputs, of outputs, or their mean.

    ``mode``: ``fan_in``, ``fan_out``, ``fan_avg``. ``distribution``: ``uniform``, ``normal``, or ``truncated_normal`` (cut at two standard
    deviations of what is cut). The default float type unless ``dtype`` says otherwise. Raises ShapeError for fewer than two axes, ArgumentError for
    another mode or distribution.

    >>> weights = hg.nn.initializers.variance_scaling(hg.random.key(0), (100, 50), scale=2.0)
    >>> hnp.round(weights.std(), 2)
    Tensor(0.14, dtype=float32)
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


def _scaled(name: str, about: str, deviation: str, **options: Any) -> Callable[..., Tensor]:
    """The function called ``name``: :func:`variance_scaling` with these options. ``deviation`` is that of weights of shape (100, 50)."""

    def initializer(key: Any, shape: Sequence[int], dtype: Any = None, **more: Any) -> Tensor:
        return variance_scaling(key, shape, dtype, **(options | more))

    signature = inspect.signature(variance_scaling)
    known = [p.replace(default=options.get(p.name, p.default)) for p in signature.parameters.values()]
    initializer.__signature__ = signature.replace(parameters=known)  # type: ignore[attr-defined]
    initializer.__name__ = initializer.__qualname__ = name
    initializer.__doc__ = f"""{about}

:func:`variance_scaling` with other defaults: ``(key, shape, dtype=None)``. Raises ShapeError for fewer than two axes.

>>> weights = hg.nn.initializers.{name}(hg.random.key(0), (100, 50))
>>> hnp.round(weights.std(), 2)
Tensor({deviation}, dtype=float32)
"""
    return initializer


_GLOROT = "weights of variance 2 / (inputs + outputs) (Glorot and Bengio 2010)"
_HE = "weights of variance 2 / inputs, for rectifiers (He et al. 2015)"
_LECUN = "weights of variance 1 / inputs (LeCun et al. 1998)"
glorot_uniform = _scaled("glorot_uniform", f"Uniform {_GLOROT}; also called ``xavier_uniform``.", "0.12", mode="fan_avg", distribution="uniform")
glorot_normal = _scaled("glorot_normal", f"Truncated normal {_GLOROT}; also called ``xavier_normal``.", "0.12", mode="fan_avg")
he_uniform = _scaled("he_uniform", f"Uniform {_HE}; also called ``kaiming_uniform``.", "0.14", scale=2.0, distribution="uniform")
he_normal = _scaled("he_normal", f"Truncated normal {_HE}; also called ``kaiming_normal``.", "0.14", scale=2.0)
lecun_uniform = _scaled("lecun_uniform", f"Uniform {_LECUN}.", "0.1", distribution="uniform")
lecun_normal = _scaled("lecun_normal", f"Truncated normal {_LECUN}.", "0.1")
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal
