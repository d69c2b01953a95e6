"""How far whole programs are reduced: kernels launched for the operations traced, and the memory planned for what is in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp

KERNELS_PER_OPERATION = 0.25
PEAK_OVER_BOUND = 1.05


def z(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


class Program(NamedTuple):
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def rms_norm(x: Any, scale: Any) -> Any:
    return x / hnp.sqrt(hnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def softmax(x: Any) -> Any:
    e = hnp.exp(x - hnp.max(x, axis=-1, keepdims=True))
    return e / hnp.sum(e, axis=-1, keepdims=True)


def standardised(x: Any, scale: Any, shift: Any) -> Any:
    c = x - hnp.mean(x, axis=-1, keepdims=True)
    return c / hnp.sqrt(hnp.mean(c * c, axis=-1, keepdims=True) + 1e-5) * scale + shift


def momentum_step(p: Any, g: Any, m: Any, v: Any) -> Any:
    m, v = m + 0.1 * (g - m), v + 0.01 * (g * g - v)
    return p - 0.01 * m / (hnp.sqrt(v) + 1e-7), m, v


def diffused(u: Any) -> Any:
    return u[1:-1, 1:-1] + 0.1 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1])


def distances(a: Any, b: Any) -> Any:
    return hnp.sqrt(hnp.sum((a[:, None, :] - b[None, :, :]) ** 2, axis=-1))


def attracted(x: Any) -> Any:
    d = x[None, :, :] - x[:, None, :]
    return hnp.sum(d / (hnp.sum(d * d, axis=-1) + 0.01)[..., None] ** 1.5, axis=1)


def turned(pixels: Any) -> Any:
    r, g, b = (pixels[..., i] for i in range(3))
    y = 0.3 * r + 0.59 * g + 0.11 * b
    return hnp.stack([y, 0.5 + 0.56 * (b - y), 0.5 + 0.71 * (r - y)], axis=-1)


def gated(parts: list[Any]) -> Any:
    return hnp.concatenate([p * hnp.tanh(p) + 1 for p in parts])


def slices(x: Any) -> Any:
    return sum(hnp.sum(hnp.sin(x[i * 500 : (i + 1) * 500]) * (i + 1)) for i in range(6))


def walk(x: Any) -> Any:
    """A long scan alone is three kernels: totals of pages, what they carry over, and the scan."""
    c = hnp.cumulative_sum(x * hnp.exp(-x * x))
    return (hnp.exp(-hnp.abs(c) * 0.5) * x + 1) / (1 + c * c) - 0.25 * hnp.sqrt(c * c + 1)


def network(p: list[Any], x: Any, y: Any) -> Any:
    for w, b in p[:-1]:
        x = hnp.tanh(hnp.matmul(x, w) + b)
    w, b = p[-1]
    return hnp.mean((hnp.matmul(x, w) + b - y) ** 2)


def looked_at(q: Any, k: Any, v: Any) -> Any:
    return hnp.matmul(softmax(hnp.matmul(q, hnp.swapaxes(k, -1, -2)) * 0.125), v)


LAYERS = [(z(64, 96), z(96)), (z(96, 96), z(96)), (z(96, 8), z(8))]

PROGRAMS: dict[str, Program] = {
    "swish": Program(lambda x: x / (1 + hnp.exp(-x)) * 2, (z(50_000),)),
    "rms norm": Program(rms_norm, (z(200, 512), z(512))),
    "softmax": Program(softmax, (z(200, 512),)),
    "softmax of few": Program(softmax, (z(5000, 4),)),
    "standardised": Program(standardised, (z(200, 512), z(512), z(512))),
    "log of a sum": Program(lambda x: hnp.log(hnp.sum(hnp.exp(x - hnp.max(x, -1, keepdims=True)), -1)) + hnp.max(x, -1), (z(200, 512),)),
    "momentum": Program(momentum_step, (z(50_000), z(50_000), z(50_000), z(50_000))),
    "diffusion": Program(diffused, (z(300, 300),)),
    "distances": Program(distances, (z(200, 16), z(200, 16))),
    "attraction": Program(attracted, (z(200, 3),)),
    "colours": Program(turned, (z(200, 200, 3),)),
    "pieces": Program(lambda *p: gated(list(p)), tuple(z(1000 + i) for i in range(10))),
    "slices": Program(hg.grad(slices), (z(3000),)),
    "walk": Program(walk, (z(50_000),)),
    "softmax, derivative": Program(hg.grad(lambda x, c: hnp.sum(softmax(x) * c)), (z(200, 512), z(200, 512))),
    "norm, derivative": Program(hg.grad(lambda x, s: hnp.sum(hnp.sin(rms_norm(x, s)))), (z(200, 512), z(512))),
    "network": Program(network, (LAYERS, z(128, 64), z(128, 8))),
    "network, derivative": Program(hg.grad(network), (LAYERS, z(128, 64), z(128, 8))),
    "attention": Program(looked_at, (z(2, 4, 64, 32), z(2, 4, 64, 32), z(2, 4, 64, 32))),
    "attention, derivative": Program(hg.grad(lambda q, k, v: hnp.sum(looked_at(q, k, v) ** 2)), (z(2, 4, 64, 32), z(2, 4, 64, 32), z(2, 4, 64, 32))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_few_kernels_and_no_more_memory_than_is_alive(name: str) -> None:
    program = PROGRAMS[name]
    compiled = hg.jit(program.function).lower(*program.arguments).compile()
    reduction, memory = compiled.reduction(), compiled.memory_analysis()
    assert reduction.traced >= 4
    assert reduction.kernels <= KERNELS_PER_OPERATION * reduction.traced, f"{reduction}"
    assert memory.peak <= PEAK_OVER_BOUND * memory.lower_bound, f"{memory}"


def launches(program: Callable[..., Any], *arguments: Any) -> int:
    return hg.jit(program).lower(*arguments).as_text("kernels").count("kernel(")


@pytest.mark.parametrize(("rows", "kernels"), [(64, 1), (1024, 6)])
def test_independent_work_on_large_arrays_has_kernels_of_its_own(rows: int, kernels: int) -> None:
    """A kernel that reads and writes many large arrays reads each slower than one kernel after the other would."""
    xs = [np.ones((rows, 256), np.float32) for _ in range(6)]
    programs = (lambda *xs: [hnp.exp(x) for x in xs], lambda *xs: [hnp.sum(x, axis=1) for x in xs])
    for program in programs:
        assert launches(program, *xs) == kernels


def test_arrays_that_are_shared_are_read_once() -> None:
    """Updates of many parameters: each reads and writes arrays of its own, by one kernel."""
    state = [tuple(np.ones((512, 512), np.float32) for _ in range(4)) for _ in range(5)]

    def update(p: Any, m: Any, v: Any, g: Any) -> Any:
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        return p - 1e-3 * m / (hnp.sqrt(v) + 1e-8), m, v

    assert launches(lambda *state: [update(*of) for of in state], *state) == 5
    x = np.ones((512, 512), np.float32)
    assert launches(lambda x: [x + k for k in range(20)], x) == 1
