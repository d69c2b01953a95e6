"""Distributions of floats. Parameters are Tensors or numbers that broadcast to ``shape``; results are differentiable in them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.errors import DTypeError
from hologram.ir.op import Shape
from hologram.numpy.arguments import array, element_type, wrap
from hologram.numpy.elementwise.functions import where
from hologram.primitives.complex.parts import complex_
from hologram.primitives.scalar import composite, mathematics, special
from hologram.primitives.scalar import elementwise as ew
from hologram.random.keys import random_bits, split
from hologram.support.user_lines import located
from hologram.trace.checks import shape_of
from hologram.trace.operators import broadcast_shapes, elementwise
from hologram.trace.recorder import cast_node, constant, record
from hologram.trace.tensor import Tensor
from hologram.transform.api import stop_gradient


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
    """``x`` in that type; a Python number in one step, with all its digits."""
    return wrap(constant(x, dtype) if type(x) in (bool, int, float) else cast_node(array(x, what), dtype))


def fraction_bits(dtype: DType) -> int:
    """The bits of the stored significand."""
    return dtype.format.fraction_bits


def unit(key: Any, shape: Shape, dtype: DType, what: str) -> Tensor:
    """Multiples of ``2**-fraction_bits`` in [0, 1), all equally probable: random bits as the fraction of a number in [1, 2), less 1."""
    words = dtypes.of(f"uint{dtype.bits}")
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
    return dtype.format.least_normal


def below_one(dtype: DType) -> float:
    """The greatest number below 1."""
    return 1.0 - 2.0 ** -(fraction_bits(dtype) + 1)


def _largest_below(high: Tensor, low: Tensor) -> Tensor:
    """The number next to ``high`` on the way to ``low``, which is smaller. A step of the bits, which order floats of one sign by magnitude."""
    dtype = high._aval()[1]
    words = dtypes.of(f"int{dtype.bits}")
    bits = record(ew.bitcast, (array(high, "uniform"),), (words.name,))
    stepped = where(high > 0, wrap(bits) - 1, wrap(bits) + 1)
    below = where(high == 0, np.array(np.iinfo(words.np).min + 1, words.np), stepped)
    return wrap(record(ew.bitcast, (array(below, "uniform"),), (dtype.name,)))


def _in_range(u: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """``low + u * (high - low)``, also where the difference overflows; the lower end where rounding goes beyond it, or the range is empty."""
    span = high - low
    direct = u * span + low
    halves = (u * (high * 0.5 - low * 0.5) + low * 0.5) * 2.0
    wide = elementwise(composite.isinf, span) & elementwise(composite.isfinite, low) & elementwise(composite.isfinite, high)
    return elementwise(ew.max_, where(wide, halves, direct), low)


def uniform(key: Any, shape: Any = None, dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0) -> Tensor:
    """Uniform distribution on ``[minval, maxval)``.

    ``shape`` is by default that to which the ends broadcast; floats, float32 unless ``dtype`` says otherwise. Where rounding would give ``maxval``,
    the number next to it; ``minval`` where the range is empty. Raises DTypeError for another type than a float, ShapeError where the ends do not
    broadcast to ``shape``. So do all distributions of floats.

    >>> hg.random.uniform(hg.random.key(0), (3,), minval=-1.0, maxval=1.0)
    Tensor([ 0.895334  ,  0.95715976, -0.33541703], dtype=float32)
    """
    to, extents = float_type(dtype, "uniform"), result_shape(shape, "uniform", minval, maxval)
    if type(minval) in (int, float) and type(maxval) in (int, float) and (minval, maxval) == (0, 1):
        return unit(key, extents, to, "uniform")
    low, high = as_type(minval, to, "uniform"), as_type(maxval, to, "uniform")
    work = dtypes.compute_type(to)
    found = _in_range(unit(key, extents, work, "uniform"), *(as_type(x, work, "uniform") for x in (low, high)))
    rounded = as_type(found, to, "uniform")
    gap = stop_gradient(high - _largest_below(high, low))  # so that the derivative by maxval is not lost
    return where((rounded >= high) & (low < high), high - gap, rounded)


def standard_normal(key: Any, shape: Shape, dtype: DType, what: str) -> Tensor:
    """By inversion: ``sqrt(2) * erfinv(u)`` with ``u`` uniform in (-1, 1). ``dtype`` is one that is computed in."""
    u = _between(key, shape, dtype, -below_one(dtype), 1.0, what)
    return elementwise(mathematics.erfinv, u) * math.sqrt(2.0)


def _types(dtype: Any, what: str) -> tuple[DType, DType]:
    """The type of a distribution's results, and the one that they are drawn in, to be rounded once: narrow floats have too few bits to draw with."""
    to = float_type(dtype, what)
    return to, dtypes.compute_type(to)


