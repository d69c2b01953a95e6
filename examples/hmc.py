"""What is known of the weights of a logistic regression, by Hamiltonian Monte Carlo: ``python examples/hmc.py``.

The data are scikit-learn's 569 tumours of the breast, each benign or malignant, with ten measured means. ``hg.grad`` of the log posterior drives
the sampler, and the whole chain, its adaptation included, is one jitted scan. Writes out/hmc.png: the posterior beside scikit-learn's fit.
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
from hologram import nn, random

LEAPS = 12  # steps of the leapfrog method for one proposal
WANTED = 0.8  # the acceptance that the size of these steps is adapted to (Hoffman and Gelman 2014)


class Data(NamedTuple):
    """Measurements, float64 (n, k), each of mean 0 and deviation 1; diagnoses, float64 (n,), 1 for benign; and the measurements' names."""

    x: np.ndarray
    y: np.ndarray
    names: list[str]


def load(measurements: int = 10) -> Data:
    from sklearn.datasets import load_breast_cancer

    table = load_breast_cancer()
    x = table.data[:, :measurements]
    return Data((x - x.mean(0)) / x.std(0), table.target.astype(np.float64), [str(n) for n in table.feature_names[:measurements]])


def log_posterior(weights: Any, x: Any, y: Any) -> Any:
    """Up to a constant, for weights (k + 1,), the intercept first: a normal prior of deviation 1 on all but the intercept."""
    logits = weights[0] + x @ weights[1:]
    return -hnp.sum(nn.softplus(hnp.where(y > 0, -logits, logits))) - hnp.sum(weights[1:] ** 2) / 2


def propose(place: Any, momentum: Any, size: Any, log_density: Any) -> tuple[Any, Any]:
    """Where the Hamiltonian motion leads from ``place``: ``LEAPS`` steps of the leapfrog method."""
    force = hg.grad(log_density)

    def leap(_: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        place, momentum = state
        place = place + size * momentum
        return place, momentum + size * force(place)

    place, momentum = hg.fori_loop(0, LEAPS, leap, (place, momentum + size / 2 * force(place)))
    return place, momentum - size / 2 * force(place)


@hg.jit(static_argnames=("draws", "warm_up"))
def chain(key: Any, x: Any, y: Any, draws: int, warm_up: int) -> tuple[Any, Any]:
    """Weights (draws, k + 1) and the acceptance probabilities (draws,), after ``warm_up`` steps that adapt the size of the leaps."""

    def log_density(weights: Any) -> Any:
        return log_posterior(weights, x, y)

    def step(state: tuple[Any, Any], given: tuple[Any, Any]) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        (place, log_size), (key, rate) = state, given
        for_momentum, for_size, for_choice = random.split(key, 3)
        momentum = random.normal(for_momentum, place.shape, place.dtype)
        size = hnp.exp(log_size) * random.uniform(for_size, (), place.dtype, 0.8, 1.2)  # steps all alike could go in circles
        there, arriving = propose(place, momentum, size, log_density)
        gain = log_density(there) - log_density(place) - (hnp.sum(arriving**2) - hnp.sum(momentum**2)) / 2
        accepted = hnp.exp(hnp.minimum(gain, 0.0))
        place = hnp.where(random.uniform(for_choice, (), place.dtype) < accepted, there, place)
        return (place, log_size + rate * (accepted - WANTED)), (place, accepted)

    rates = np.concatenate([1 / np.sqrt(1 + np.arange(warm_up)), np.zeros(draws)])
    start = (hnp.zeros(x.shape[1] + 1, dtype=x.dtype), hnp.log(hnp.asarray(0.1, dtype=x.dtype)))
    _, (places, accepted) = hg.scan(step, start, (random.split(key, warm_up + draws), rates))
    return places[warm_up:], accepted[warm_up:]


def effective_size(draws: np.ndarray) -> np.ndarray:
    """How many independent draws (n, k) are worth, for each column: by the autocorrelation up to where pairs turn negative (Geyer 1992)."""
    n = len(draws)
    spectrum = np.fft.rfft(draws - draws.mean(0), 2 * n, axis=0)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, axis=0)[: n - n % 2]
    pairs = (covariance[0::2] + covariance[1::2]) / covariance[0]
    positive = np.cumprod(pairs > 0, axis=0)
    return n / (2 * np.sum(pairs * positive, axis=0) - 1)


def fit(data: Data) -> np.ndarray:
    """scikit-learn's weights, the intercept first: the maximum of the posterior."""
    from sklearn.linear_model import LogisticRegression

    found = LogisticRegression(C=1.0, tol=1e-8, max_iter=1000).fit(data.x, data.y)
    return np.concatenate([found.intercept_, found.coef_[0]])


def draw(draws: np.ndarray, best: np.ndarray, names: list[str], path: Path) -> None:
    """Where each weight lies with probability 0.9, and the way of the chain through two of them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5.5), layout="constrained")
    rows = np.arange(len(best))
    low, high = np.quantile(draws, (0.05, 0.95), axis=0)
    left.hlines(rows, low, high, linewidth=3, alpha=0.5, label="90 % of the posterior")
    left.plot(draws.mean(0), rows, "o", label="mean of the posterior")
    left.plot(best, rows, "x", color="black", label="scikit-learn's fit, its maximum")
    left.axvline(0, color="grey", linewidth=0.8)
    left.set(title="weights: above 0 speaks for benign", yticks=rows, yticklabels=["intercept", *names])
    left.invert_yaxis()
    figure.legend(loc="outside lower left", ncols=3)
    a, b = np.unravel_index(np.argmin(np.corrcoef(draws[:, 1:].T)), (len(best) - 1,) * 2)
    right.plot(draws[:, a + 1], draws[:, b + 1], ".", markersize=3, alpha=0.3)
    right.plot(best[a + 1], best[b + 1], "x", color="black")
    right.set(title="draws of the two weights that stand in for each other most", xlabel=f"weight of {names[a]}", ylabel=f"weight of {names[b]}")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--warm-up", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("out/hmc.png"))
    options = parser.parse_args()
    if not all(map(find_spec, ("matplotlib", "sklearn"))):
        parser.exit(1, "this example needs matplotlib and scikit-learn: pip install '.[demo]'\n")

    data, key = load(), random.key(options.seed)
    hg.block_until_ready(chain(key, data.x, data.y, options.draws, options.warm_up))  # compiles
    before = time.perf_counter()
    draws, accepted = (np.asarray(a) for a in chain(key, data.x, data.y, options.draws, options.warm_up))
    seconds = time.perf_counter() - before
    sizes, best = effective_size(draws), fit(data)
    gradients = (options.draws + options.warm_up) * (LEAPS + 2)
    print(f"{options.draws} draws after {options.warm_up} to adapt: {seconds:.2f} s, {seconds / gradients * 1e6:.1f} us a gradient")
    print(f"accepted: {accepted.mean():.1%}; effective sample size: {sizes.min():.0f} to {sizes.max():.0f}\n")
    print(f"{'weight':24}{'mean':>8}{'deviation':>11}{'scikit-learn':>14}{'effective':>11}")
    for name, mean, deviation, point, size in zip(["intercept", *data.names], draws.mean(0), draws.std(0), best, sizes, strict=True):
        print(f"{name:24}{mean:8.2f}{deviation:11.2f}{point:14.2f}{size:11.0f}")
    draw(draws, best, data.names, options.output)
    print(f"\nwrote {options.output}")


if __name__ == "__main__":
    main()
