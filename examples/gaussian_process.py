"""A mountain's profile from a few of its heights, by Gaussian process regression: ``python examples/gaussian_process.py``.

The data are one row of matplotlib's elevation model of the Jacksboro fault. The hyperparameters climb the log marginal likelihood, whose gradient
goes through the Cholesky factorization; the whole ascent is one jitted scan. Writes out/gaussian_process.png: what is predicted
between the heights that were seen, and how sure it is.

Source: Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, algorithm 2.1 and section 5.4.1.
"""

from __future__ import annotations

import argparse
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import hologram as hg
import hologram.numpy as hnp
from hologram import linalg

RATE = 0.1  # of Adam


class Data(NamedTuple):
    """Places, float64, in kilometres; heights, from their mean, in units of their deviation; which were seen, bool; and that deviation, in metres."""

    x: np.ndarray
    y: np.ndarray
    seen: np.ndarray
    metres: float


def load(seen: int = 80, seed: int = 0) -> Data:
    from matplotlib.cbook import get_sample_data

    with np.load(get_sample_data("jacksboro_fault_dem.npz", asfileobj=False)) as model:
        heights = model["elevation"][240].astype(np.float64)
        x = np.arange(len(heights)) * float(model["dx"]) * 111.3 * np.cos(np.radians(float(model["ymax"])))
    chosen = np.zeros(len(x), bool)
    chosen[np.random.default_rng(seed).choice(len(x), seen, replace=False)] = True
    mean, deviation = heights[chosen].mean(), heights[chosen].std()
    return Data(x, (heights - mean) / deviation, chosen, float(deviation))


def covariance(theta: Any, a: Any, b: Any) -> Any:
    """Matérn's, of smoothness 3/2, (m, n), between places (m,) and (n,). ``theta``: the logarithms of variance, length and the noise's variance."""
    distance = np.sqrt(3.0) * hnp.abs(a[:, None] - b[None, :]) / hnp.exp(theta[1])
    return hnp.exp(theta[0]) * (1.0 + distance) * hnp.exp(-distance)


def factor(theta: Any, x: Any) -> Any:
    """The Cholesky factor (n, n) of the covariance of what is seen at ``x``, noise included."""
    return linalg.cholesky(covariance(theta, x, x) + hnp.exp(theta[2]) * hnp.eye(len(x), dtype=x.dtype))


def log_likelihood(theta: Any, x: Any, y: Any) -> Any:
    """The logarithm of the probability density of heights ``y`` at ``x``, whatever the function."""
    lower = factor(theta, x)
    white = linalg.triangular_solve(lower, y, lower=True)
    return -hnp.sum(white**2) / 2 - hnp.sum(hnp.log(linalg.diagonal(lower))) - len(y) / 2 * np.log(2 * np.pi)


@hg.jit(static_argnames=("steps",))
def fit(theta: Any, x: Any, y: Any, steps: int) -> tuple[Any, Any]:
    """Where Adam's ``steps`` up the likelihood lead from ``theta``, and the likelihoods (steps,) on the way."""
    slope = hg.value_and_grad(log_likelihood)

    def step(state: tuple[Any, Any, Any], i: Any) -> tuple[tuple[Any, Any, Any], Any]:
        theta, mean, square = state
        value, g = slope(theta, x, y)
        mean, square = 0.9 * mean + 0.1 * g, 0.99 * square + 0.01 * g * g
        theta = theta + RATE * (mean / (1 - 0.9**i)) / (hnp.sqrt(square / (1 - 0.99**i)) + 1e-8)
        return (theta, mean, square), value

    theta = hnp.asarray(theta, dtype=x.dtype)
    (theta, _, _), values = hg.scan(step, (theta, hnp.zeros_like(theta), hnp.zeros_like(theta)), hnp.arange(1, steps + 1, dtype=x.dtype))
    return theta, values


@hg.jit
def predict(theta: Any, x: Any, y: Any, places: Any) -> tuple[Any, Any]:
    """Mean and standard deviation (m,) of a height to be measured at each of ``places`` (m,), given ``y`` (n,) at ``x`` (n,)."""
    lower, across = factor(theta, x), covariance(theta, x, places)
    white = linalg.triangular_solve(lower, y, lower=True)
    known = linalg.triangular_solve(lower, across, lower=True)
    variance = hnp.exp(theta[0]) + hnp.exp(theta[2]) - hnp.sum(known**2, axis=0)
    return known.T @ white, hnp.sqrt(variance)


def draw(data: Data, mean: np.ndarray, deviation: np.ndarray, values: np.ndarray, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (top, bottom) = plt.subplots(2, 1, figsize=(11, 7), height_ratios=(3, 1), layout="constrained")
    top.fill_between(data.x, *(data.metres * (mean + s * deviation) for s in (-1.96, 1.96)), alpha=0.25, label="95 % of what to expect")
    top.plot(data.x, data.metres * mean, label="predicted")
    top.plot(data.x, data.metres * data.y, color="black", linewidth=0.8, label="the mountain")
    top.plot(data.x[data.seen], data.metres * data.y[data.seen], "o", markersize=4, color="black", label="seen")
    top.set(xlabel="km", ylabel="m above the mean", title="a profile across the Jacksboro fault")
    top.legend(ncols=4)
    bottom.plot(values)
    bottom.set(xlabel="step", ylabel="log marginal likelihood")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seen", type=int, default=80, help="how many of the 403 heights are seen")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("out/gaussian_process.png"))
    options = parser.parse_args()
    if find_spec("matplotlib") is None:
        parser.exit(1, "this example needs matplotlib: pip install '.[demo]'\n")

    data = load(options.seen, options.seed)
    x, y, hidden = data.x[data.seen], data.y[data.seen], ~data.seen
    start = np.zeros(3)
    hg.block_until_ready(fit(start, x, y, options.steps))  # compiles
    before = time.perf_counter()
    theta, values = (np.asarray(a) for a in fit(start, x, y, options.steps))
    seconds = time.perf_counter() - before
    mean, deviation = (np.asarray(a) for a in predict(theta, x, y, data.x))
    error = data.metres * np.sqrt(np.mean((mean - data.y)[hidden] ** 2))
    lines = data.metres * np.sqrt(np.mean((np.interp(data.x, x, y) - data.y)[hidden] ** 2))
    inside = np.mean(np.abs(mean - data.y)[hidden] < 1.96 * deviation[hidden])
    height, length, noise = np.exp(theta[0] / 2) * data.metres, np.exp(theta[1]), np.exp(theta[2] / 2) * data.metres
    print(f"{options.steps} steps of value and gradient: {seconds:.3f} s, {seconds / options.steps * 1e6:.0f} us each")
    print(f"log marginal likelihood: {values[0]:.1f} -> {values[-1]:.1f}")
    print(f"heights vary by {height:.0f} m over {length:.2f} km, noise {noise:.1f} m")
    print(f"root mean square error of the heights not seen: {error:.1f} m (straight lines between the seen: {lines:.1f} m)")
    print(f"{inside:.0%} of them lie where 95 % were to be expected")
    draw(data, mean, deviation, values, options.output)
    print(f"wrote {options.output}")


if __name__ == "__main__":
    main()