def _normal(key: Any, extents: Shape, work: DType, loc: Any, scale: Any, what: str) -> Tensor:
    z = standard_normal(key, extents, work, what)
    if type(scale) not in (int, float) or scale != 1:
        z = z * as_type(scale, work, what)
    if type(loc) not in (int, float) or loc != 0:
        z = z + as_type(loc, work, what)
    return z


def normal(key: Any, shape: Any = None, dtype: Any = None, loc: Any = 0.0, scale: Any = 1.0) -> Tensor:
    """Normal distribution of mean ``loc`` and standard deviation ``scale``. Shape, types and errors are those of :func:`uniform`.

    Differentiable in the parameters, as are all distributions of floats. ``dtype`` may be complex: independent parts, each with half the variance.

    >>> hg.random.normal(hg.random.key(0), (3,))
    Tensor([ 1.622642  ,  2.0252647 , -0.43359435], dtype=float32)
    """
    extents = result_shape(shape, "normal", loc, scale)
    if dtype is not None and element_type(dtype).is_complex:
        return _complex_normal(key, extents, element_type(dtype), loc, scale, "normal")
    to, work = _types(dtype, "normal")
    return as_type(_normal(key, extents, work, loc, scale, "normal"), to, "normal")


def _complex_normal(key: Any, extents: Shape, dtype: DType, loc: Any, scale: Any, what: str) -> Tensor:
    real, imaginary = (array(standard_normal(k, extents, dtypes.real_of(dtype), what), what) for k in split(key))
    return wrap(record(complex_, (real, imaginary))) * math.sqrt(0.5) * as_type(scale, dtype, what) + as_type(loc, dtype, what)


