"""The ops of the SDK: one row each, a hologram function and what its arguments are.

Everything else is made from these rows: the functions of :mod:`hologram.sdk.ops`, those with ``_f32``, and those of ``hologram_ffi``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from textwrap import fill
from typing import Any

import numpy as np

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
    the result. ``function`` takes the others, as Tensors, and gives the result. ``example`` is what a call in the documentation gives it, and the
    result. ``kinds`` are the element types it takes, by kind.
    """

    name: str
    function: Callable[..., Any]
    spec: str
    meaning: str
    example: tuple[tuple[Any, ...], Any]
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
        given = " ``n`` elements are used; without it all, and the buffers are of one size." if "n" in self.sizes and not self.by_size else ""
        returned = " Returns the result, which is also written to the first element of ``out``." if self.gives_number else ""
        facts = fill(f"Buffers of one element type: {types}.{given}{returned} {_ERRORS}", 120)
        return f"{name}{self.signature}\n--\n\n{self.meaning}\n\n{facts}\n\n{self._example(name)}\n"

    def _example(self, name: str) -> str:
        def text(value: Any) -> str:
            return f"hg.Buffer.wrap(np.float32({value}))" if isinstance(value, list) else repr(value)

        values, result = self.example
        into = self.result.name
        arguments = self.call('hg.Executor("cpu")', [text(v) for v in values])
        call = f"hg.ops.{name}({', '.join(arguments)})"
        room = f">>> {into} = hg.Buffer.wrap(np.zeros({np.size(result)}, np.float32))"
        if self.gives_number:
            return f"{room}\n>>> {call}\n{float(result)}"
        return f"{room}\n>>> {call}\n>>> {into}.to_numpy()\n{np.float32(result)!r}"

    def call(self, executor: str, others: Sequence[str]) -> list[str]:
        """The arguments of a call: ``others`` are those but the executor and the result, which is called by its name."""
        place = self.parameters.index(self.result)
        return [executor, *others[:place], self.result.name, *others[place:]]


