"""What the benchmarks of a GPU compute: the same function in Hologram, PyTorch and JAX, and the least that it moves and multiplies."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

# An NVIDIA H200: bytes a second that a copy moves, and flops a second by kind of arithmetic
COPY = 4.3e12
PEAKS = {"float32": 60e12, "bfloat16": 800e12}
LAUNCH_SECONDS = 2.5e-6  # of a kernel in a captured graph, at least

Shapes = list[tuple[int, ...]]


class Framework(NamedTuple):
    """``xp`` has the functions of arrays; ``attention``, the framework's own, takes queries, keys and values of (batch, heads, length, width)."""

    xp: Any
    attention: Callable[[Any, Any, Any], Any]


class Case(NamedTuple):
    """``make(framework, n)`` gives a function of arrays, and the arrays' shapes; ``nbytes`` and ``flops`` of a call at size n.

    ``gradient``: it is the derivative by all arrays that is wanted, of a function with one number as its result.
    """

    make: Callable[[Framework, int], tuple[Callable[..., Any], Shapes]]
    nbytes: Callable[[int], float]
    flops: Callable[[int], float] = lambda n: 0.0
    dtype: str = "float32"
    kernels: int = 1
    gradient: bool = False


def predicted(case: Case, n: int, copy: float = COPY, peaks: dict[str, float] = PEAKS) -> float:
    """Seconds of a call by the roofline: the larger of its bytes and its flops at the device's rates, no less than its launches take."""
    return max(case.nbytes(n) / copy, case.flops(n) / peaks[case.dtype], case.kernels * LAUNCH_SECONDS)


def _gelu(of: Framework, n: int) -> Any:
    return lambda x: 0.5 * x * (1 + of.xp.tanh(0.7978845608 * (x + 0.044715 * x * x * x))), [(n,)]


def _chain(of: Framework, n: int) -> Any:
    def f(x: Any, y: Any) -> Any:
        z = x * y + 1
        return of.xp.sqrt(z * z + x) - y * z

    return f, [(n,), (n,)]


def _adam(of: Framework, n: int) -> Any:
    def f(p: Any, g: Any, m: Any, v: Any) -> Any:
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return p - 0.001 * m / (of.xp.sqrt(v) + 1e-8), m, v

    return f, [(n,)] * 4


def _softmax(of: Framework, n: int) -> Any:
    xp = of.xp

    def f(x: Any) -> Any:
        e = xp.exp(x - xp.amax(x, axis=-1, keepdims=True))
        return e / xp.sum(e, axis=-1, keepdims=True)

    return f, [_rows(n)]


def _normalised(xp: Any, x: Any) -> Any:
    c = x - xp.mean(x, axis=-1, keepdims=True)
    return c / xp.sqrt(xp.mean(c * c, axis=-1, keepdims=True) + 1e-5)


def _layer_norm(of: Framework, n: int) -> Any:
    return lambda x: _normalised(of.xp, x), [_rows(n)]


