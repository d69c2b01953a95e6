"""Distributions of floats. Parameters are Tensors or numbers that broadcast to ``shape``; results are differentiable in them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError
from hologram.numpy.arguments import array, element_type, shape_of, wrap
from hologram.numpy.elementwise import where
from hologram.primitives import elementwise as ew
from hologram.primitives import mathematics, special
from hologram.primitives.op import Shape
from hologram.random.keys import random_bits
from hologram.trace.apply import broadcast_shapes, elementwise
from hologram.trace.recorder import cast_node, constant, located, record
from hologram.trace.tensor import Tensor


def float_type(dtype: Any, what: str) -> DType:
    """A type argument of a distribution of floats; the default float for None."""
    to = dtypes.default_float if dtype is None else element_type(dtype)
    if not to.is_float:
        raise located(DTypeError(f"{what} gives floats, not {to}"))
    return to


def result_shape(shape: Any, what: str, *parameters: Any) -> Shape:
    """``shape``, or the parameters' common shape for None."""
    if shape is not None:
        return shape_of(shape, what)
    return broadcast_shapes(what, [array(p, what).shape for p in parameters])


def as_type(x: Any, dtype: DType, what: str) -> Tensor:
    return wrap(cast_node(array(x, what), dtype))


def fraction_bits(dtype: DType) -> int:
    """The bits of the stored significand."""
    return {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}[dtype.name]


def unit(key: Any, shape: Shape, dtype: DType, what: str) -> Tensor:
    """Multiples of ``2**-fraction_bits`` in [0, 1), all equally probable: random bits as the fraction of a number in [1, 2), less 1."""
    words = {16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}[dtype.bits]
    fraction = record(ew.shr_low, (random_bits(key, shape, words, what), constant(dtype.bits - fraction_bits(dtype), words)))
    one = int(np.ones((), dtype.np).view(words.np))
    return wrap(record(ew.bitcast, (record(ew.or_, (fraction, constant(one, words))),), (dtype.name,))) - 1.0


def _between(key: Any, shape: Shape, dtype: DType, low: float, high: float, what: str) -> Tensor:
    """Uniform numbers from ``low`` to ``high``, both of ``dtype``; rounding never leaves the range's lower end."""
    return elementwise(ew.max_, unit(key, shape, dtype, what) * (high - low) + low, low)


def open_unit(key: Any, shape: Shape, dtype: DType, what: str) -> Tensor:
    """Uniform in (0, 1): the least number stands for 0."""
    return elementwise(ew.max_, unit(key, shape, dtype, what), float(dtype_tiny(dtype)))


def dtype_tiny(dtype: DType) -> float:
    """The least normal number."""
    return {"float16": 2.0**-14, "bfloat16": 2.0**-126, "float32": 2.0**-126, "float64": 2.0**-1022}[dtype.name]


def below_one(dtype: DType) -> float:
    """The greatest number below 1."""
    return 1.0 - 2.0 ** -(fraction_bits(dtype) + 1)


def uniform(key: Any, shape: Any = None, dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0) -> Tensor:
    """Uniform in ``[minval, maxval)``; where the range is wide for the type, rounding can give ``maxval``."""
    to, extents = float_type(dtype, "uniform"), result_shape(shape, "uniform", minval, maxval)
    u = unit(key, extents, to, "uniform")
    if type(minval) in (int, float) and type(maxval) in (int, float) and (minval, maxval) == (0, 1):
        return u
    low, high = as_type(minval, to, "uniform"), as_type(maxval, to, "uniform")
    return elementwise(ew.max_, u * (high - low) + low, low)


def standard_normal(key: Any, shape: Shape, dtype: DType, what: str) -> Tensor:
    """By inversion: ``sqrt(2) * erfinv(u)`` with ``u`` uniform in (-1, 1)."""
    u = _between(key, shape, dtype, -below_one(dtype), 1.0, what)
    return elementwise(mathematics.erfinv, u) * math.sqrt(2.0)


