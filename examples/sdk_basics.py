"""The SDK in one file: ``python examples/sdk_basics.py``.

An executor, buffers in the linear pool and in pages of the 96-class pool, ops that write where they are told, and memory shared with NumPy
without a copy. Fits a line through noisy points by gradient descent, every step a few ops on buffers that stay where they are.
"""

from __future__ import annotations

import argparse

import numpy as np

import hologram as hg

SLOPE, INTERCEPT = 1.75, -0.5  # of the line that the points lie about
NOISE = 0.05


def points(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """``n`` places and the heights of noisy points there."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n).astype(np.float32)
    return x, (SLOPE * x + INTERCEPT + NOISE * rng.standard_normal(n)).astype(np.float32)


def tour(executor: hg.Executor) -> None:
    """What an executor and its buffers are."""
    linear = executor.allocate(1024)
    boundary = executor.allocate_boundary(7, width=48, height=256)
    for buffer in (linear, boundary):
        where = f"class {buffer.class_index}" if buffer.is_boundary else "a span of its own"
        print(f"{buffer.pool:9} {buffer.size:5} {buffer.dtype} at {buffer.ptr:#x}, {where}")
    view = linear.to_numpy()  # the memory itself
    linear.fill(2.0)
    hg.ops.vector_mul(executor, linear, linear, linear)
    print("seen through a view of the memory:", view[:3])
    array = np.arange(4, dtype=np.float32)
    hg.ops.scalar_mul(executor, hg.Buffer.wrap(array), hg.Buffer.wrap(array), 10.0)  # in the array's own memory
    print("a wrapped array, changed in place:", array)


def fit(executor: hg.Executor, x: np.ndarray, y: np.ndarray, steps: int, rate: float) -> tuple[float, float, float]:
    """Slope and intercept of the line with the least mean squared error, by gradient descent, and that error."""
    n, ops = x.size, hg.ops
    places, heights, error, product, guess = (executor.allocate(n) for _ in range(5))
    number = executor.allocate(3)
    places.from_numpy(x)
    heights.from_numpy(y)
    slope = intercept = loss = 0.0
    for _ in range(steps):
        ops.scalar_mul(executor, places, guess, slope)
        ops.scalar_add(executor, guess, guess, intercept)
        loss = ops.mse_loss(executor, guess, heights, number)
        ops.vector_sub(executor, guess, heights, error)
        ops.vector_mul(executor, error, places, product)
        slope -= rate * 2 / n * ops.reduce_sum(executor, product, number)
        intercept -= rate * 2 / n * ops.reduce_sum(executor, error, number)
    return slope, intercept, loss


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--points", type=int, default=10_000, help="points that the line is fitted to")
    parser.add_argument("--steps", type=int, default=60, help="steps of gradient descent")
    options = parser.parse_args()
    with hg.Executor("cpu") as executor:
        tour(executor)
        slope, intercept, loss = fit(executor, *points(options.points), options.steps, rate=0.5)
    print(f"y = {slope:.3f} x {intercept:+.3f} with a mean squared error of {loss:.5f}; drawn from y = {SLOPE} x {INTERCEPT:+} with {NOISE**2:.5f}")


if __name__ == "__main__":
    main()
