"""Conversion between torch's tensors and Hologram's: addresses, types, strides, lifetimes, errors; layouts as bodies and movement."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg
from hologram import dtypes
from hologram.errors import ArgumentError, DeviceError, DTypeError
from hologram.ir.strides import contiguous_strides, own_movement
from hologram_torch.bridge.element_types import dtype_of, torch_dtype_of
from hologram_torch.bridge.strided import base_of, shown
from hologram_torch.interop import from_torch, to_numpy, to_torch


@pytest.mark.parametrize("of", dtypes.ALL, ids=str)
def test_every_type_goes_both_ways_without_a_copy(of):
    dtype = torch_dtype_of(of)
    assert dtype_of(dtype) is of
    t = torch.ones(2, 3).to(dtype)
    h = from_torch(t)
    assert h.dtype == of.np
    back = to_torch(h)
    assert back.dtype is dtype
    assert back.data_ptr() == t.data_ptr()
    assert torch.equal(back, t)


def test_strides():
    t = torch.arange(12.0).reshape(3, 4)
    assert to_numpy(t.t()).strides == (4, 16)
    assert to_numpy(t[:, ::2]).ctypes.data == t.data_ptr()
    assert np.array_equal(np.asarray(from_torch(t.t())), t.t().numpy())
    assert torch.equal(to_torch(np.arange(5.0)[::-1]), torch.arange(4.0, -1, -1, dtype=torch.float64))
    assert to_torch(np.arange(6).reshape(2, 3).T).stride() == (1, 3)


def test_copies():
    t = torch.zeros(3)
    assert to_torch(from_torch(t, copy=True)).data_ptr() != t.data_ptr()
    h = hg.tensor([1.0, 2.0])
    to_torch(h, copy=True).add_(1)
    assert h.tolist() == [1.0, 2.0]


def test_pending_conjugations_and_gradients():
    t = torch.tensor([1 + 2j, 3 - 1j]).conj()
    assert np.array_equal(to_numpy(t), [1 - 2j, 3 + 1j])
    assert np.array_equal(to_numpy(torch.ones(2, requires_grad=True) * 2), [2.0, 2.0])


@pytest.mark.parametrize("torch_first", [True, False])
def test_either_side_may_be_freed_first(torch_first):
    t = torch.full((1 << 16,), 3.0)
    h = from_torch(t)
    back = to_torch(h)
    del t
    if torch_first:
        del back
        gc.collect()
        assert float(h.sum()) == 3.0 * (1 << 16)
    else:
        del h
        gc.collect()
        assert back.sum() == 3.0 * (1 << 16)


def test_memory_is_freed_by_another_thread():
    box = [to_torch(hg.tensor(np.ones(1 << 16)) + 1)]
    t = threading.Thread(target=box.clear)
    t.start()
    t.join()
    assert not box


def test_errors():
    with pytest.raises(DeviceError, match="meta"):
        to_numpy(torch.empty(3, device="meta"))
    with pytest.raises(ArgumentError, match="sparse"):
        to_numpy(torch.eye(3).to_sparse())
    with pytest.raises(DTypeError, match="float8"):
        from_torch(torch.zeros(2, dtype=torch.float8_e4m3fnuz))
    with pytest.raises(ArgumentError, match="not a list"):
        from_torch([1, 2])
    with pytest.raises(DTypeError):
        to_torch(np.array(["a"]))


@st.composite
def views(draw) -> torch.Tensor:
    """A tensor that is a permutation, slice or broadcast of another, with elements that differ."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    t = torch.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    t = t.permute(draw(st.permutations(range(t.ndim))))
    for axis in range(t.ndim):
        start = draw(st.integers(0, t.shape[axis] - 1))
        t = t.narrow(axis, start, draw(st.integers(1, t.shape[axis] - start)))
    if draw(st.booleans()):
        t = t[:, None].expand(t.shape[0], draw(st.integers(1, 3)), *t.shape[1:])
    return t[(slice(None),) * draw(st.integers(0, t.ndim - 1)) + (slice(None, None, draw(st.integers(1, 2))),)]


@given(views())
def test_a_layout_shows_the_tensor(t):
    layout = own_movement(tuple(t.shape), t.stride())
    if layout is None:
        return
    memory = np.arange(1.0, 1 + np.prod(layout.base), dtype=np.float32)
    flat = to_numpy(torch.as_strided(t, (t.untyped_storage().nbytes() // 4 - t.storage_offset(),), (1,)))
    n = min(len(flat), len(memory))
    memory[:n] = flat[:n]
    body = memory.reshape(layout.base)
    assert np.array_equal(np.asarray(shown(layout, hg.tensor(body))), to_numpy(t))
    if layout.is_dense:
        assert np.array_equal(np.asarray(base_of(layout, shown(layout, hg.tensor(body)))), body)


def test_layouts_that_are_no_slices_of_rows():
    assert own_movement((3, 3), (1, 1)) is None
    assert own_movement((4,), (2,)) is None
    assert own_movement((2, 3), (4, 1)).base == (2, 4)
    assert contiguous_strides((2, 3, 4)) == (12, 4, 1)
