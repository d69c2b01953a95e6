"""Convolutions of symbolic extents: their derivatives have the bits of static programs, whatever steps, dilations and sizes are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import nn
from tests.support.comparing import same

PROBLEMS = [  # window, stride, padding, dilation, and extents
    (3, 2, 1, 1, (4, 14)),
    (1, 2, 0, 1, (2, 8)),  # a phase without any place
    (2, 4, 1, 1, (2, 17)),
    (5, 3, 4, 1, (2, 19)),
    (3, 3, 2, 2, (4, 12)),
    (2, 2, 1, 3, (2, 15)),
    (3, 2, 2, 2, (3, 17)),  # only every second element is in a window
    (3, 6, 3, 4, (3, 19)),
    (1, 4, 0, 6, (2, 9)),
]


def _inputs(seed: int, extent: int, window: int) -> tuple[np.ndarray, np.ndarray]:
    """Images and weights, of which some are infinite or negative zeros: products of zeros show."""
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal((2, 3, extent)).astype(np.float32), rng.standard_normal((3, 3, window)).astype(np.float32)
    x[0, 0, 1], w[0, 0, 0] = -0.0, np.inf
    return x, w


def _programs(stride: int, padding: int, dilation: int) -> dict[str, Callable[[Any, Any], Any]]:
    def convolution(x: Any, w: Any) -> Any:
        return nn.conv1d(x, w, stride=stride, padding=padding, dilation=dilation)

    def derivatives(x: Any, w: Any) -> Any:
        y, pull = hg.vjp(convolution, x, w)
        return pull(hnp.where(y > 0.5, -0.0, y))

    def second(x: Any, w: Any) -> Any:
        y, pull = hg.vjp(derivatives, x, w)
        return pull(y)

    def transposed(x: Any, w: Any) -> Any:
        return nn.conv_transpose1d(x, w, stride=stride, dilation=dilation)

    return {"derivatives": derivatives, "second": second, "transposed": transposed}


def _assert_static_bits(f: Callable[..., Any], dynamic: Any, calls: list[tuple[np.ndarray, ...]]) -> None:
    symbolic, static = (hg.jit(f, precision="exact", dynamic=d) for d in (dynamic, False))
    for arrays in calls:
        same(symbolic(*arrays), static(*arrays))


Problem = tuple[int, int, int, int, tuple[int, ...]]


def _test_symbolic_extents(problem: Problem, name: str) -> None:
    window, stride, padding, dilation, extents = problem
    f = _programs(stride, padding, dilation)[name]
    _assert_static_bits(f, {0: (2,)}, [_inputs(i, n, window) for i, n in enumerate(extents)])


@pytest.mark.crossed
@pytest.mark.parametrize("name", ["derivatives", "transposed"])
@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_steps_over_symbolic_extents(problem: Problem, name: str) -> None:
    _test_symbolic_extents(problem, name)


def test_second_derivatives_over_symbolic_extents() -> None:
    _test_symbolic_extents((2, 2, 1, 3, (2, 3, 15)), "second")


def test_everything_may_be_symbolic() -> None:
    """Weights too; a window that is shorter than a step has phases without places."""
    f = _programs(4, 3, 1)["derivatives"]
    _assert_static_bits(f, True, [_inputs(i, n, window) for i, (n, window) in enumerate([(11, 2)])])


def test_two_axes_of_which_one_is_symbolic() -> None:
    def f(x: Any, w: Any) -> Any:
        y, pull = hg.vjp(lambda x, w: nn.conv2d(x, w, stride=(2, 3), padding=(1, 0), dilation=(1, 2)), x, w)
        return pull(-y), nn.conv_transpose2d(x, w, stride=(2, 3), output_padding=1)

    rng = np.random.default_rng(0)
    w = rng.standard_normal((2, 2, 3, 2)).astype(np.float32)
    w[0, 0, 0] = np.inf
    shapes = [(2, 2, 7, 8), (2, 2, 7, 11)]
    _assert_static_bits(f, {0: (3,)}, [(rng.standard_normal(s).astype(np.float32), w) for s in shapes])
