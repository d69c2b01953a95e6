"""Initial parameters: functions of a key of ``hologram.random``, a shape and a type.

Called without a key, with JAX's arguments, those that have options give such a function: ``normal(0.02)(key, shape)``.

Weights have their inputs along axis -2 and their outputs along axis -1; the axes before them (a convolution's window) multiply both.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

from hologram import dtypes, random
from hologram import numpy as hnp
from hologram.errors import ArgumentError, ShapeError
from hologram.numpy.arguments import axis_of
from hologram.support.user_lines import located
from hologram.trace.convert import element_type
from hologram.trace.tensor import Tensor

__all__ = [
    "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "kaiming_normal", "kaiming_uniform",
    "lecun_normal", "lecun_uniform", "normal", "ones", "orthogonal", "truncated_normal", "uniform", "variance_scaling", "xavier_normal",
    "xavier_uniform", "zeros",
]  # fmt: skip

Axes = int | Sequence[int]

# the standard deviation of a normal distribution cut at -2 and 2
_CUT_DEVIATION = 0.87962566103423978


def _drawn(draw: Callable[[Any], Tensor], dtype: Any) -> Tensor:
    """Numbers drawn in the type that ``dtype`` is computed in, and rounded once."""
    to = _type(dtype)
    return hnp.astype(draw(dtypes.compute_type(to).np), to)


def _type(dtype: Any) -> dtypes.DType:
    return dtypes.default_float if dtype is None else element_type(dtype)


def _made_by(*names: str, **defaults: Any) -> Callable[[Callable[..., Tensor]], Callable[..., Any]]:
    """The decorated initializer, which without a key takes arguments called ``names`` and gives a function of a key, a shape and a type. ``defaults``
    are those of these arguments where they are not the initializer's own."""

    def decorate(initializer: Callable[..., Tensor]) -> Callable[..., Any]:
        @functools.wraps(initializer)
        def either(*args: Any, **options: Any) -> Any:
            if "key" in options or (args and getattr(args[0], "ndim", 0) > 0):
                return initializer(*args, **options)
            if len(args) > len(names):
                raise located(ArgumentError(f"{initializer.__name__} takes a key and a shape, or {', '.join(names)}: not {len(args)} arguments"))
            given = defaults | dict(zip(names, args, strict=False)) | options
            default = given.pop("dtype", None)

            def made(key: Any, shape: Sequence[int], dtype: Any = None) -> Tensor:
                chosen = next((d for d in (dtype, default) if d is not None), None)
                return initializer(key, shape, chosen, **given)

            return made

        return either

    return decorate


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


@_made_by("value", "dtype")
def constant(key: Any, shape: Sequence[int], dtype: Any = None, *, value: Any) -> Tensor:
    """``value`` everywhere, which broadcasts to ``shape``; ``key`` is not used.

    >>> hg.nn.initializers.constant(0.5)(hg.random.key(0), (2,))
    Tensor([0.5, 0.5], dtype=float32)
    """
    return hnp.broadcast_to(hnp.asarray(value).astype(_type(dtype).np), tuple(shape))


@_made_by("stddev", "dtype")
def normal(key: Any, shape: Sequence[int], dtype: Any = None, *, stddev: float = 0.01) -> Tensor:
    """Normally distributed numbers of mean 0 and standard deviation ``stddev``; of the default float type unless ``dtype`` says otherwise.

    >>> hg.nn.initializers.normal(hg.random.key(0), (3,))
    Tensor([ 0.01622642,  0.02025265, -0.00433594], dtype=float32)
    """
    return _drawn(lambda work: stddev * random.normal(key, tuple(shape), dtype=work), dtype)


@_made_by("stddev", "dtype", "lower", "upper")
def truncated_normal(key: Any, shape: Sequence[int], dtype: Any = None, *, stddev: float = 0.01, lower: float = -2.0, upper: float = 2.0) -> Tensor:
    """Normally distributed numbers, cut at ``lower`` and ``upper``, times ``stddev``; of the default float type unless ``dtype`` says otherwise.

    >>> hnp.abs(hg.nn.initializers.truncated_normal(0.1)(hg.random.key(0), (1000,))).max() <= 0.2
    Tensor(True, dtype=bool)
    """
    return _drawn(lambda work: stddev * random.truncated_normal(key, lower, upper, tuple(shape), dtype=work), dtype)


@_made_by("scale", "dtype", scale=0.01)
def uniform(key: Any, shape: Sequence[int], dtype: Any = None, *, limit: float = 0.01, scale: float | None = None) -> Tensor:
    """Uniformly distributed numbers from ``-limit`` to ``limit``, or from 0 to ``scale`` if that is given; of the default float type unless
    ``dtype`` says otherwise.

    Without a key it is JAX's: ``uniform(scale)`` draws from 0 to ``scale``, which is 0.01 by default.

    >>> hg.nn.initializers.uniform(hg.random.key(0), (3,))
    Tensor([ 0.00895334,  0.0095716 , -0.00335417], dtype=float32)
    """
    if scale is not None:
        return _drawn(lambda work: scale * random.uniform(key, tuple(shape), dtype=work), dtype)
    return _drawn(lambda work: limit * (2 * random.uniform(key, tuple(shape), dtype=work) - 1), dtype)


