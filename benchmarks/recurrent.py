"""Loops over steps of networks: ``python -m benchmarks.recurrent [--rounds N] [--only WORD]``.

LSTM and GRU cells stepped by ``scan``, a decoder that steps a transformer block with a cache of keys and values, and the training of an LSTM; each
written once against a namespace. Hologram with the weights as arguments and closed over, ``jax.lax.scan``, and torch's own module where it has one.
All run in one process and take turns, after a pause; a figure is the median over rounds, in microseconds.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch

import hologram as hg
import hologram.numpy as hnp
from benchmarks.inference import microseconds

STEPS = 64
DECODER_WIDTH, DECODER_HEADS, DECODED = 256, 4, 64


class Framework(NamedTuple):
    """What the cases are written against."""

    np: Any
    nn: Any
    scan: Callable[..., Any]
    value_and_grad: Callable[..., Any]
    jit: Callable[..., Any]
    array: Callable[..., Any]
    wait: Callable[..., Any]


HOLOGRAM = Framework(hnp, hg.nn, hg.scan, hg.value_and_grad, hg.jit, hg.tensor, hg.block_until_ready)
JAX = Framework(jnp, jax.nn, jax.lax.scan, jax.value_and_grad, jax.jit, jnp.asarray, jax.block_until_ready)


def _lstm(f: Framework, weights: Any, state: Any, x: Any) -> Any:
    wx, wh, b = weights
    h, c = state
    i, r, g, o = f.np.split(x @ wx + h @ wh + b, 4, axis=-1)
    c = f.nn.sigmoid(r) * c + f.nn.sigmoid(i) * f.np.tanh(g)
    h = f.nn.sigmoid(o) * f.np.tanh(c)
    return (h, c), h


def _gru(f: Framework, weights: Any, state: Any, x: Any) -> Any:
    wx, wh, b = weights
    (h,) = state
    of_x, of_h = f.np.split(x @ wx + b, 3, axis=-1), f.np.split(h @ wh, 3, axis=-1)
    r, u = f.nn.sigmoid(of_x[0] + of_h[0]), f.nn.sigmoid(of_x[1] + of_h[1])
    h = u * h + (1 - u) * f.np.tanh(of_x[2] + r * of_h[2])
    return (h,), h


def _decoder(f: Framework, weights: Any, state: Any, number: Any) -> Any:
    """One step of one sequence: attention to what the cache has, a perceptron, and the next embedding."""
    wq, wk, wv, wo, up, down = weights
    x, keys, values = state
    heads = lambda v: v.reshape(DECODER_HEADS, -1)  # noqa: E731
    keys, values = keys.at[number].set(heads(x @ wk)), values.at[number].set(heads(x @ wv))
    scores = f.np.einsum("hd,thd->ht", heads(x @ wq), keys) / 8
    seen = f.nn.softmax(f.np.where(f.np.arange(DECODED) <= number, scores, -1e30), axis=-1)
    x = x + f.np.einsum("ht,thd->hd", seen, values).reshape(-1) @ wo
    x = x + f.nn.gelu(x @ up) @ down
    x = x / f.np.sqrt((x * x).mean() + 1e-6)
    return (x, keys, values), x


class Case(NamedTuple):
    """A cell, shapes of its weights, its first state and its sequence, and torch's module if there is one."""

    cell: Callable[..., Any]
    weights: list[tuple[int, ...]]
    state: list[tuple[int, ...]]
    sequence: tuple[int, ...] | None
    module: Any = None
    training: bool = False


def _recurrent(cell: Any, gates: int, module: Any, batch: int, width: int, steps: int = STEPS, training: bool = False) -> Case:
    state = [(batch, width)] * (2 if cell is _lstm else 1)
    weights = [(width, gates * width), (width, gates * width), (gates * width,)]
    return Case(cell, weights, state, (steps, batch, width), module, training)


