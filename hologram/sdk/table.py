"""The ops of the SDK: one row each, a hologram function and what its arguments are.

Everything else is made from these rows: the functions of :mod:`hologram.sdk.ops`, those with ``_f32``, and those of ``hologram_ffi``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

from hologram import dtypes, nn, special
from hologram import numpy as hnp
from hologram.dtypes import DType
from hologram.trace.tensor import Tensor


@dataclass(frozen=True)
class Array:
    """A parameter that is a buffer: the names of its extents, of which it holds the product, in C order."""

    name: str
    extents: tuple[str, ...]

    def shape(self, sizes: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(sizes[e] for e in self.extents)

    def count(self, sizes: Mapping[str, int]) -> int:
        """Elements that the op reads or writes."""
        return prod(self.shape(sizes))


@dataclass(frozen=True)
class Row:
    """An op. ``spec`` names its parameters after the executor: ``a[n]`` is a buffer with its extents, ``scalar`` a number; the last buffer is
    the result. ``function`` takes the others, as Tensors, and gives the result. ``kinds`` are the element types it takes, by kind.
    """

    name: str
    function: Callable[..., Any]
    spec: str
    meaning: str
    kinds: str = "f"

    @cached_property
    def parameters(self) -> list[Array | str]:
        """Buffers, and names of numbers, in the order in which callers give them."""
        found: list[Array | str] = []
        for word in self.spec.split():
            name, bracket, extents = word.partition("[")
            found.append(Array(name, tuple(e for e in extents[:-1].split(",") if e)) if bracket else name)
        return found

    @cached_property
    def arrays(self) -> list[Array]:
        return [p for p in self.parameters if isinstance(p, Array)]

    @property
    def result(self) -> Array:
        return self.arrays[-1]

    @property
    def gives_number(self) -> bool:
        """Whether a call returns the result's one element."""
        return not self.result.extents

    @cached_property
    def sizes(self) -> list[str]:
        """The names of the extents: ``n`` alone may be left out, several are in the op's own order."""
        met = dict.fromkeys(e for a in self.arrays for e in a.extents)
        return [e for e in ("m", "n", "k") if e in met]

    @property
    def by_size(self) -> bool:
        """Whether a program is for certain sizes: products, whose blocks follow from them. Programs of one extent serve every size."""
        return len(self.sizes) > 1

    @cached_property
    def signature(self) -> inspect.Signature:
        names = ["executor", *[p.name if isinstance(p, Array) else p for p in self.parameters], *self.sizes]
        optional = {"n": None} if self.sizes == ["n"] else {}
        made = [inspect.Parameter(x, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=optional.get(x, inspect.Parameter.empty)) for x in names]
        return inspect.Signature(made)

    def documentation(self, name: str, dtype: DType | None) -> str:
        """The docstring of the function called ``name``, after its signature as C functions have it."""
        kinds = {"f": "float", "i": "signed integer", "u": "unsigned integer"}
        types = str(dtype) if dtype is not None else ", ".join(kinds[k] for k in self.kinds)
        given = "``n`` elements are used; without it all, and the buffers are of one size." if "n" in self.sizes and not self.by_size else ""
        returned = " Returns the result, which is also written to the first element of ``out``." if self.gives_number else ""
        return f"{name}{self.signature}\n--\n\n{self.meaning}\n\nBuffers of one element type: {types}. {given}{returned}".rstrip()


def _divided(a: Tensor, b: Tensor) -> Tensor:
    return a / b if dtypes.of(a.dtype).is_float else a // b


def _same(x: Tensor) -> Tensor:
    return x


def _cross_entropy(pred: Tensor, target: Tensor) -> Tensor:
    return -hnp.sum(special.xlogy(target, pred))


def _binary_cross_entropy(pred: Tensor, target: Tensor) -> Tensor:
    return -hnp.mean(special.xlogy(target, pred) + special.xlog1py(1 - target, -pred))


