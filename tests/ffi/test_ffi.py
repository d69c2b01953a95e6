"""The handle API: executors, buffers and ops against the SDK, tensors against NumPy, handles that are no longer any."""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram
import hologram_ffi as hg
from hologram.dlpack import VERSIONED
from hologram.errors import ArgumentError, AxisOutOfRange, DeviceError, DTypeError, FreedBufferError, HandleError, IndexOutOfRange, ShapeError
from hologram.sdk.table import ROWS


@pytest.fixture
def executor() -> Iterator[int]:
    yield hg.new_executor()
    hg.clear_all_registries()


def _buffer(executor: int, values: Any) -> int:
    array = np.asarray(values, np.float32)
    made = hg.executor_allocate_buffer(executor, array.size)
    hg.buffer_copy_from_bytes(executor, made, array.tobytes())
    return made


def _array(executor: int, buffer: int) -> np.ndarray:
    return np.frombuffer(hg.buffer_to_bytes(executor, buffer), np.float32)


def test_the_surface_is_complete() -> None:
    buffers = """length is_empty is_linear is_boundary pool element_size size_bytes class_index cleanup to_vec copy_to_slice copy_from_slice fill copy
        copy_from_bytes to_bytes as_ptr as_mut_ptr copy_from_canonical_slice canonicalize_all verify_canonical"""
    tensors = """from_buffer from_buffer_with_strides shape strides offset ndim numel is_contiguous transpose view_1d buffer cleanup contiguous
        reshape permute select narrow slice matmul is_broadcast_compatible_with broadcast_shapes to_dlpack from_dlpack_capsule dlpack_device_type
        dlpack_device_id"""
    others = """new_executor new_executor_with_backend new_executor_auto executor_cleanup executor_allocate_buffer executor_allocate_boundary_buffer
        get_version clear_all_registries"""
    names = [f"buffer_{x}" for x in buffers.split()] + [f"tensor_{x}" for x in tensors.split()] + others.split() + [f"{x}_f32" for x in ROWS]
    assert not [name for name in names if not callable(getattr(hg, name))]
    assert set(names) <= set(dir(hg))
    assert hg.get_version() == hologram.__version__
    with pytest.raises(AttributeError, match="module 'hologram_ffi' has no attribute 'vector_pow_f32'"):
        _ = hg.vector_pow_f32


def test_buffers_describe_themselves(executor: int) -> None:
    linear, boundary = hg.executor_allocate_buffer(executor, 5), hg.executor_allocate_boundary_buffer(executor, 7, 32, 32)
    assert (hg.buffer_length(linear), hg.buffer_length(boundary)) == (5, 256)
    assert (hg.buffer_size_bytes(linear), hg.buffer_element_size(linear)) == (20, 4)
    assert (hg.buffer_pool(linear), hg.buffer_pool(boundary)) == ("Linear", "Boundary")
    assert hg.buffer_is_linear(linear) and not hg.buffer_is_boundary(linear) and not hg.buffer_is_empty(linear)
    assert hg.buffer_is_boundary(boundary) and hg.buffer_class_index(boundary) == 7
    assert hg.buffer_as_ptr(executor, linear) == hg.buffer_as_mut_ptr(executor, linear)
    assert hg.buffer_as_ptr(executor, linear) != hg.buffer_as_ptr(executor, boundary)