@_made_by("scale", "mode", "distribution", "in_axis", "out_axis", "batch_axis", "dtype")
def variance_scaling(
    key: Any,
    shape: Sequence[int],
    dtype: Any = None,
    *,
    scale: float = 1.0,
    mode: str = "fan_in",
    distribution: str = "truncated_normal",
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
) -> Tensor:
    """Random weights of variance ``scale / n``, n being the number of inputs, of outputs, or their mean.

    ``mode``: ``fan_in``, ``fan_out``, ``fan_avg``, ``fan_geo_avg``. ``distribution``: ``uniform``, ``normal``, or ``truncated_normal`` (cut at two
    standard deviations of what is cut). Inputs lie along ``in_axis``, outputs along ``out_axis``; axes that are neither these nor ``batch_axis``
    multiply both; either may be several axes, or none: ``()``. The default float type unless ``dtype`` says otherwise. Raises ShapeError for fewer
    axes than these, ArgumentError for another mode or distribution.

    >>> weights = hg.nn.initializers.variance_scaling(hg.random.key(0), (100, 50), scale=2.0)
    >>> hnp.round(weights.std(), 2)
    Tensor(0.14, dtype=float32)
    """
    if len(shape) < sum(len(v) if isinstance(v, (tuple, list)) else 1 for v in (in_axis, out_axis, batch_axis)):
        raise located(ShapeError(f"variance_scaling: weights have an axis of inputs and one of outputs, not the shape {list(shape)}"))
    inputs, outputs = _fans(shape, in_axis, out_axis, batch_axis)
    counts = {"fan_in": inputs, "fan_out": outputs, "fan_avg": (inputs + outputs) / 2, "fan_geo_avg": math.sqrt(inputs * outputs)}
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


def _fans(shape: Sequence[int], in_axis: Axes, out_axis: Axes, batch_axis: Axes) -> tuple[float, float]:
    """The numbers of inputs and of outputs of each sum of products."""
    inputs, outputs, batches = (
        math.prod(shape[axis_of(a, len(shape), "variance_scaling")] for a in (v if isinstance(v, (tuple, list)) else (v,)))
        for v in (in_axis, out_axis, batch_axis)
    )
    window = math.prod(shape) / max(inputs * outputs * batches, 1)
    return window * inputs, window * outputs


def _scaled(name: str, about: str, deviation: str, **options: Any) -> Callable[..., Tensor]:
    """The function called ``name``: :func:`variance_scaling` with these options. ``deviation`` is that of weights of shape (100, 50)."""

    def plain(key: Any, shape: Sequence[int], dtype: Any = None, **more: Any) -> Tensor:
        return variance_scaling(key, shape, dtype, **(options | more))

    plain.__name__ = name
    initializer: Any = _made_by("in_axis", "out_axis", "batch_axis", "dtype")(plain)

    signature = inspect.signature(variance_scaling)
    known = [p.replace(default=options.get(p.name, p.default)) for p in signature.parameters.values()]
    initializer.__signature__ = signature.replace(parameters=known)
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


# --- orthogonal ------------------------------------------------------------------------------------------------------


@_made_by("scale", "column_axis", "dtype")
def orthogonal(key: Any, shape: Sequence[int], dtype: Any = None, *, scale: float = 1.0, column_axis: int = -1) -> Tensor:
    """``scale`` times orthonormal columns, or rows where these are fewer; columns are counted along ``column_axis``, rows along all other axes.

    Raises ShapeError for fewer than two axes.

    >>> w = hg.nn.initializers.orthogonal()(hg.random.key(0), (3, 3))
    >>> hnp.allclose(w.T @ w, hnp.eye(3), atol=1e-5)
    Tensor(True, dtype=bool)
    """
    if len(shape) < 2:
        raise located(ShapeError(f"orthogonal: weights have at least two axes, not the shape {list(shape)}"))
    axis = axis_of(column_axis, len(shape), "orthogonal")
    rest = [n for i, n in enumerate(shape) if i != axis]

    def draw(work: Any) -> Tensor:
        matrix = random.orthogonal(key, math.prod(rest), dtype=work, m=shape[axis])
        return scale * hnp.moveaxis(matrix.reshape((*rest, shape[axis])), -1, axis)

    return _drawn(draw, dtype)


@_made_by("scale", "column_axis", "dtype")
def delta_orthogonal(key: Any, shape: Sequence[int], dtype: Any = None, *, scale: float = 1.0, column_axis: int = -1) -> Tensor:
    """Kernels of convolutions (space…, inputs, outputs) that are :func:`orthogonal` in the middle, and zero around it.

    Raises ShapeError for other than three to five axes, and for more inputs than outputs.

    >>> hg.nn.initializers.delta_orthogonal(hg.random.key(0), (3, 2, 4))[0]
    Tensor([[0., 0., 0., 0.],
            [0., 0., 0., 0.]], dtype=float32)
    """
    if not 3 <= len(shape) <= 5 or shape[-1] < shape[-2]:
        raise located(
            ShapeError(f"delta_orthogonal: kernels have 1 to 3 axes of space, and no more inputs than outputs, not the shape {list(shape)}")
        )
    middle = orthogonal(key, shape[-2:], dtype, scale=scale, column_axis=column_axis)
    return hnp.zeros(tuple(shape), dtype=_type(dtype).np).at[tuple((n - 1) // 2 for n in shape[:-2])].set(middle)
