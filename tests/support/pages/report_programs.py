"""Programs whose reports tests look at: a transformer block and its gradient, loops and branches, a chain of thousands of nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import hologram as hg
import hologram.numpy as hnp
from hologram import nn

WIDTH, HEADS, LENGTH, BATCH = 64, 4, 32, 2


def _weights(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)


def block_arguments() -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Parameters and a batch for :func:`block`."""
    rng = np.random.default_rng(0)
    names = {
        "wq": (WIDTH, WIDTH),
        "wk": (WIDTH, WIDTH),
        "wv": (WIDTH, WIDTH),
        "wo": (WIDTH, WIDTH),
        "w1": (WIDTH, 4 * WIDTH),
        "w2": (4 * WIDTH, WIDTH),
    }
    parameters = {name: _weights(rng, *shape) for name, shape in names.items()}
    return parameters, _weights(rng, BATCH, LENGTH, WIDTH)


def norm(x: Any) -> Any:
    centred = x - hnp.mean(x, axis=-1, keepdims=True)
    return centred / hnp.sqrt(hnp.mean(centred * centred, axis=-1, keepdims=True) + 1e-5)


def heads(x: Any) -> Any:
    return x.reshape(BATCH, LENGTH, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)


def block(p: Any, x: Any) -> Any:
    """A transformer block."""
    h = norm(x)
    q, k, v = heads(h @ p["wq"]), heads(h @ p["wk"]), heads(h @ p["wv"])
    weights = nn.softmax(q @ k.transpose(0, 1, 3, 2) / np.float32(4))
    x = x + (weights @ v).transpose(0, 2, 1, 3).reshape(BATCH, LENGTH, WIDTH) @ p["wo"]
    return x + nn.gelu(norm(x) @ p["w1"]) @ p["w2"]


def loss(p: Any, x: Any) -> Any:
    return hnp.mean(block(p, x) ** 2)


def block_gradient() -> Any:
    """The explanation of the block's loss and gradient."""
    return hg.explain(hg.value_and_grad(loss))(*block_arguments())


CONSTANT = hg.tensor(np.linspace(0, 1, 4096, dtype=np.float32).reshape(64, 64))


def loops(x: Any, a: Any) -> Any:
    """A scan, a branch that computes nothing, a while loop, a sort, a routine of the host, a copy, and work on constants."""

    def step(carry: Any, row: Any) -> Any:
        carry = carry @ (CONSTANT @ CONSTANT) + row
        return hnp.tanh(carry), hnp.sum(carry)

    carry, sums = hg.scan(step, x, a)
    y = hg.cond(hnp.sum(sums) > 0, lambda v: v * 2, lambda v: hnp.zeros_like(v), carry)
    _, z = hg.while_loop(lambda s: s[0] < 10, lambda s: (s[0] + 1, s[1] * 0.5), (0, y))
    return hg.linalg.inv(hnp.sort(z)), a.at[2].set(a[1] * 2)


def loops_explained() -> Any:
    return hg.explain(loops)(np.ones((64, 64), np.float32), np.ones((10, 64, 64), np.float32))


def chain(length: int) -> Callable[[Any, Any], Any]:
    """A function of ``4 * length`` operations."""

    def many(x: Any, w: Any) -> Any:
        for i in range(length):
            x = hnp.sin(x) * w + i * 1e-3
            if i % 40 == 39:
                x = x - hnp.mean(x, axis=-1, keepdims=True)
        return x

    return many


def profiled(data: dict[str, Any]) -> dict[str, Any]:
    """A profile of a program's kernels, as a profiler gives it, with times that are up to four times those of the machine's limits."""
    kernels = [k for part in data["parts"] for k in part["kernels"] if not k.get("once")]
    seconds = [100 * k["times"] * (k["least_seconds"] * (1.2 + i % 4) + 1e-6) for i, k in enumerate(kernels)]
    entries = [
        {"name": k["id"], "calls": 100 * k["times"], "seconds": s, "threads": [0.5 * s, 0.45 * s]} for k, s in zip(kernels, seconds, strict=True)
    ]
    return {"kernels": entries}


def repeated(data: dict[str, Any], times: int) -> dict[str, Any]:
    """The data of a program that runs the one of ``data``, of one part, again and again: graphs of ``times`` as many nodes."""
    (part,) = data["parts"]
    stages = [_repeated_stage(s, times) for s in part["stages"]]
    return data | {"parts": [part | {"stages": stages}]}


def _repeated_stage(stage: dict[str, Any], times: int) -> dict[str, Any]:
    nodes, inputs, n = stage["nodes"], set(stage["inputs"]), len(stage["nodes"])
    (last,) = stage["outputs"]
    out = list(nodes)
    for k in range(1, times):  # what copy k reads as an argument is the result of the copy before it
        place = [(k - 1) * n + last if i in inputs else k * n + i for i in range(n)]
        made = [{**x, "in": [place[j] for j in x["in"]]} if "in" in x else x for x in nodes]
        out += [{"op": "neg", "type": x["type"], "in": [(k - 1) * n + last]} if i in inputs else x for i, x in enumerate(made)]
    found = stage | {"nodes": out, "outputs": [(times - 1) * n + last]}
    if "groups" in stage:
        groups = [
            {**g, "nodes": [k * n + i for i in g["nodes"]], "values": [k * n + i for i in g["values"]]} for k in range(times) for g in stage["groups"]
        ]
        found["groups"] = groups
    return found
