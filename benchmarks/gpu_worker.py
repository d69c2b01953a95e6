"""One framework on a GPU, in a process of its own: ``python -m benchmarks.gpu_worker FRAMEWORK DEVICE SCALE SECONDS``.

Reads a case's name a line and answers with a line of JSON: ``time`` and ``host``, seconds of a call and until it returns to its caller, medians, and
``first``, those of the first call; or ``error``. The name ``first call`` asks for ``start``, the seconds until there is an array on the device, and
``first``, those of the first call of gelu: the process is then to be a fresh one, with empty caches.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.gpu_cases import CASES, Case, Framework, elements

FIRST = "first call"
BLOCK = 1 << 20  # random numbers, of which arrays are made on the device
GROUP_SECONDS, MAX_CALLS = 0.01, 20  # of a group of calls that is waited for as a whole
WARM_UP = 4  # calls: the first compiles, the second captures


class Runner(NamedTuple):
    """``block`` is an array of numbers on the device, and ``array(shape, dtype)`` one of these; ``compiled(case, function)`` is what is called;
    ``wait(result)`` returns when all is done."""

    framework: Framework
    block: Any
    array: Callable[[tuple[int, ...], str], Any]
    compiled: Callable[[Case, Callable[..., Any]], Callable[..., Any]]
    wait: Callable[[Any], Any]


def _numbers() -> np.ndarray:
    return np.random.default_rng(0).random(BLOCK, np.float32)


def _by_all(grad: Callable[..., Any], f: Callable[..., Any]) -> Callable[..., Any]:
    """The derivative of ``f`` by all its arguments."""
    return lambda *arrays: grad(f, argnums=tuple(range(len(arrays))))(*arrays)


def hologram(device: str, own: bool = False) -> Runner:
    """``own``: products are never left to a library."""
    import hologram as hg
    import hologram.numpy as hnp
    from hologram.backends.cuda import library

    if own:
        library.MIN_FLOPS = float("inf")
    block = hg.device_put(_numbers(), device)

    def array(shape: tuple[int, ...], dtype: str) -> Any:
        count = elements(shape)
        rows = -(-count // BLOCK)
        many = hg.jit(lambda b: hnp.reshape(hnp.astype(hnp.reshape(hnp.broadcast_to(b, (rows, BLOCK)), (-1,))[:count], dtype), shape), device=device)
        return many(block)

    def compiled(case: Case, f: Callable[..., Any]) -> Callable[..., Any]:
        return hg.jit(_by_all(hg.grad, f) if case.gradient else f, device=device)

    return Runner(Framework(hnp, hg.nn.dot_product_attention), block, array, compiled, hg.block_until_ready)


def torch(device: str, compile_: bool) -> Runner:
    import torch

    if not torch.cuda.is_available():
        raise RuntimeError("PyTorch sees no GPU")
    block = torch.from_numpy(_numbers()).to("cuda")

    def array(shape: tuple[int, ...], dtype: str) -> Any:
        count = elements(shape)
        return block.expand(-(-count // BLOCK), BLOCK).reshape(-1)[:count].to(getattr(torch, dtype)).reshape(shape).contiguous()

    def compiled(case: Case, f: Callable[..., Any]) -> Callable[..., Any]:
        g = torch.compile(f) if compile_ else f
        if not case.gradient:
            return g

        def gradient(*arrays: Any) -> Any:
            return torch.autograd.grad(g(*(a.requires_grad_() for a in arrays)), arrays)

        return gradient

    attention = torch.nn.functional.scaled_dot_product_attention
    return Runner(Framework(torch, attention), block, array, compiled, lambda y: torch.cuda.synchronize())


def jax(device: str) -> Runner:
    import jax
    import jax.numpy as jnp

    if jax.default_backend() == "cpu":
        raise RuntimeError("JAX sees no GPU")
    jax.config.update("jax_default_matmul_precision", "highest")  # float32 as such, as the others have it: not TF32
    block = jax.device_put(_numbers())

    def array(shape: tuple[int, ...], dtype: str) -> Any:
        count = elements(shape)
        rows = -(-count // BLOCK)
        return jax.jit(lambda b: jnp.broadcast_to(b, (rows, BLOCK)).reshape(-1)[:count].astype(dtype).reshape(shape))(block)

    def compiled(case: Case, f: Callable[..., Any]) -> Callable[..., Any]:
        return jax.jit(_by_all(jax.grad, f) if case.gradient else f)

    def attention(q: Any, k: Any, v: Any) -> Any:  # which has heads after tokens
        return jax.nn.dot_product_attention(*(jnp.swapaxes(x, 1, 2) for x in (q, k, v))).swapaxes(1, 2)

    return Runner(Framework(jnp, attention), block, array, compiled, jax.block_until_ready)


RUNNERS: dict[str, Callable[[str], Runner]] = {
    "hologram": hologram,
    "own kernels": lambda device: hologram(device, own=True),
    "jax": jax,
    "torch.compile": lambda device: torch(device, True),
    "torch": lambda device: torch(device, False),
}


def measured(runner: Runner, case: Case, n: int, seconds: float) -> dict[str, float]:
    f, shapes = case.make(runner.framework, n)
    arrays = [runner.array(s, case.dtype) for s in shapes]
    runner.wait(arrays)
    call = runner.compiled(case, f)
    start = time.perf_counter()
    runner.wait(call(*arrays))
    first = time.perf_counter() - start
    for _ in range(WARM_UP):
        start = time.perf_counter()
        runner.wait(call(*arrays))
        once = time.perf_counter() - start
    count = max(1, min(MAX_CALLS, int(GROUP_SECONDS / once)))
    whole: list[float] = []
    host: list[float] = []
    end = time.perf_counter() + seconds
    while len(whole) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(count):
            result = call(*arrays)
        returned = time.perf_counter()
        runner.wait(result)
        whole.append((time.perf_counter() - start) / count)
        host.append((returned - start) / count)
    return {"time": statistics.median(whole), "host": statistics.median(host), "first": first}


def first_call(framework: str, device: str) -> dict[str, float]:
    """Seconds until there is an array on the device, and of the first call of gelu, waited for."""
    start = time.perf_counter()
    runner = RUNNERS[framework](device)
    f, _ = CASES["gelu"].make(runner.framework, BLOCK)
    runner.wait(runner.block)
    ready = time.perf_counter()
    runner.wait(runner.compiled(CASES["gelu"], f)(runner.block))
    return {"start": ready - start, "first": time.perf_counter() - ready}


def main(framework: str, device: str, scale: str, seconds: str) -> None:
    runner: Runner | None = None
    for line in sys.stdin:
        name = line.strip()
        try:
            if name == FIRST:
                answer: dict[str, Any] = first_call(framework, device)
            else:
                runner = runner or RUNNERS[framework](device)
                answer = measured(runner, CASES[name], 1 << int(scale), float(seconds))
        except Exception as e:  # a framework's failure is its result
            answer = {"error": f"{type(e).__name__}: {e}".splitlines()[0][:200]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