def test_contents_as_json_and_bytes(executor: int) -> None:
    a, b = hg.executor_allocate_buffer(executor, 4), hg.executor_allocate_buffer(executor, 4)
    values = [1.0, -2.5, 0.1, 3e30]
    hg.buffer_copy_from_slice(executor, a, json.dumps(values))
    np.testing.assert_array_equal(np.float32(json.loads(hg.buffer_to_vec(executor, a))), np.float32(values))
    assert hg.buffer_copy_to_slice(executor, a) == hg.buffer_to_vec(executor, a)
    hg.buffer_copy(executor, a, b, 2)
    np.testing.assert_array_equal(_array(executor, b), np.float32([1, -2.5, 0, 0]))
    hg.buffer_fill(executor, b, 9.0, 3)
    np.testing.assert_array_equal(_array(executor, b), [9, 9, 9, 0])
    hg.buffer_copy_from_slice(executor, a, "[NaN, Infinity, 1e300, 2]")
    np.testing.assert_array_equal(_array(executor, a), [np.nan, np.inf, np.inf, 2])
    bad = ("[1, 2", "3", '["1", 1, 2, 3]', "[[1], 2, 3, 4]", "[[1, 2], [3, 4]]", "[null, 1, 2, 3]", "[true, 1, 2, 3]", "[" * 100_000, 7)
    for text in bad:
        with pytest.raises(ArgumentError, match="data is a JSON list"):
            hg.buffer_copy_from_slice(executor, a, text)
    with pytest.raises(ShapeError, match="3 elements for a buffer of 4"):
        hg.buffer_copy_from_slice(executor, a, "[1, 2, 3]")


def test_texts_of_other_types(executor: int) -> None:
    def buffer(array: Any) -> int:
        return hg.tensor_buffer(hg.tensor_from_dlpack_capsule(executor, array.__dlpack__()))

    whole, flags, numbers = buffer(np.zeros(2, np.int8)), buffer(np.zeros(2, bool)), buffer(np.zeros(2, complex))
    hg.buffer_copy_from_slice(executor, whole, "[-1, 2]")
    hg.buffer_copy_from_slice(executor, flags, "[true, false]")
    assert (hg.buffer_to_vec(executor, whole), hg.buffer_to_vec(executor, flags)) == ("[-1, 2]", "[true, false]")
    for made, text in ((whole, "[1.5, 2]"), (whole, "[300, 2]"), (whole, '["1", 2]'), (flags, "[1, 0]")):
        with pytest.raises(ArgumentError, match="data is a JSON list of numbers"):
            hg.buffer_copy_from_slice(executor, made, text)
    with pytest.raises(DTypeError, match="complex128 has no form in JSON"):
        hg.buffer_to_vec(executor, numbers)


def test_canonical_bytes(executor: int) -> None:
    a = _buffer(executor, np.random.default_rng(0).standard_normal(50))
    assert not hg.buffer_verify_canonical(executor, a)
    bits = _array(executor, a).view(np.uint8) & 0xFE
    hg.buffer_canonicalize_all(executor, a)
    assert hg.buffer_verify_canonical(executor, a)
    np.testing.assert_array_equal(_array(executor, a).view(np.uint8), bits)
    b = hg.executor_allocate_buffer(executor, 3)
    hg.buffer_copy_from_canonical_slice(executor, b, "[0.1, 0.2, 0.3]")
    assert hg.buffer_verify_canonical(executor, b)
    np.testing.assert_array_equal(_array(executor, b).view(np.uint8), np.float32([0.1, 0.2, 0.3]).view(np.uint8) & 0xFE)


# --- ops ----------------------------------------------------------------------------------------------------------------------


def test_ops_by_handle(executor: int) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, 1024)).astype(np.float32)
    a, b, c, out = _buffer(executor, x), _buffer(executor, y), hg.executor_allocate_buffer(executor, 1024), hg.executor_allocate_buffer(executor, 3)
    hg.vector_add_f32(executor, a, b, c, 1024)
    np.testing.assert_array_equal(_array(executor, c), x + y)
    hg.vector_relu_f32(executor, a, c, 10)
    np.testing.assert_array_equal(_array(executor, c), np.r_[np.maximum(x[:10], 0), (x + y)[10:]])
    np.testing.assert_allclose(hg.reduce_sum_f32(executor, a, out, 1024), x.sum(), rtol=1e-4)
    np.testing.assert_allclose(hg.mse_loss_f32(executor, a, b, out, 1024), np.mean((x - y) ** 2), rtol=1e-5)
    assert _array(executor, out)[0] == np.float32(hg.mse_loss_f32(executor, a, b, out))
    m, k, n = 16, 64, 8
    hg.gemm_f32(executor, a, b, c, m, n, k)
    np.testing.assert_allclose(_array(executor, c)[: m * n].reshape(m, n), x.reshape(m, k) @ y[: k * n].reshape(k, n), rtol=1e-4, atol=1e-4)
    with pytest.raises(ShapeError, match="reduce_sum_f32: out has 3 elements or more, not 2"):
        hg.reduce_sum_f32(executor, a, hg.executor_allocate_buffer(executor, 2), 1024)


