"""The digits: the example learns to read, in few kernels, and draws what it misread."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import image

import hologram as hg
from examples import digits


def test_it_learns_to_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    learn, test = digits.load(rng)
    layers, losses = digits.train(learn, 5, rng)
    assert losses[-1] < losses[0] / 4
    assert digits.accuracy(layers, test) >= 0.9
    path = tmp_path / "new" / "digits.png"
    digits.draw(losses, layers, test, path)
    left, right = np.split(image.imread(path)[:, :, :3], 2, axis=1)
    assert left.std() > 0.05 and right[right.shape[0] // 10 :].std() > 0.05  # the curve; the digits below their title


def test_gradients_of_the_loss_are_differences() -> None:
    rng = np.random.default_rng(1)
    layers = hg.tree.map(lambda a: a.astype(np.float64), digits.start(rng))
    x, y = rng.random((8, 64)), rng.integers(0, 10, 8)
    gradient = hg.jit(hg.grad(digits.loss))(layers, x, y)
    direction = hg.tree.map(lambda a: rng.normal(size=a.shape), layers)
    h = 1e-6
    up, down = (float(digits.loss(hg.tree.map(lambda a, d, s=s: a + s * d, layers, direction), x, y)) for s in (h, -h))
    pairs = zip(hg.tree.leaves(gradient), hg.tree.leaves(direction), strict=True)
    slope = sum(float(np.sum(np.asarray(g) * d)) for g, d in pairs)
    assert abs(slope - (up - down) / (2 * h)) < 1e-5 * abs(slope)
