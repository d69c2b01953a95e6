"""device="hologram": sequences of views and of operations in place do to every tensor what they do on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
import hologram_torch
from hologram.errors import ArgumentError
from hologram.ir.strides import Strided, movement
from hologram_torch.bridge.strided import read_view, write_view

DEVICE = hologram_torch.device()
Draw = Callable[[Any], Any]


def _axis(x: torch.Tensor, draw: Draw) -> int:
    return draw(st.integers(0, x.ndim - 1))


def _sliced(x: torch.Tensor, draw: Draw) -> Any:
    axis, n = _axis(x, draw), draw(st.integers(0, 2))
    length = x.shape[axis]
    start = draw(st.integers(0, length))
    part = slice(start, draw(st.integers(start, length)), n + 1)
    return lambda t: t[(slice(None),) * axis + (part,)]


def _selected(x: torch.Tensor, draw: Draw) -> Any:
    axis = _axis(x, draw)
    at = draw(st.integers(0, x.shape[axis] - 1)) if x.shape[axis] else None
    return (lambda t: t.select(axis, at)) if at is not None else (lambda t: t.detach())


def _permuted(x: torch.Tensor, draw: Draw) -> Any:
    order = draw(st.permutations(range(x.ndim)))
    return lambda t: t.permute(order)


def _unfolded(x: torch.Tensor, draw: Draw) -> Any:
    axis = _axis(x, draw)
    size = draw(st.integers(1, 2))
    return (lambda t: t.unfold(axis, size, 1)) if x.shape[axis] >= size else (lambda t: t.detach())


VIEWS: list[Callable[[torch.Tensor, Draw], Any]] = [
    _sliced,
    _selected,
    _permuted,
    _unfolded,
    lambda x, draw: lambda t: t.reshape(-1),
    lambda x, draw: lambda t: t.diagonal() if t.ndim > 1 else t.unsqueeze(0),
    lambda x, draw: lambda t: t.unsqueeze(-1).expand(*t.shape, 2) if t.ndim < 5 else t.detach(),
    lambda x, draw: lambda t: t * 2 + 1,
    lambda x, draw: lambda t: t.detach().transpose_(0, -1),
]


def _added(x: torch.Tensor, draw: Draw) -> Any:
    n = draw(st.integers(1, 9))
    return lambda t: t.add_(n)


CHANGES: list[Callable[[torch.Tensor, Draw], Any]] = [
    _added,
    lambda x, draw: lambda t: t.mul_(t.clone() + 1).remainder_(89),
    lambda x, draw: lambda t: t.copy_(t.flip(0)),
    lambda x, draw: lambda t: t.masked_fill_(t > 5, 3),
    lambda x, draw: lambda t: t[..., :1].zero_(),
]


def _overlaps(x: torch.Tensor) -> bool:
    """Whether elements of ``x`` share memory: what writing to it does is then not defined."""
    places = np.zeros((), int)
    for n, s in zip(x.shape, x.stride(), strict=True):
        places = places[..., None] + np.arange(n) * s
    return len(np.unique(places)) < x.numel()


@given(st.data())
def test_views_and_changes_alias_as_on_the_cpu(data: st.DataObject) -> None:
    draw = data.draw
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    here = torch.arange(float(np.prod(shape))).reshape(shape)
    pairs = [(here, here.to(DEVICE))]
    for _ in range(draw(st.integers(1, 10))):
        here, there = pairs[draw(st.integers(0, len(pairs) - 1))]
        if not here.ndim:
            continue
        if draw(st.booleans()):
            step = draw(st.sampled_from(VIEWS))(here, draw)
            pairs.append((step(here), step(there)))
        elif not _overlaps(here):
            step = draw(st.sampled_from(CHANGES))(here, draw)
            step(here), step(there)
    for here, there in pairs:
        assert here.shape == there.shape and torch.equal(here, there.cpu())


@pytest.mark.parametrize(
    ("shape", "size", "stride", "offset"),
    [
        ((10, 7), (4, 7), (21, 1), 0),  # every third row of ten: the last part of an axis is missing
        ((10, 7), (3, 2), (21, 2), 8),
        ((4, 6), (6, 4), (1, 6), 0),
        ((4, 6), (8,), (3,), 2),
        ((2, 3, 4), (3, 2), (4, 12), 3),
        ((12,), (3, 2, 2), (4, 2, 1), 0),
        ((5, 5), (5,), (6,), 0),
    ],
)
def test_views_are_slices_of_the_array_under_some_shape(shape: Any, size: Any, stride: Any, offset: int) -> None:
    array = np.arange(np.prod(shape))
    wanted = torch.from_numpy(array).as_strided(size, stride, offset)
    view = Strided(size, stride, offset)
    assert movement(view, shape) is not None
    x = hg.tensor(array.reshape(shape))
    assert read_view(x, view).tolist() == wanted.tolist()
    changed = write_view(x, view, -1 - hg.tensor(wanted.numpy()))
    wanted.copy_(-1 - wanted)
    assert changed.tolist() == array.reshape(shape).tolist()


def test_windows_that_overlap_are_read_by_index() -> None:
    view = Strided((4, 2), (1, 1))
    assert movement(view, (5,)) is None
    assert read_view(hg.tensor(np.arange(5)), view).tolist() == [[0, 1], [1, 2], [2, 3], [3, 4]]
    with pytest.raises(ArgumentError, match="clone"):
        write_view(hg.tensor(np.arange(5)), Strided((2, 5), (0, 1)), hg.tensor(np.zeros((2, 5), int)))


def test_gradients_pass_through_views_changed_in_place() -> None:
    found = []
    for device in (DEVICE, torch.device("cpu")):
        p = torch.arange(1.0, 7, device=device).reshape(2, 3).requires_grad_()
        q = p * p
        q[0].mul_(3)
        q.t()[1:].add_(p.t()[1:])
        (q.view(-1)[::2] ** 2).sum().backward()
        assert p.grad is not None
        found.append(p.grad.cpu())
    assert torch.equal(*found)


def test_what_autograd_has_saved_may_not_change() -> None:
    p = torch.ones(3, device=DEVICE, requires_grad=True)
    q = p.exp()
    q[:1].add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        q.sum().backward()


def test_no_grad_and_inference_mode() -> None:
    x = torch.ones(3, device=DEVICE, requires_grad=True)
    with torch.no_grad():
        x[1:] += 1
    assert x.tolist() == [1, 2, 2] and x.grad_fn is None
    with torch.inference_mode():
        y = x * 2
        y[0] -= 1
    assert y.tolist() == [1, 4, 4] and y.is_inference()


def test_resizing() -> None:
    x = torch.arange(6, device=DEVICE)
    row = x[:3]
    x.resize_(2, 2).zero_()
    assert row.tolist() == [0, 0, 0]
    assert torch.arange(2, device=DEVICE).resize_(4)[:2].tolist() == [0, 1]
    out = torch.empty(0, device=DEVICE)
    assert torch.add(torch.ones(2, device=DEVICE), 1, out=out) is out and out.tolist() == [2, 2]