def test_the_number_of_elements_may_come_first(executor: int) -> None:
    x = np.linspace(-2, 2, 8, dtype=np.float32)
    a, out = _buffer(executor, x), hg.executor_allocate_buffer(executor, 8)
    for arguments, wanted in [((8, 0.5), x + 0.5), ((0.5, 8), x + 0.5), ((1, 0.5), None), ((0.25,), x + 0.25)]:
        hg.buffer_fill(executor, out, 0.0, 8)
        hg.scalar_add_f32(executor, a, out, *arguments)
        np.testing.assert_array_equal(_array(executor, out), wanted if wanted is not None else np.r_[x[0] + 0.5, np.zeros(7)])
    hg.vector_clip_f32(executor, a, out, 8, -1.0, 1.0)
    np.testing.assert_array_equal(_array(executor, out), np.clip(x, -1, 1))
    hg.vector_clip_f32(executor, a, out, -0.5, 0.5, 8)
    np.testing.assert_array_equal(_array(executor, out), np.clip(x, -0.5, 0.5))
    with pytest.raises(ArgumentError, match=r"scalar_add_f32: which of \(8, 2\) is n"):
        hg.scalar_add_f32(executor, a, out, 8, 2)
    hg.scalar_add_f32(executor, a, out, 2, n=8)
    np.testing.assert_array_equal(_array(executor, out), x + 2)
    assert str(inspect.signature(hg.scalar_add_f32)) == "(executor, a, out, scalar, n=None)"
    with pytest.raises(ArgumentError, match="missing a required argument: 'out'"):
        hg.vector_add_f32(executor, a, a)


# --- handles ------------------------------------------------------------------------------------------------------------------


def test_unknown_and_released_handles_raise(executor: int) -> None:
    a = hg.executor_allocate_buffer(executor, 4)
    t = hg.tensor_from_buffer(a, "[2, 2]")
    hg.tensor_cleanup(t)
    hg.buffer_cleanup(a)
    other = hg.new_executor_with_backend("cpu")
    b = hg.executor_allocate_buffer(other, 4)
    hg.executor_cleanup(other)
    calls: list[tuple[str, Callable[[], Any]]] = [
        ("tensor", lambda: hg.tensor_shape(t)),
        ("tensor", lambda: hg.tensor_cleanup(t)),
        ("buffer", lambda: hg.buffer_length(a)),
        ("buffer", lambda: hg.buffer_cleanup(a)),
        ("buffer", lambda: hg.buffer_to_bytes(executor, b)),
        ("buffer", lambda: hg.vector_neg_f32(executor, a, a, 4)),
        ("buffer", lambda: hg.tensor_from_buffer(executor, "[1]")),
        ("executor", lambda: hg.executor_cleanup(other)),
        ("executor", lambda: hg.executor_allocate_buffer(a, 4)),
        ("executor", lambda: hg.executor_allocate_buffer("one", 4)),  # type: ignore[arg-type]
        ("executor", lambda: hg.executor_allocate_buffer([], 4)),  # type: ignore[arg-type]
        ("executor", lambda: hg.tensor_dlpack_device_type(0)),
    ]
    for kind, call in calls:
        with pytest.raises(HandleError, match=f"is no {kind}'s handle: it was never given out, or the {kind} was released"):
            call()
    assert issubclass(HandleError, LookupError)


def test_clearing_releases_everything() -> None:
    executor = hg.new_executor_auto()
    a = hg.executor_allocate_buffer(executor, 4)
    t = hg.tensor_from_buffer(a, "[4]")
    hg.clear_all_registries()
    for call in (lambda: hg.executor_allocate_buffer(executor, 1), lambda: hg.buffer_length(a), lambda: hg.tensor_ndim(t)):
        with pytest.raises(HandleError):
            call()


