"""Programs in which a number changes from call to call, written once against a NumPy-like namespace; and what is asked of Hologram.

A case makes the turns of a framework: ``turn(k)`` gives a result for the number ``k``, ready to be read. ``copy_in`` and ``done`` of the framework
bring an array in and wait for a result.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Turn = Callable[[int], Any]


@dataclass(frozen=True)
class Case:
    """``turns(f)`` gives the turns of framework ``f``, which take each of ``numbers`` in order, the first ``warm`` without being timed. ``asked`` is
    in seconds, ``asked_ratios`` multiples of the time of other frameworks, ``programs`` the most that may be compiled for all numbers."""

    name: str
    turns: Callable[[Any], Turn]
    numbers: tuple[int, ...]
    asked: float | None = None
    asked_ratios: tuple[tuple[str, float], ...] = ()
    programs: int | None = None
    warm: int = 3
    frameworks: tuple[str, ...] = ("hologram", "numpy", "jax", "torch")


def _vector() -> np.ndarray:
    return np.linspace(0.5, 1.5, 1000, dtype=np.float32)


def _shuffled(low: int, high: int, count: int) -> tuple[int, ...]:
    return tuple(np.random.default_rng(16).permutation(np.arange(low, high))[:count].tolist())


def _on_vector(function: Callable[[Any, Any, int], Any]) -> Callable[[Any], Turn]:
    """Turns ``function(f, x, k)`` on one array of 1,000 elements."""

    def turns(f: Any) -> Turn:
        x = f.copy_in(_vector())
        return lambda k: f.done(function(f, x, k))

    return turns


def _iterated(f: Any) -> Turn:
    x = f.copy_in(_vector())

    def turn(k: int) -> Any:
        total = 0.0
        for v in x:
            total += float(v)
        return total

    return turn


_UNARY = ("exp", "sin", "cos", "tanh", "sqrt", "abs")
_BINARY: tuple[Callable[[Any, Any], Any], ...] = (lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b)
_FORMS = tuple(itertools.product(range(len(_UNARY)), range(len(_BINARY)), range(len(_UNARY)), range(len(_BINARY))))


def _expression(f: Any, x: Any, k: int) -> Any:
    """An expression of five ops, another one for each ``k``."""
    u, b, v, c = _FORMS[k * 7 % len(_FORMS)]
    first, second = getattr(f.xp, _UNARY[u]), getattr(f.xp, _UNARY[v])
    y = _BINARY[b](first(x), x)
    return _BINARY[c](second(y), y * 0.25)


def _statements(f: Any) -> Turn:
    """A script of 300 small statements: a turn runs all of them."""
    xp, x = f.xp, f.copy_in(_vector())
    rows = x.reshape(40, 25)

    def turn(k: int) -> Any:
        total = 0.0
        for i in range(50):
            y = x[i : i + 60] * (i + 1)
            z = xp.exp(y[: 10 + i % 7] / 100.0) - i
            total += float(z.sum())
            total += float(rows[i % 40].max() - xp.sqrt(rows[:, i % 25]).sum())
            w = xp.zeros(5 + i) + rows[0, 0]
            total += float(w[i % 5])
        return total

    return turn


def _recorded(f: Any) -> Turn:
    x = f.copy_in(np.linspace(0.5, 1.5, 8, dtype=np.float32))

    def turn(k: int) -> Any:
        y = x
        for _ in range(8):
            y = y * x + x
        return f.done(y)

    return turn


def _gradient(f: Any) -> Turn:
    """The gradient of a jitted MLP for a batch of ``k``."""
    rng = np.random.default_rng(1)
    weights = tuple(f.copy_in(rng.standard_normal(shape).astype(np.float32) * 0.1) for shape in ((64, 128), (128, 128), (128, 10)))
    x = rng.standard_normal((512, 64)).astype(np.float32)

    def loss(ws: Any, x: Any) -> Any:
        h = f.xp.tanh(x @ ws[0])
        h = f.xp.tanh(h @ ws[1])
        return ((h @ ws[2]) ** 2).mean()

    step = f.gradient(loss)
    return lambda k: f.done(step(weights, f.copy_in(x[:k]))[0])


def _encoder(f: Any) -> Turn:
    """A transformer's encoder layer, by torch.compile, for sequences of ``k``."""
    import torch

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(256, 4, 512, batch_first=True).eval()
    x = torch.randn(1, 1024, 256)
    model = f.compiled(layer)

    def turn(k: int) -> Any:
        with torch.no_grad():
            return model(x[:, :k].contiguous())

    return turn


_ALL = _shuffled(2, 900, 400)
CASES: dict[str, Case] = {
    c.name: c
    for c in (
        Case("float(x[k])", _on_vector(lambda f, x, k: float(x[k])), _ALL, 1.5e-6),
        Case("iterate 1,000 elements", _iterated, tuple(range(8)), 1.5e-3),
        Case("np.asarray(x[k:k+3])", _on_vector(lambda f, x, k: np.asarray(x[k : k + 3])), _ALL, 2e-6),
        Case("x * k, an integer", _on_vector(lambda f, x, k: x * k), _ALL, 15e-6, programs=2),
        Case("x * k, a float", _on_vector(lambda f, x, k: x * (k + 0.5)), _ALL, 15e-6, programs=2),
        Case("x ** k", _on_vector(lambda f, x, k: x**k), _shuffled(3, 400, 300), 15e-6, programs=16),
        Case("roll(x, k)", _on_vector(lambda f, x, k: f.xp.roll(x, k)), _ALL, 15e-6, programs=2),
        Case("x.at[k].set(1.)", _on_vector(lambda f, x, k: f.set(x, k, 1.0)), _ALL, 15e-6, programs=2),
        Case("x[:k].sum()", _on_vector(lambda f, x, k: x[:k].sum()), _ALL, 20e-6, programs=4),
        Case("zeros(k) + 1", _on_vector(lambda f, x, k: f.xp.zeros(k) + 1), _ALL, 20e-6, programs=2),
        Case("a new expression of five ops", _on_vector(_expression), tuple(range(24)), 100e-6, (("numpy", 3.0),)),
        Case("a script of 300 statements, once", _statements, (0,), None, (("numpy", 3.0), ("jax", 0.1)), warm=0),
        Case("16 lazy ops, n = 8", _recorded, tuple(range(400)), 15e-6, programs=1, frameworks=("hologram", "numpy")),
        Case("gradient of an MLP, batches in random order", _gradient, _shuffled(1, 513, 40), programs=3, frameworks=("hologram", "jax", "torch")),
        Case(
            "encoder layer by torch.compile, lengths in random order",
            _encoder,
            _shuffled(1, 1025, 6),
            None,
            (("torch", 0.8),),
            programs=4,
            frameworks=("hologram", "torch"),
        ),
    )
}
