"""Saved programs: ``python -m benchmarks.saved``. A model in a file, from a fresh process to its first result, beside jax.export and torch.export.

Each figure is the best of a few processes, since other processes run meanwhile. The import of the framework is not counted; a small
function has run before, so that the backend's start is not counted either.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

WIDTHS, BATCH, LAYERS = (256, 512, 512, 64), 128, 12
ROUNDS = 3


def arrays() -> tuple[list[np.ndarray], np.ndarray]:
    """Weights of ``LAYERS`` small layers between those of ``WIDTHS``, and a batch."""
    rng = np.random.default_rng(0)
    widths = [*WIDTHS[:-1], *[WIDTHS[-2]] * LAYERS, WIDTHS[-1]]
    weights = [rng.standard_normal(s).astype(np.float32) / np.float32(np.sqrt(s[0])) for s in zip(widths, widths[1:], strict=False)]
    return weights, rng.standard_normal((BATCH, WIDTHS[0])).astype(np.float32)


def model(xp: Any, weights: Any, x: Any) -> Any:
    for w in weights:
        x = x @ w
        x = 0.5 * x * (1 + xp.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))
    return x


# --- frameworks: what traces, what writes a file of it, what reads one ------------------------------------------------


def hologram(path: Path) -> tuple[Callable[[], Any], Callable[[], Any], Callable[[], Any]]:
    import hologram as hg
    import hologram.numpy as hnp

    weights, x = arrays()
    f = hg.jit(lambda x: model(hnp, held, x))
    held = [hg.tensor(w) for w in weights]
    hg.block_until_ready(hg.jit(lambda x: x + 1)(x))
    return (
        lambda: hg.block_until_ready(f(x)),
        lambda: hg.export(f, x).save(path),
        lambda: hg.block_until_ready(hg.load(path)(x)),
    )


def jax(path: Path) -> tuple[Callable[[], Any], Callable[[], Any], Callable[[], Any]]:
    import jax
    import jax.export
    import jax.numpy as jnp

    weights, x = arrays()
    held, given = [jnp.asarray(w) for w in weights], jnp.asarray(x)
    f = jax.jit(lambda x: model(jnp, held, x))
    jax.block_until_ready(jax.jit(lambda x: x + 1)(given))
    return (
        lambda: jax.block_until_ready(f(given)),
        lambda: path.write_bytes(jax.export.export(f)(given).serialize()),
        lambda: jax.block_until_ready(jax.jit(jax.export.deserialize(bytearray(path.read_bytes())).call)(given)),
    )


def torch(path: Path) -> tuple[Callable[[], Any], Callable[[], Any], Callable[[], Any]]:
    import torch

    weights, x = arrays()

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = torch.nn.ParameterList([torch.from_numpy(w) for w in weights])

        def forward(self, x: Any) -> Any:
            return model(torch, self.weights, x)

    f, given = Model(), torch.from_numpy(x)
    with torch.no_grad():
        f(given[:1])

    def run(g: Any) -> Any:
        with torch.no_grad():
            return g(given)

    return (
        lambda: run(f),
        lambda: torch.export.save(torch.export.export(f, (given,)), path),
        lambda: run(torch.export.load(path).module()),
    )


FRAMEWORKS = {f.__name__: f for f in (hologram, jax, torch)}
ACTIONS = ("call", "save", "load")


def measure(framework: str, action: str, path: Path, cache: Path) -> dict[str, Any]:
    """Milliseconds of an action in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.saved", framework, action, str(path)]
    environment = os.environ | {"HOLOGRAM_CACHE_DIR": str(cache)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def row(framework: str, folder: Path) -> str:
    """A line of the table."""
    path = folder / "model"

    def best(action: str, warm: bool = False) -> float:
        found = []
        for i in range(ROUNDS):
            cache = folder / ("warm" if warm else f"{action}{i}")
            cache.mkdir(mode=0o700, exist_ok=True)
            found.append(measure(framework, action, path, cache)["milliseconds"])
        return min(found)

    called, saved, loaded = (best(a) for a in ACTIONS)
    again = f"{best('load', warm=True):.0f}" if framework == "hologram" else ""
    return f"| {framework} | {called:.0f} | {saved:.0f} | {path.stat().st_size:,} | {loaded:.0f} | {again} |"


def table() -> None:
    print("| framework | first call, traced | write a file | bytes | read it and first call | the same, compiled before |")
    print("|---|---|---|---|---|---|")
    for framework in FRAMEWORKS:
        with tempfile.TemporaryDirectory() as folder:
            try:
                print(row(framework, Path(folder)), flush=True)
            except RuntimeError as e:
                print(f"| {framework} | {e} |", flush=True)


def main(arguments: list[str]) -> None:
    if not arguments:
        table()
        return
    framework, action, path = arguments
    act = FRAMEWORKS[framework](Path(path))[ACTIONS.index(action)]
    start = time.perf_counter()
    act()
    print(json.dumps({"milliseconds": 1e3 * (time.perf_counter() - start)}))


if __name__ == "__main__":
    main(sys.argv[1:])