def _rows(n: int) -> tuple[int, int]:
    return -(-n // 4096), 4096


def _small_kernels(of: Framework, n: int) -> Any:
    def f(x: Any) -> Any:
        for _ in range(10):
            x = of.xp.tanh(x @ x) + of.xp.sum(x)
        return x

    return f, [(32, 32)]


def _product(of: Framework, n: int) -> Any:
    side = _side(n)
    return lambda x, y: x @ y, [(side, side), (side, side)]


def _side(n: int) -> int:
    """Of a product that belongs to size ``n``: 8192 at 2^28."""
    return max(64, int(round((n / 4) ** 0.5)))


# --- a block of a transformer, in bfloat16: 8 sequences of as many tokens as the model is wide ----------------------------

SEQUENCES, HEAD = 8, 64


def _width(n: int) -> int:
    """Of the model that belongs to size ``n``: 1024 at 2^28."""
    return max(HEAD, _side(n) // 8)


def _block(of: Framework, n: int) -> Any:
    xp, width = of.xp, _width(n)
    heads = width // HEAD

    def split(x: Any) -> Any:
        return xp.swapaxes(xp.reshape(x, (SEQUENCES, width, heads, HEAD)), 1, 2)

    def f(x: Any, wq: Any, wk: Any, wv: Any, wo: Any, up: Any, down: Any) -> Any:
        h = _normalised(xp, x)
        mixed = of.attention(split(h @ wq), split(h @ wk), split(h @ wv))
        x = x + xp.reshape(xp.swapaxes(mixed, 1, 2), (SEQUENCES, width, width)) @ wo
        h = _normalised(xp, x) @ up
        return x + (0.5 * h * (1 + xp.tanh(0.7978845608 * (h + 0.044715 * h * h * h)))) @ down

    square = (width, width)
    return f, [(SEQUENCES, width, width), square, square, square, square, (width, 4 * width), (4 * width, width)]


def _block_loss(of: Framework, n: int) -> Any:
    f, shapes = _block(of, n)

    def loss(*arrays: Any) -> Any:
        y = f(*arrays)
        return of.xp.mean(y * y)

    return loss, shapes


# --- attention: 4 sequences of 16 heads ---------------------------------------------------------------------------------


def _heads(n: int) -> tuple[int, int, int, int]:
    """Of queries, keys and values that belong to size ``n``: 2048 tokens at 2^28."""
    return 4, 16, max(HEAD, _side(n) // 4), HEAD


def _attention(of: Framework, n: int) -> Any:
    return lambda q, k, v: of.attention(q, k, v), [_heads(n)] * 3


def _attention_loss(of: Framework, n: int) -> Any:
    return lambda q, k, v: of.xp.mean(of.xp.tanh(of.attention(q, k, v))), [_heads(n)] * 3


def _attention_flops(n: int) -> float:
    """Of two products."""
    batch, heads, length, width = _heads(n)
    return 4.0 * batch * heads * length * length * width


def _block_flops(n: int) -> float:
    """Products with 12 squares of weights, and those of attention."""
    width = _width(n)
    return 2.0 * SEQUENCES * width * width * (12 * width + 2 * width)


def _block_bytes(n: int) -> float:
    """Weights, the argument and the result."""
    width = _width(n)
    return 2.0 * (12 * width * width + 2 * SEQUENCES * width * width)


CASES = {
    "copy": Case(lambda of, n: (lambda x: -x, [(n,)]), lambda n: 8 * n),
    "gelu": Case(_gelu, lambda n: 8 * n),
    "20 small kernels": Case(_small_kernels, lambda n: 0, kernels=20),
    "sum": Case(lambda of, n: (lambda x: of.xp.sum(x), [(n,)]), lambda n: 4 * n),
    "max": Case(lambda of, n: (lambda x: of.xp.amax(x), [(n,)]), lambda n: 4 * n),
    "softmax": Case(_softmax, lambda n: 8 * n),
    "layer norm": Case(_layer_norm, lambda n: 8 * n),
    "adam": Case(_adam, lambda n: 28 * n),
    "chain": Case(_chain, lambda n: 12 * n),
    "product bfloat16": Case(_product, lambda n: 6 * _side(n) ** 2, lambda n: 2 * _side(n) ** 3, "bfloat16"),
    "block": Case(_block, _block_bytes, _block_flops, "bfloat16"),
    "block gradient": Case(_block_loss, lambda n: 3 * _block_bytes(n), lambda n: 3 * _block_flops(n), "bfloat16", gradient=True),
    "attention": Case(_attention, lambda n: 8 * math.prod(_heads(n)), _attention_flops, "bfloat16"),
    "attention gradient": Case(_attention_loss, lambda n: 16 * math.prod(_heads(n)), lambda n: 3.5 * _attention_flops(n), "bfloat16", gradient=True),
    "product float32": Case(_product, lambda n: 12 * _side(n) ** 2, lambda n: 2 * _side(n) ** 3),
    "running sum": Case(lambda of, n: (lambda x: of.xp.cumsum(x, 0), [(n,)]), lambda n: 12 * n),
    "sort": Case(lambda of, n: (lambda x: of.xp.sort(x), [(n,)]), lambda n: 8 * n),
}
PRODUCTS = [name for name in CASES if name.startswith("product")]


def elements(shape: tuple[int, ...]) -> int:
    return math.prod(shape)