def _cases() -> Iterator[tuple[str, Case]]:
    for width in (256, 512):
        for batch in (1, 8, 32):
            yield f"LSTM {width}, batch {batch}, {STEPS} steps", _recurrent(_lstm, 4, torch.nn.LSTM, batch, width)
    for batch in (1, 32):
        yield f"GRU 256, batch {batch}, {STEPS} steps", _recurrent(_gru, 3, torch.nn.GRU, batch, 256)
    d = DECODER_WIDTH
    cache = (DECODED, DECODER_HEADS, d // DECODER_HEADS)
    yield f"decoder {d}, {DECODED} steps", Case(_decoder, [*[(d, d)] * 4, (d, 4 * d), (4 * d, d)], [(d,), cache, cache], None)
    for steps in (64, 256):
        yield f"training LSTM 256, batch 32, {steps} steps", _recurrent(_lstm, 4, torch.nn.LSTM, 32, 256, steps, training=True)


def _run(f: Framework, case: Case, weights: Any, state: Any, sequence: Any) -> Any:
    return f.scan(lambda s, x: case.cell(f, weights, s, x), tuple(state), sequence)


def _step(f: Framework, case: Case, weights: Any, state: Any, sequence: Any) -> Any:
    """The value and the derivatives by weights and sequence."""

    def loss(weights: Any, sequence: Any) -> Any:
        last, hs = _run(f, case, weights, state, sequence)
        return (hs * hs).mean() + last[-1].mean()

    return f.value_and_grad(loss, argnums=(0, 1))(weights, sequence)


def _calls(case: Case) -> tuple[dict[str, Callable[[], Any]], bool]:
    """What each framework calls; results of Hologram and JAX compared."""
    rng = np.random.default_rng(0)
    draw = lambda shape: (rng.standard_normal(shape) / 16).astype(np.float32)  # noqa: E731
    arrays = [draw(s) for s in case.weights], [draw(s) for s in case.state], np.arange(DECODED) if case.sequence is None else draw(case.sequence)
    made: dict[str, Callable[[], Any]] = {}
    what = _step if case.training else _run
    for name, f in (("arguments", HOLOGRAM), ("closed over", HOLOGRAM), ("JAX", JAX)):
        weights, state, sequence = [f.array(a) for a in arrays[0]], [f.array(a) for a in arrays[1]], f.array(arrays[2])
        if name == "closed over":
            if case.training:
                continue
            made[name] = _called(f, f.jit(lambda s, x, f=f, w=weights: what(f, case, w, s, x)), state, sequence)
        else:
            made[name] = _called(f, f.jit(lambda w, s, x, f=f: what(f, case, w, s, x)), weights, state, sequence)
    want = jax.tree_util.tree_leaves(made["JAX"]())
    for name in made:
        for a, b in zip(hg.tree.leaves(made[name]()), want, strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-3, atol=1e-3, err_msg=name)
    if case.module is not None:
        made["torch"] = _of_torch(case, arrays[1], arrays[2])
    return made, case.training


def _called(f: Framework, function: Any, *args: Any) -> Callable[[], Any]:
    return lambda: f.wait(function(*args))


def _of_torch(case: Case, state: list[np.ndarray], sequence: np.ndarray) -> Callable[[], Any]:
    module = case.module(sequence.shape[-1], state[0].shape[-1])
    x, given = torch.from_numpy(sequence), tuple(torch.from_numpy(s)[None] for s in state)
    first: Any = given if len(given) > 1 else given[0]

    def infer() -> Any:
        with torch.inference_mode():
            return module(x, first)

    def train() -> Any:
        module.zero_grad()
        of = x.detach().requires_grad_(True)
        hs, last = module(of, first)
        ((hs * hs).mean() + last[-1].mean()).backward()
        return of.grad

    return train if case.training else infer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    names = ("arguments", "closed over", "JAX", "torch")
    print(f"| case | {' | '.join(names)} | ours / the best peer |\n|---|{'---:|' * (len(names) + 1)}")
    for title, case in _cases():
        if options.only not in title:
            continue
        made, training = _calls(case)
        rounds = [{name: microseconds(call) for name, call in made.items()} for _ in range(options.rounds)]
        found = {name: statistics.median(r[name] for r in rounds) for name in made}
        ratio = found["arguments" if training else "closed over"] / min(found[n] for n in ("JAX", "torch") if n in found)
        print(f"| {title} | {' | '.join(f'{found[n]:,.0f}' if n in found else '' for n in names)} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