def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Standard normal distribution given that it lies between ``lower`` and ``upper``; in float64 up to 38 deviations out.

    Shape, types and errors are those of :func:`uniform`.

    >>> hg.random.truncated_normal(hg.random.key(0), 1.0, 2.0, (3,))
    Tensor([1.0298384, 1.012104 , 1.4915372], dtype=float32)
    """
    what = "truncated_normal"
    to, work = _types(dtype, what)
    low, high = (as_type(as_type(x, to, what), work, what) for x in (lower, upper))
    mirrored = low > 0  # the lower tail has all its digits
    near, far = where(mirrored, -high, low), where(mirrored, -low, high)
    a, b = (elementwise(special.ndtr, x) for x in (near, far))
    u = elementwise(ew.max_, unit(key, result_shape(shape, what, lower, upper), work, what) * (b - a) + a, a)
    z = elementwise(special.ndtri, u)
    return as_type(elementwise(ew.min_, elementwise(ew.max_, where(mirrored, -z, z), low), high), to, what)


def _exponential(key: Any, extents: Shape, work: DType, what: str) -> Tensor:
    return -elementwise(mathematics.log1p, -unit(key, extents, work, what))


def exponential(key: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """Exponential distribution of rate 1. Types and errors are those of :func:`uniform`.

    >>> hg.random.exponential(hg.random.key(0), (3,))
    Tensor([2.950128  , 3.8434246 , 0.40390354], dtype=float32)
    """
    to, work = _types(dtype, "exponential")
    return as_type(_exponential(key, shape_of(shape, "exponential"), work, "exponential"), to, "exponential")


def gumbel(key: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """Gumbel distribution of location 0 and scale 1. Types and errors are those of :func:`uniform`.

    >>> hg.random.gumbel(hg.random.key(0), (3,))
    Tensor([ 2.9233725 ,  3.8326175 , -0.09689324], dtype=float32)
    """
    to, work = _types(dtype, "gumbel")
    u = open_unit(key, shape_of(shape, "gumbel"), work, "gumbel")
    return as_type(-elementwise(mathematics.log, -elementwise(mathematics.log, u)), to, "gumbel")


def laplace(key: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """Laplace distribution of mean 0 and scale 1. Types and errors are those of :func:`uniform`.

    >>> hg.random.laplace(hg.random.key(0), (3,))
    Tensor([ 2.2569816 ,  3.1502788 , -0.40859547], dtype=float32)
    """
    to, work = _types(dtype, "laplace")
    u = _between(key, shape_of(shape, "laplace"), work, -below_one(work), 1.0, "laplace")
    return as_type(elementwise(ew.copysign, elementwise(mathematics.log1p, -elementwise(ew.abs_, u)), u), to, "laplace")


def logistic(key: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """Logistic distribution of mean 0 and scale 1. Types and errors are those of :func:`uniform`.

    >>> hg.random.logistic(hg.random.key(0), (3,))
    Tensor([ 2.896376 ,  3.8217716, -0.6978392], dtype=float32)
    """
    to, work = _types(dtype, "logistic")
    u = open_unit(key, shape_of(shape, "logistic"), work, "logistic")
    return as_type(elementwise(mathematics.log, u) - elementwise(mathematics.log1p, -u), to, "logistic")


def cauchy(key: Any, shape: Any = (), dtype: Any = None) -> Tensor:
    """Cauchy distribution of median 0 and scale 1. Types and errors are those of :func:`uniform`.

    >>> hg.random.cauchy(hg.random.key(0), (3,))
    Tensor([ 6.0274944, 14.837922 , -0.5817225], dtype=float32)
    """
    to, work = _types(dtype, "cauchy")
    u = _between(key, shape_of(shape, "cauchy"), work, -below_one(work), 1.0, "cauchy")
    return as_type(elementwise(mathematics.tan, u * (math.pi / 2)), to, "cauchy")


def _of_exponential(f: Callable[..., Tensor], key: Any, shape: Any, dtype: Any, what: str, *parameters: Any) -> Tensor:
    """``f`` of standard exponential numbers of the parameters' common shape, and of the parameters."""
    to, work = _types(dtype, what)
    e = _exponential(key, result_shape(shape, what, *parameters), work, what)
    return as_type(f(e, *(as_type(p, work, what) for p in parameters)), to, what)


def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Pareto distribution of exponent ``b`` and least value 1. Shape, types and errors are those of :func:`uniform`.

    >>> hg.random.pareto(hg.random.key(0), 3.0, (3,))
    Tensor([2.6734667, 3.6007478, 1.1441185], dtype=float32)
    """
    return _of_exponential(lambda e, exponent: elementwise(mathematics.exp, e / exponent), key, shape, dtype, "pareto", b)


def weibull_min(key: Any, scale: Any, concentration: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Weibull distribution of the given scale and concentration (its exponent). Shape, types and errors are those of :func:`uniform`.

    >>> hg.random.weibull_min(hg.random.key(0), 1.0, 2.0, (3,))
    Tensor([1.7175937 , 1.9604654 , 0.63553405], dtype=float32)
    """
    return _of_exponential(lambda e, size, power: size * e ** (1 / power), key, shape, dtype, "weibull_min", scale, concentration)


def rayleigh(key: Any, scale: Any, shape: Any = None, dtype: Any = None) -> Tensor:
    """Rayleigh distribution: lengths of normal vectors in the plane, of deviation ``scale``. Shape, types and errors are those of :func:`uniform`.

    >>> hg.random.rayleigh(hg.random.key(0), 1.0, (3,))
    Tensor([2.4290442, 2.7725167, 0.8987809], dtype=float32)
    """
    return _of_exponential(lambda e, size: size * elementwise(ew.sqrt, e * 2.0), key, shape, dtype, "rayleigh", scale)


def lognormal(key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = None) -> Tensor:
    """Log-normal distribution: exponentials of normal numbers of mean 0 and standard deviation ``sigma``.

    Shape, types and errors are those of :func:`uniform`.

    >>> hg.random.lognormal(hg.random.key(0), 0.5, (3,))
    Tensor([2.2508795, 2.752838 , 0.8050932], dtype=float32)
    """
    to, work = _types(dtype, "lognormal")
    z = _normal(key, result_shape(shape, "lognormal", sigma), work, 0.0, sigma, "lognormal")
    return as_type(elementwise(mathematics.exp, z), to, "lognormal")