_ELEMENTS, _PAIR, _LOSS = "a[n] out[n]", "a[n] b[n] out[n]", "pred[n] target[n] out[]"
_NUMBERS = "fiu"
_ROWS = [
    Row("vector_add", hnp.add, _PAIR, "``out[i] = a[i] + b[i]``. Integers wrap around.", _NUMBERS),
    Row("vector_sub", hnp.subtract, _PAIR, "``out[i] = a[i] - b[i]``. Integers wrap around.", _NUMBERS),
    Row("vector_mul", hnp.multiply, _PAIR, "``out[i] = a[i] * b[i]``. Integers wrap around.", _NUMBERS),
    Row("vector_div", _divided, _PAIR, "``out[i] = a[i] / b[i]``; integers are divided as ``//`` divides, by 0 to 0.", _NUMBERS),
    Row("vector_min", hnp.minimum, _PAIR, "``out[i] = min(a[i], b[i])``; NaN where either is.", _NUMBERS),
    Row("vector_max", hnp.maximum, _PAIR, "``out[i] = max(a[i], b[i])``; NaN where either is.", _NUMBERS),
    Row(
        "vector_mad",
        lambda a, b, c: a * b + c,
        "a[n] b[n] c[n] out[n]",
        "``out[i] = a[i] * b[i] + c[i]``, for floats rounded once or twice.",
        _NUMBERS,
    ),
    Row("vector_abs", hnp.abs, _ELEMENTS, "``out[i] = |a[i]|``.", _NUMBERS),
    Row("vector_neg", hnp.negative, _ELEMENTS, "``out[i] = -a[i]``.", _NUMBERS),
    Row("vector_relu", nn.relu, _ELEMENTS, "``out[i] = max(a[i], 0)``; NaN stays."),
    Row("vector_sqrt", hnp.sqrt, _ELEMENTS, "``out[i]`` is the square root of ``a[i]``; NaN below 0."),
    Row("vector_exp", hnp.exp, _ELEMENTS, "``out[i] = exp(a[i])``."),
    Row("vector_log", hnp.log, _ELEMENTS, "``out[i]`` is the natural logarithm of ``a[i]``; -inf at 0, NaN below."),
    Row("vector_clip", hnp.clip, "a[n] out[n] min_val max_val", "``out[i] = min(max(a[i], min_val), max_val)``; NaN stays.", _NUMBERS),
    Row("scalar_add", hnp.add, "a[n] out[n] scalar", "``out[i] = a[i] + scalar``.", _NUMBERS),
    Row("scalar_mul", hnp.multiply, "a[n] out[n] scalar", "``out[i] = a[i] * scalar``.", _NUMBERS),
    Row("sigmoid", nn.sigmoid, _ELEMENTS, "``out[i] = 1 / (1 + exp(-a[i]))``."),
    Row("tanh", nn.tanh, _ELEMENTS, "``out[i] = tanh(a[i])``."),
    Row("gelu", nn.gelu, _ELEMENTS, "``out[i] = a[i] / 2 * (1 + tanh(sqrt(2 / pi) * (a[i] + 0.044715 * a[i]**3)))``: the tanh form."),
    Row("softmax", nn.softmax, _ELEMENTS, "``out[i] = exp(a[i]) / sum(exp(a))``, without overflow."),
    Row("reduce_sum", hnp.sum, "a[n] out[]", "The sum of ``a``."),
    Row("reduce_min", hnp.min, "a[n] out[]", "The least element of ``a``; NaN if there is one."),
    Row("reduce_max", hnp.max, "a[n] out[]", "The greatest element of ``a``; NaN if there is one."),
    Row("mse_loss", nn.mse, _LOSS, "``mean((pred - target)**2)``."),
    Row("cross_entropy_loss", _cross_entropy, _LOSS, "``-sum(target * log(pred))``; terms whose ``target`` is 0 are 0."),
    Row(
        "binary_cross_entropy_loss",
        _binary_cross_entropy,
        _LOSS,
        "``-mean(target * log(pred) + (1 - target) * log(1 - pred))``; terms whose factor before the logarithm is 0 are 0.",
    ),
    Row("gemm", hnp.matmul, "a[m,k] b[k,n] out[m,n]", "The matrix product of ``a`` (m by k) and ``b`` (k by n), in C order.", _NUMBERS),
    Row("matvec", hnp.matmul, "a[m,n] x[n] out[m]", "The product of the matrix ``a`` (m by n, in C order) and the vector ``x``.", _NUMBERS),
    Row("memcpy", _same, "src[n] dst[n]", "``dst[i] = src[i]``.", _NUMBERS),
    Row("fill", _same, "out[n] value", "``out[i] = value``.", _NUMBERS),
]
ROWS = {row.name: row for row in _ROWS}
