"""Numbers of loops and branches that are recorded lazily: lengths, sizes and constants in bodies are operands, with the bits of programs by value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.trace import lazy

X = np.linspace(0.5, 1.5, 400, dtype=np.float32)
SQUARE = X[:36].reshape(6, 6) / 8
NUMBERS = (7, 12, 5, 11, 19, 8, 30)


pytestmark = pytest.mark.usefixtures("compiled_at_once")


def nested(x: Any, k: int) -> Any:
    """Constants in both loops."""
    return hg.fori_loop(0, 4, lambda i, c: hg.while_loop(lambda d: d < k, lambda d: d * 2 + k, c) - i * k, 1)


def scaled(x: Any, k: int) -> Any:
    """A value from around the loop besides a constant of the body."""
    factor = x[3] * 2
    return hg.scan(lambda c, v: (c * factor + (k + 0.5), c - k), 0.25 * x[0], x[:9], reverse=True)


OPERANDS: dict[str, Callable[[Any, int], Any]] = {
    "a count": lambda x, k: hg.fori_loop(0, k, lambda i, c: c * 1.01 + i, 1.0),
    "a first index": lambda x, k: hg.fori_loop(k, 40, lambda i, c: c + x[i], 0.0),
    "a count of vectors": lambda x, k: hg.fori_loop(0, k, lambda i, c: hnp.sin(c) * x[:50] + c, x[:50]),
    "a stack": lambda x, k: hg.scan(lambda c, v: (c * v + 1, c - v), x[0], x[:k]),
    "a stack of rows": lambda x, k: hg.scan(lambda c, v: (c + v * 3, hnp.exp(c)), x[:4], x[: 4 * k].reshape(k, 4), reverse=True),
    "a row of another length": lambda x, k: hg.scan(lambda c, v: (c * 0.5 + v, c[0]), x[:k], x[: 8 * k].reshape(8, k)),
    "a factor": lambda x, k: hg.scan(lambda c, v: (c * (k + 0.3) + v * (1 - k / 64), c * k), x[0], x[:20]),
    "an integer bound": lambda x, k: hg.while_loop(lambda c: c < 10 * k, lambda c: c * 2 + 1, 3),
    "a bound": lambda x, k: hg.while_loop(lambda c: c < k + 0.25, lambda c: c + 0.3, 0.0),
    "a bound of a part": lambda x, k: hg.while_loop(lambda c: hnp.all(c < 40), lambda c: c + k, x[:k]),
    "numbers of branches": lambda x, k: hg.cond(x[1] > 0.2, lambda v: v + 10 * k, lambda v: v - 5 * k, hnp.asarray(3)),
    "parts of branches": lambda x, k: hg.switch(hnp.asarray(1), [lambda v: v * 2, lambda v: v - 7.5], x[:k]),
    "loops in a loop": nested,
    "values from around": scaled,
    "greatest common divisors": lambda x, k: hnp.gcd(hnp.arange(k) * 6, 10 + hnp.arange(k)),
    "products that data choose": lambda x, k: hg.while_loop(
        lambda c: hnp.any(c[1]), lambda c: (hnp.where(c[1], c[0] + c[0] * x[:k], c[0]), c[0] < 3), (x[:k], x[:k] > 0.6)
    ),
    "an integer sum in each step": lambda x, k: hg.fori_loop(0, k, lambda i, c: c + hnp.arange(5).sum() * i, 0),
}
# Where the compiler may choose the order of a sum by sizes, or rules look at numbers.
BY_VALUE: dict[str, Callable[[Any, int], Any]] = {
    "products with a matrix": lambda x, k: hg.scan(lambda c, v: (hnp.tanh(SQUARE @ c + v), c), x[:6], x[: 6 * k].reshape(k, 6)),
    "products of rows": lambda x, k: hg.scan(lambda c, v: (c, SQUARE @ v), x[0], x[: 6 * k].reshape(k, 6)),
    "a sum of outer products": lambda x, k: hg.scan(lambda c, v: (c + v[:, None] * v[None, :], None), hnp.zeros((6, 6)), x[: 6 * k].reshape(k, 6))[0],
    "products that numbers choose": lambda x, k: hg.fori_loop(0, k, lambda i, c: c + hnp.where(i < 9, c * x[i], c), 0.1),
    "a double of a multiple": lambda x, k: hg.scan(lambda c, v: (c + (v * (k + 0.3)) * 2, c + (v + v) * (k + 0.3)), x[0], x[:20]),
    "a converted number": lambda x, k: hg.fori_loop(0, 5, lambda i, c: c * 0.3 + hnp.asarray(k).astype("float32"), x[0]),
}


def _bits(f: Callable[[Any, int], Any], k: int) -> list[tuple[Any, bytes]]:
    return [(np.asarray(y).dtype, np.asarray(y).tobytes()) for y in hg.tree.leaves(f(hg.tensor(X), k))]


@pytest.mark.parametrize("name", [*OPERANDS, *BY_VALUE])
def test_numbers_of_loops(name: str, compilations: list[Any]) -> None:
    """Static programs of ``jit`` have the same bits, too."""
    f = OPERANDS.get(name) or BY_VALUE[name]
    found = [_bits(f, k) for k in NUMBERS]
    assert len(compilations) <= 2 or name in BY_VALUE
    for k, bits in zip(NUMBERS, found, strict=True):
        lazy.clear()
        assert _bits(f, k) == bits, k
        jitted = hg.jit(f, static_argnums=1, dynamic=False)(X, k)
        assert [(np.asarray(y).dtype, np.asarray(y).tobytes()) for y in hg.tree.leaves(jitted)] == bits, k


def test_constants_that_become_equal_stay_apart() -> None:
    f = lambda a, b: int(hg.while_loop(lambda c: c < a, lambda c: c + b, 1))  # noqa: E731
    for a, b in ((20, 7), (31, 9), (12, 12), (5, 100), (33, 5)):
        c = 1
        while c < a:
            c += b
        assert f(a, b) == c