def normal(key: Any, shape: Any = None, dtype: Any = None, loc: Any = 0.0, scale: Any = 1.0) -> Tensor:
    """The normal distribution of mean ``loc`` and standard deviation ``scale``."""
    to, extents = float_type(dtype, "normal"), result_shape(shape, "normal", loc, scale)
    z = standard_normal(key, extents, to, "normal")
    if type(scale) not in (int, float) or scale != 1:
        z = z * as_type(scale, to, "normal")
    if type(loc) not in (int, float) or loc != 0:
        z = z + as_type(loc, to, "normal")
    return z


def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """The standard normal distribution given that it lies between ``lower`` and ``upper``; in float64 up to 38 deviations out."""
    to, extents = float_type(dtype, "truncated_normal"), result_shape(shape, "truncated_normal", lower, upper)
    low, high = as_type(lower, to, "truncated_normal"), as_type(upper, to, "truncated_normal")
    mirrored = low > 0  # the lower tail has all its digits
    near, far = where(mirrored, -high, low), where(mirrored, -low, high)
    a, b = (elementwise(special.ndtr, x) for x in (near, far))
    u = elementwise(ew.max_, unit(key, extents, to, "truncated_normal") * (b - a) + a, a)
    z = elementwise(special.ndtri, u)
    return elementwise(ew.min_, elementwise(ew.max_, where(mirrored, -z, z), low), high)


def exponential(key: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """The exponential distribution of rate 1."""
    u = unit(key, shape_of(shape, "exponential"), float_type(dtype, "exponential"), "exponential")
    return -elementwise(mathematics.log1p, -u)


def gumbel(key: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """The standard Gumbel distribution."""
    u = open_unit(key, shape_of(shape, "gumbel"), float_type(dtype, "gumbel"), "gumbel")
    return -elementwise(mathematics.log, -elementwise(mathematics.log, u))


def laplace(key: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """The Laplace distribution of mean 0 and scale 1."""
    to = float_type(dtype, "laplace")
    u = _between(key, shape_of(shape, "laplace"), to, -below_one(to), 1.0, "laplace")
    return elementwise(ew.copysign, elementwise(mathematics.log1p, -elementwise(ew.abs_, u)), u)


def logistic(key: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """The logistic distribution of mean 0 and scale 1."""
    u = open_unit(key, shape_of(shape, "logistic"), float_type(dtype, "logistic"), "logistic")
    return elementwise(mathematics.log, u) - elementwise(mathematics.log1p, -u)


def cauchy(key: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """The standard Cauchy distribution."""
    to = float_type(dtype, "cauchy")
    u = _between(key, shape_of(shape, "cauchy"), to, -below_one(to), 1.0, "cauchy")
    return elementwise(mathematics.tan, u * (math.pi / 2))


def _scaled_exponential(key: Any, shape: Any, dtype: Any, what: str, *parameters: Any) -> tuple[Tensor, list[Tensor]]:
    """Standard exponential numbers of the parameters' common shape, and the parameters in the result's type."""
    to, extents = float_type(dtype, what), result_shape(shape, what, *parameters)
    return exponential(key, extents, to.np), [as_type(p, to, what) for p in parameters]


def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """The Pareto distribution of exponent ``b`` and least value 1."""
    e, (exponent,) = _scaled_exponential(key, shape, dtype, "pareto", b)
    return elementwise(mathematics.exp, e / exponent)


def weibull_min(key: Any, scale: Any, concentration: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """The Weibull distribution."""
    e, (size, power) = _scaled_exponential(key, shape, dtype, "weibull_min", scale, concentration)
    return size * e ** (1 / power)


def rayleigh(key: Any, scale: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """The Rayleigh distribution: lengths of normal vectors in the plane."""
    e, (size,) = _scaled_exponential(key, shape, dtype, "rayleigh", scale)
    return size * elementwise(ew.sqrt, e * 2.0)


def lognormal(key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = None) -> Tensor:
    """Exponentials of normal numbers of mean 0 and standard deviation ``sigma``."""
    return elementwise(mathematics.exp, normal(key, shape, dtype, 0.0, sigma))