def test_a_handle_is_released_once() -> None:
    """Of threads that release one at the same time; and ends meet buffers whose handles another thread has released."""
    executor = hg.new_executor()
    made = hg.executor_allocate_buffer(executor, 4)
    raised: list[int] = []

    def release() -> None:
        try:
            hg.buffer_cleanup(made)
        except HandleError:
            raised.append(made)

    threads = [threading.Thread(target=release) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(raised) == 3
    hg.executor_cleanup(executor)


def test_tensors_notice_that_their_buffer_was_freed(executor: int) -> None:
    a = hg.executor_allocate_buffer(executor, 4)
    t = hg.tensor_from_buffer(a, "[2, 2]")
    hg.buffer_cleanup(a)
    for call in (lambda: hg.tensor_to_dlpack(executor, t), lambda: hg.tensor_buffer(t)):
        with pytest.raises(FreedBufferError, match="it was freed"):
            call()


# --- tensors ------------------------------------------------------------------------------------------------------------------


def _tensor(executor: int, t: int) -> np.ndarray:
    """The elements as shape, strides and offset say."""
    flat = _array(executor, hg.tensor_buffer(t))
    shape, strides = json.loads(hg.tensor_shape(t)), json.loads(hg.tensor_strides(t))
    found = np.lib.stride_tricks.as_strided(flat[hg.tensor_offset(t) :] if 0 not in shape else flat, shape, [4 * s for s in strides])
    assert (hg.tensor_ndim(t), hg.tensor_numel(t)) == (found.ndim, found.size)
    return found


@st.composite
def _steps(draw: st.DrawFn) -> tuple[list[int], list[tuple[str, Any]]]:
    """A shape, and views to take one after the other."""
    start = shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    steps: list[tuple[str, Any]] = []
    for _ in range(draw(st.integers(0, 5))):
        name = draw(st.sampled_from(["permute", "select", "narrow", "slice"]))
        dim = draw(st.integers(0, max(0, len(shape) - 1)))
        if name == "permute":
            order = draw(st.permutations(range(len(shape))))
            steps.append((name, tuple(order)))
            shape = [shape[i] for i in order]
        elif shape and shape[dim]:
            first = draw(st.integers(0, shape[dim] - 1))
            stop = draw(st.integers(first, shape[dim]))
            by = draw(st.integers(1, 3)) if name == "slice" else 1
            steps.append((name, (dim, first) if name == "select" else (dim, first, stop - first) if name == "narrow" else (dim, first, stop, by)))
            kept = [] if name == "select" else [-(-(stop - first) // by)]
            shape = [*shape[:dim], *kept, *shape[dim + 1 :]]
    return start, steps


def _on_numpy(x: np.ndarray, name: str, args: Any) -> np.ndarray:
    if name == "permute":
        return x.transpose(args)
    dim, *rest = args
    key: list[Any] = [slice(None)] * x.ndim
    key[dim] = {"select": lambda i: i, "narrow": lambda i, n: slice(i, i + n), "slice": lambda *s: slice(*s)}[name](*rest)
    found: np.ndarray = x[tuple(key)]
    return found


@given(steps=_steps())
def test_views_are_numpys(steps: tuple[list[int], list[tuple[str, Any]]]) -> None:
    shape, views = steps
    executor = hg.new_executor()
    wanted = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    buffer = _buffer(executor, wanted)
    t = hg.tensor_from_buffer(buffer, json.dumps(shape))
    for name, args in views:
        t = hg.tensor_permute(t, json.dumps(args)) if name == "permute" else getattr(hg, f"tensor_{name}")(t, *args)
        wanted = _on_numpy(wanted, name, args)
        np.testing.assert_array_equal(_tensor(executor, t), wanted)
        assert hg.tensor_buffer(t) == buffer
        assert hg.tensor_is_contiguous(t) == wanted.flags.c_contiguous
    if wanted.size:
        whole = hg.tensor_contiguous(executor, t)
        assert hg.tensor_is_contiguous(whole)
        np.testing.assert_array_equal(_tensor(executor, whole), wanted)
        np.testing.assert_array_equal(_tensor(executor, hg.tensor_view_1d(whole)), wanted.reshape(-1))
        np.testing.assert_array_equal(_tensor(executor, hg.tensor_reshape(executor, t, f"[1, {wanted.size}]")), wanted.reshape(1, -1))
    np.testing.assert_array_equal(np.from_dlpack(_Capsule(hg.tensor_to_dlpack(executor, t))), wanted)
    hg.clear_all_registries()


@given(m=st.integers(1, 9), k=st.integers(1, 9), n=st.integers(1, 9), flip=st.booleans(), offset=st.integers(0, 3))
def test_matmul_of_any_layout(m: int, k: int, n: int, flip: bool, offset: int) -> None:
    executor = hg.new_executor()
    rng = np.random.default_rng(m)
    x, y = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
    rows = np.zeros((m + offset, k), np.float32)
    rows[offset:] = x
    a = hg.tensor_narrow(hg.tensor_from_buffer(_buffer(executor, rows), json.dumps(rows.shape)), 0, offset, m)
    b = hg.tensor_from_buffer(_buffer(executor, y.T if flip else y), json.dumps(y.T.shape if flip else y.shape))
    found = hg.tensor_matmul(executor, a, hg.tensor_transpose(b) if flip else b)
    np.testing.assert_allclose(_tensor(executor, found), x @ y, rtol=1e-4, atol=1e-5)
    hg.clear_all_registries()


def test_broadcasting(executor: int) -> None:
    def tensor(shape: list[int]) -> int:
        return hg.tensor_from_buffer(hg.executor_allocate_buffer(executor, 64), json.dumps(shape))

    assert hg.tensor_is_broadcast_compatible_with(tensor([3, 1]), tensor([4])) is True
    assert hg.tensor_is_broadcast_compatible_with(tensor([3, 2]), tensor([4])) is False
    assert json.loads(hg.tensor_broadcast_shapes("[3, 1]", "[2, 1, 4]")) == [2, 3, 4]
    with pytest.raises(ShapeError, match=r"shapes \[3\] and \[4\] do not broadcast"):
        hg.tensor_broadcast_shapes("[3]", "[4]")


class _Capsule:
    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def test_dlpack_both_ways_without_copies(executor: int) -> None:
    source = np.arange(6, dtype=np.float32).reshape(2, 3)
    t = hg.tensor_from_dlpack_capsule(executor, source.__dlpack__())
    assert hg.buffer_as_ptr(executor, hg.tensor_buffer(t)) == source.__array_interface__["data"][0]
    assert hg.buffer_pool(hg.tensor_buffer(t)) == "External"
    back = np.from_dlpack(_Capsule(hg.tensor_to_dlpack(executor, hg.tensor_transpose(t))))
    np.testing.assert_array_equal(back, source.T)
    assert back.__array_interface__["data"][0] == source.__array_interface__["data"][0]
    assert (hg.tensor_dlpack_device_type(executor), hg.tensor_dlpack_device_id(executor)) == (1, 0)
    hg.buffer_fill(executor, hg.tensor_buffer(t), 7.0)
    assert (source == 7).all()
    source.flags.writeable = False
    if VERSIONED:
        sealed = hg.tensor_from_dlpack_capsule(executor, source.__dlpack__(max_version=(1, 0)))
        with pytest.raises(ArgumentError, match="wraps a read-only array"):
            hg.buffer_fill(executor, hg.tensor_buffer(sealed), 1.0)
        with pytest.raises(ArgumentError, match="tensor_to_dlpack: read-only memory"):
            hg.tensor_to_dlpack(executor, sealed)
    used = source.copy().__dlpack__()
    hg.tensor_from_dlpack_capsule(executor, used)
    for bad in (used, "no capsule"):
        with pytest.raises((ArgumentError, DeviceError), match="tensor_from_dlpack_capsule"):
            hg.tensor_from_dlpack_capsule(executor, bad)


def test_capsules_outlive_executors() -> None:
    executor = hg.new_executor()
    capsule = hg.tensor_to_dlpack(executor, hg.tensor_from_buffer(_buffer(executor, np.arange(4)), "[4]"))
    hg.clear_all_registries()
    np.testing.assert_array_equal(np.from_dlpack(_Capsule(capsule)), np.arange(4))


@pytest.mark.parametrize(("shape", "strides"), [("[1, 4]", f"[{2**62}, 1]"), ("[0, 2]", f"[{2**70}, 1]"), ("[1]", f"[{2**70}]")])
def test_strides_that_nothing_steps_by(executor: int, shape: str, strides: str) -> None:
    a = hg.tensor_from_buffer_with_strides(hg.executor_allocate_buffer(executor, 4), shape, strides)
    assert np.from_dlpack(_Capsule(hg.tensor_to_dlpack(executor, a))).shape == tuple(json.loads(shape))
    assert hg.tensor_is_contiguous(a)


def test_bad_tensors_raise(executor: int) -> None:
    a = hg.executor_allocate_buffer(executor, 12)
    t = hg.tensor_from_buffer(a, "[3, 4]")
    cube = hg.tensor_from_buffer(a, "[3, 2, 2]")
    calls: list[tuple[type[Exception], str, Callable[[], Any]]] = [
        (ShapeError, "ends at element 15 of a buffer of 12", lambda: hg.tensor_from_buffer(a, "[4, 4]")),
        (ShapeError, "up to 64 axes", lambda: hg.tensor_from_buffer(a, str([1] * 65))),
        (ShapeError, "fewer elements", lambda: hg.tensor_from_buffer(a, str([0, 2**62]))),
        (ShapeError, "fewer elements", lambda: hg.tensor_from_buffer_with_strides(a, str([2**62]), "[0]")),
        (ArgumentError, "shape is a JSON list", lambda: hg.tensor_from_buffer(a, "[" * 100_000)),
        (ShapeError, "ends at element 14", lambda: hg.tensor_from_buffer_with_strides(a, "[3, 3]", "[6, 1]")),
        (ShapeError, "has 2 strides, not 1", lambda: hg.tensor_from_buffer_with_strides(a, "[3, 3]", "[3]")),
        (ShapeError, "from 0 up", lambda: hg.tensor_from_buffer(a, "[-3]")),
        (ArgumentError, "shape is a JSON list of integers", lambda: hg.tensor_from_buffer(a, "[1.5]")),
        (ArgumentError, "shape is a JSON list, not '3'", lambda: hg.tensor_from_buffer(a, "3")),
        (AxisOutOfRange, "dim 2 of a tensor with 2 axes", lambda: hg.tensor_select(t, 2, 0)),
        (IndexOutOfRange, "index 3 of axis 0, which has 3 elements", lambda: hg.tensor_select(t, 0, 3)),
        (IndexOutOfRange, "narrow: 2 to 5", lambda: hg.tensor_narrow(t, 1, 2, 3)),
        (IndexOutOfRange, "slice: 0 to 4 in steps of 0", lambda: hg.tensor_slice(t, 1, 0, 4, 0)),
        (ArgumentError, "index is an integer, not 1.5", lambda: hg.tensor_select(t, 0, 1.5)),  # type: ignore[arg-type]
        (ShapeError, "does not name the 2 axes once each", lambda: hg.tensor_permute(t, "[0, 0]")),
        (ShapeError, "transpose takes a matrix", lambda: hg.tensor_transpose(cube)),
        (ShapeError, "do not follow each other", lambda: hg.tensor_view_1d(hg.tensor_transpose(t))),
        (ShapeError, r"12 elements of shape \[3, 4\] do not fill \[5\]", lambda: hg.tensor_reshape(executor, t, "[5]")),
        (ShapeError, r"matmul takes matrices \(m, k\) and \(k, n\)", lambda: hg.tensor_matmul(executor, t, t)),
    ]
    for error, words, call in calls:
        with pytest.raises(error, match=words):
            call()