_ERRORS = "Raises ShapeError for buffers that are too small, DTypeError for other types, FreedBufferError, ClosedExecutorError and ArgumentError."


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
    Row("vector_add", hnp.add, _PAIR, "``out[i] = a[i] + b[i]``. Integers wrap around.", (([1, 2], [3, 4]), [4, 6]), _NUMBERS),
    Row("vector_sub", hnp.subtract, _PAIR, "``out[i] = a[i] - b[i]``. Integers wrap around.", (([5, 2], [3, 4]), [2, -2]), _NUMBERS),
    Row("vector_mul", hnp.multiply, _PAIR, "``out[i] = a[i] * b[i]``. Integers wrap around.", (([1, 2], [3, 4]), [3, 8]), _NUMBERS),
    Row(
        "vector_div",
        _divided,
        _PAIR,
        "``out[i] = a[i] / b[i]``; integers are divided as ``//`` divides, by 0 to 0.",
        (([3, 1], [2, 4]), [1.5, 0.25]),
        _NUMBERS,
    ),
    Row("vector_min", hnp.minimum, _PAIR, "``out[i] = min(a[i], b[i])``; NaN where either is.", (([1, 5], [3, 4]), [1, 4]), _NUMBERS),
    Row("vector_max", hnp.maximum, _PAIR, "``out[i] = max(a[i], b[i])``; NaN where either is.", (([1, 5], [3, 4]), [3, 5]), _NUMBERS),
    Row(
        "vector_mad",
        lambda a, b, c: a * b + c,
        "a[n] b[n] c[n] out[n]",
        "``out[i] = a[i] * b[i] + c[i]``, for floats rounded once or twice.",
        (([1, 2], [3, 4], [10, 20]), [13, 28]),
        _NUMBERS,
    ),
    Row("vector_abs", hnp.abs, _ELEMENTS, "``out[i] = |a[i]|``.", (([-1, 2],), [1, 2]), _NUMBERS),
    Row("vector_neg", hnp.negative, _ELEMENTS, "``out[i] = -a[i]``.", (([-1, 2],), [1, -2]), _NUMBERS),
    Row("vector_relu", nn.relu, _ELEMENTS, "``out[i] = max(a[i], 0)``; NaN stays.", (([-1, 2],), [0, 2])),
    Row("vector_sqrt", hnp.sqrt, _ELEMENTS, "``out[i]`` is the square root of ``a[i]``; NaN below 0.", (([4, 9],), [2, 3])),
    Row("vector_exp", hnp.exp, _ELEMENTS, "``out[i] = exp(a[i])``.", (([0, 1],), [1, 2.7182817])),
    Row("vector_log", hnp.log, _ELEMENTS, "``out[i]`` is the natural logarithm of ``a[i]``; -inf at 0, NaN below.", (([1, 2],), [0, 0.6931472])),
    Row(
        "vector_clip",
        hnp.clip,
        "a[n] out[n] min_val max_val",
        "``out[i] = min(max(a[i], min_val), max_val)``; NaN stays.",
        (([-1, 0.5, 3], 0, 1), [0, 0.5, 1]),
        _NUMBERS,
    ),
    Row("scalar_add", hnp.add, "a[n] out[n] scalar", "``out[i] = a[i] + scalar``.", (([1, 2], 10), [11, 12]), _NUMBERS),
    Row("scalar_mul", hnp.multiply, "a[n] out[n] scalar", "``out[i] = a[i] * scalar``.", (([1, 2], 10), [10, 20]), _NUMBERS),
    Row("sigmoid", nn.sigmoid, _ELEMENTS, "``out[i] = 1 / (1 + exp(-a[i]))``.", (([0, 2],), [0.5, 0.880797])),
    Row("tanh", nn.tanh, _ELEMENTS, "``out[i] = tanh(a[i])``.", (([0, 1],), [0, 0.7615941])),
    Row(
        "gelu",
        nn.gelu,
        _ELEMENTS,
        "``out[i] = a[i] / 2 * (1 + tanh(sqrt(2 / pi) * (a[i] + 0.044715 * a[i]**3)))``: the tanh form.",
        (([-1, 1],), [-0.158808, 0.841192]),
    ),
    Row("softmax", nn.softmax, _ELEMENTS, "``out[i] = exp(a[i]) / sum(exp(a))``, without overflow.", (([0, 1],), [0.26894143, 0.7310586])),
    Row("reduce_sum", hnp.sum, "a[n] out[]", "The sum of ``a``.", (([1, 2, 3],), 6)),
    Row("reduce_min", hnp.min, "a[n] out[]", "The least element of ``a``; NaN if there is one.", (([3, 1, 2],), 1)),
    Row("reduce_max", hnp.max, "a[n] out[]", "The greatest element of ``a``; NaN if there is one.", (([3, 1, 2],), 3)),
    Row("mse_loss", nn.mse, _LOSS, "``mean((pred - target)**2)``.", (([1, 2], [1, 4]), 2)),
    Row(
        "cross_entropy_loss",
        _cross_entropy,
        _LOSS,
        "``-sum(target * log(pred))``; terms whose ``target`` is 0 are 0.",
        (([0.5, 0.5], [1, 0]), 0.6931472),
    ),
    Row(
        "binary_cross_entropy_loss",
        _binary_cross_entropy,
        _LOSS,
        "``-mean(target * log(pred) + (1 - target) * log(1 - pred))``; terms whose factor before the logarithm is 0 are 0.",
        (([0.5, 0.5], [1, 0]), 0.6931472),
    ),
    Row(
        "gemm",
        hnp.matmul,
        "a[m,k] b[k,n] out[m,n]",
        "The matrix product of ``a`` (m by k) and ``b`` (k by n), in C order.",
        (([1, 2, 3, 4], [5, 6], 2, 1, 2), [17, 39]),
        _NUMBERS,
    ),
    Row(
        "matvec",
        hnp.matmul,
        "a[m,n] x[n] out[m]",
        "The product of the matrix ``a`` (m by n, in C order) and the vector ``x``.",
        (([1, 2, 3, 4], [5, 6], 2, 2), [17, 39]),
        _NUMBERS,
    ),
    Row("memcpy", _same, "src[n] dst[n]", "``dst[i] = src[i]``.", (([1, 2],), [1, 2]), _NUMBERS),
    Row("fill", _same, "out[n] value", "``out[i] = value``.", ((7,), [7, 7]), _NUMBERS),
]
ROWS = {row.name: row for row in _ROWS}
