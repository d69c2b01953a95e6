"""Learns to write like Python's documentation, character by character: ``python examples/charlm.py``.

A small transformer (Vaswani et al. 2017) on text that ships inside Python: the Zen, the licence, docstrings of the standard library. Minibatch, loss,
gradient and the step of Adam are one native call on a donated state; so is the sampling of a new text.
"""

from __future__ import annotations

import argparse
import ast
import codecs
import contextlib
import io
import os
import re
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import hologram as hg
import hologram.numpy as hnp
from hologram import nn, random
from hologram.backends.limits import limits

MODULES = """argparse bisect calendar codecs copy csv datetime difflib doctest enum fractions glob heapq inspect ipaddress locale mailbox optparse os
pdb pickle pickletools random shutil socket ssl statistics string subprocess tarfile textwrap threading timeit traceback typing zipfile""".split()


class Model(NamedTuple):
    symbols: int  # how many different characters there are
    width: int = 128
    heads: int = 4
    layers: int = 3
    length: int = 128
    batch: int = 16

    def flops(self) -> float:
        """Floating-point operations of a training step for each character: forward, and twice as many backward (Kaplan et al. 2020)."""
        matrices = 12 * self.layers * self.width**2 + self.symbols * self.width
        return 3 * (2 * matrices + 4 * self.layers * self.width * self.length)


def text() -> str:
    """The Zen, the licence where it is installed, and docstrings, read from the sources without importing them; plain ASCII."""
    with contextlib.redirect_stdout(io.StringIO()):
        import this
    folder = Path(os.__file__).parent
    parts = [codecs.decode(this.s, "rot13"), *(p.read_text() for p in folder.glob("LICENSE*"))]
    for module in sorted(p for name in MODULES for p in (folder / f"{name}.py", folder / name / "__init__.py") if p.exists()):
        nodes = [n for n in ast.walk(ast.parse(module.read_text())) if isinstance(n, (ast.Module, ast.ClassDef, ast.FunctionDef))]
        parts += [d for n in nodes if (d := ast.get_docstring(n)) and len(d) > 80]
    return re.sub(r"[^\n -~]", "", "\n\n".join(parts))


def start(model: Model, key: Any) -> dict[str, Any]:
    """Weights of variance 1 / inputs; the layers write to the residual stream with less."""
    keys = iter(random.split(key, 2 + 4 * model.layers))

    def weights(n: int, m: int, scale: float = 1.0) -> Any:
        return random.normal(next(keys), (n, m)) * (scale / n**0.5)

    def layer(w: int = model.width) -> dict[str, Any]:
        matrices = {"qkv": weights(w, 3 * w), "out": weights(w, w, 0.25), "up": weights(w, 4 * w), "down": weights(4 * w, w, 0.25)}
        return matrices | {"attend norm": hnp.ones(w), "think norm": hnp.ones(w)}

    ends = {"symbols": weights(model.symbols, model.width) / 4, "places": weights(model.length, model.width) / 4, "norm": hnp.ones(model.width)}
    return ends | {"layers": [layer() for _ in range(model.layers)]}


def logits(model: Model, p: dict[str, Any], tokens: Any) -> Any:
    """What may follow each of ``tokens`` (batch, length): (batch, length, symbols)."""
    n, length = tokens.shape
    x = hnp.take(p["symbols"], tokens, axis=0) + p["places"][:length]
    for layer in p["layers"]:
        qkv = (nn.layer_norm(x, layer["attend norm"]) @ layer["qkv"]).reshape((n, length, 3, model.heads, -1))
        seen = nn.dot_product_attention(*(hnp.swapaxes(qkv[:, :, i], 1, 2) for i in range(3)), is_causal=True)
        x = x + hnp.swapaxes(seen, 1, 2).reshape((n, length, model.width)) @ layer["out"]
        x = x + nn.gelu(nn.layer_norm(x, layer["think norm"]) @ layer["up"]) @ layer["down"]
    return nn.layer_norm(x, p["norm"]) @ p["symbols"].T


def loss(model: Model, p: dict[str, Any], data: Any, key: Any) -> Any:
    """The mean entropy, in nats, of each character given those before it, in a minibatch of rows from random places of ``data``."""
    first = random.randint(key, (model.batch, 1), 0, data.shape[0] - model.length)
    rows = hnp.take(data, first + hnp.arange(model.length + 1))
    return nn.cross_entropy(logits(model, p, rows[:, :-1]), rows[:, 1:])


@hg.jit(static_argnums=0, donate_argnums=1)
def step(model: Model, state: Any, data: Any, key: Any, rate: float = 2e-3) -> Any:
    """Adam (Kingma and Ba 2015) on ``(parameters, running means of gradients, of their squares, count)``, and the loss before it."""
    p, mean, square, count = state
    count = count + 1
    value, slope = hg.value_and_grad(loss, argnums=1)(model, p, data, random.fold_in(key, count))
    mean = hg.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, slope)
    square = hg.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, slope)
    now = rate * hnp.minimum(1.0, count / 50) / (1 - 0.9**count)
    p = hg.tree.map(lambda q, m, s: q - now * m / (hnp.sqrt(s / (1 - 0.99**count)) + 1e-8), p, mean, square)
    return (p, mean, square, count), value


@hg.jit(static_argnums=(0, 1))
def sample(model: Model, count: int, p: Any, window: Any, key: Any, temperature: float = 0.7) -> Any:
    """``count`` characters, each drawn from ``softmax(logits / temperature)`` and appended to the window that the next is drawn for."""

    def append(window: Any, key: Any) -> Any:
        new = random.categorical(key, logits(model, p, window[None])[0, -1:] / temperature)
        return hnp.concatenate([window[1:], new]), new[0]

    return hg.scan(append, window, random.split(key, count))[1]


def train(model: Model, data: np.ndarray, steps: int, key: Any) -> tuple[Any, list[float], float]:
    """Parameters after ``steps``, the loss before each, and characters a second from the second step on."""
    from rich.progress import track

    p = start(model, key)
    state, values, times = (p, hg.tree.map(hnp.zeros_like, p), hg.tree.map(hnp.zeros_like, p), np.int32(0)), [], []
    for _ in track(range(steps), description="learning"):
        state, value = step(model, state, data, key)
        values.append(float(value))
        times.append(time.perf_counter())
    return state[0], values, model.batch * model.length * (steps - 1) / max(times[-1] - times[0], 1e-9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=600)
    steps = parser.parse_args().steps
    alphabet, data = np.unique(np.frombuffer(text().encode(), np.uint8), return_inverse=True)
    model, key = Model(len(alphabet)), random.key(0)
    shares = np.bincount(data) / len(data)
    p, losses, rate = train(model, data, steps, key)
    print(f"loss {losses[0]:.3f} before, {np.mean(losses[-20:]):.3f} after; of single characters {-np.sum(shares * np.log(shares)):.3f}")
    print(f"{rate:,.0f} characters a second; at the machine's peak of multiply-adds {1e9 / limits().operation / model.flops():,.0f}")
    drawn = sample(model, 500, p, data[: model.length], random.fold_in(key, 1 << 20))
    print(bytes(alphabet[np.asarray(drawn)]).decode())


if __name__ == "__main__":
    main()
