"""Arrays whose windows in a loop lie along an inner axis are transposed around the loop, and mean what they meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.settings import override

Function = Callable[..., Any]
LEVELS = 40
A = np.random.default_rng(0).standard_normal((12, 14, LEVELS))


def _is_arranged(f: Function, *args: Any) -> bool:
    text = hg.jit(f).lower(*args).as_text("loop_layout")
    return f"[{LEVELS}, 12, 14]" in text


def _constant(a: Any) -> Any:
    return hg.fori_loop(0, LEVELS, lambda k, s: s * 0.5 + a[:, :, k], hnp.zeros((12, 14), dtype=a.dtype))


def _carry(a: Any) -> Any:
    return hg.fori_loop(1, LEVELS, lambda k, x: x.at[:, :, k].set(0.5 * x[:, :, k - 1] + a[:, :, k]), a * 2)


def _back(a: Any) -> Any:
    return hg.fori_loop(0, LEVELS - 1, lambda k, x: x.at[:, :, LEVELS - 2 - k].add(x[:, :, LEVELS - 1 - k] * 0.5), a)


def _twice(a: Any) -> Any:
    def step(k: Any, s: Any) -> Any:
        p, q = s
        p = p.at[:, :, k].multiply(a[:, :, k])
        return p, q.at[:, :, k].set(p[:, :, k] + q[:, :, k - 1])

    return hg.fori_loop(1, LEVELS, step, (a, hnp.cos(a)))


def _stacked(a: Any) -> Any:
    def step(s: Any, x: Any) -> Any:
        k, y = s
        return (k + 1, y.at[:, :, k].set(x + y[:, :, k])), y[:, :, k].sum()

    return hg.scan(step, (0, a), np.arange(LEVELS) * 1.0)


def _gradient(a: Any) -> Any:
    return hg.grad(lambda a: (_carry(a) ** 2).sum())(a)


def _nested(a: Any) -> Any:
    return hg.fori_loop(0, 3, lambda _, x: _carry(x), a)


@pytest.mark.parametrize("f", [_constant, _carry, _back, _twice, _stacked, _gradient, _nested])
def test_windows_become_stretches_of_memory(f: Function) -> None:
    assert _is_arranged(f, A)
    with override(disabled_passes=("loop_layout",)):
        want = hg.jit(lambda a: f(a))(A)
    for g, w in zip(*map(hg.tree.leaves, (hg.jit(f)(A), want)), strict=True):
        np.testing.assert_array_equal(np.asarray(g), np.asarray(w))


def _wide(a: Any) -> Any:
    return hg.fori_loop(
        0, LEVELS - 1, lambda k, s: s + a[:, :, k] + hg.lax.dynamic_slice_in_dim(a, k, 2, 2).sum(), hnp.zeros((12, 14), dtype=a.dtype)
    )


def _whole(a: Any) -> Any:
    return hg.fori_loop(1, LEVELS, lambda k, x: x.at[:, :, k].set(x.sum(2)), a)


def _two_axes(a: Any) -> Any:
    return hg.fori_loop(0, 12, lambda k, s: s + a[k].sum() + a[:, :, k].sum(), 0.0)


def _few_steps(a: Any) -> Any:
    return hg.fori_loop(0, 5, lambda k, s: s + a[:, :, k].sum(), 0.0)


def _lines(a: Any) -> Any:
    return hg.fori_loop(0, 14, lambda k, s: s + a[:, k].sum(), 0.0)


@pytest.mark.parametrize("f", [_wide, _whole, _two_axes, _few_steps, _lines])
def test_other_uses_keep_the_layout(f: Function) -> None:
    assert not _is_arranged(f, A)
