"""What JAX's programs ask of the top level: settings by JAX's names, scopes, values while tracing, devices, pytrees as vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, LeakedTracerError, NonFiniteError, ShapeError


def test_settings_by_the_names_of_jax() -> None:
    with hg.settings.override(default_float="float32", nans=""):
        hg.config.update("jax_enable_x64", True)
        assert hnp.zeros(1).dtype == np.float64 and hg.config.jax_enable_x64 is True
        hg.config.update("jax_enable_x64", False)
        assert hnp.zeros(1).dtype == np.float32 and hg.config.read("jax_enable_x64") is False
        with hg.enable_x64():
            assert hnp.zeros(1).dtype == np.float64
        with pytest.raises(NonFiniteError), hg.debug_nans():
            hg.eval(hnp.log(-1.0 * hnp.ones(2)))
        with hg.debug_nans():
            assert float(hnp.log(0.0)) == -np.inf
        with pytest.raises(NonFiniteError), hg.debug_infs():
            hg.eval(hnp.log(0.0 * hnp.ones(2)))
    with pytest.raises(ArgumentError, match="did you mean 'jax_enable_x64'"):
        hg.config.update("jax_enable_x46", True)
    with pytest.raises(AttributeError):
        _ = hg.config.jax_no_such_setting


def test_values_while_tracing() -> None:
    def f(x: Any) -> Any:
        with hg.ensure_compile_time_eval():
            n = int(hnp.argmax(hnp.asarray([1, 5, 3]) ** 2)) + int(hg.jit(lambda v: v + 1)(2))
        return hnp.tile(x, n)

    for way in (f, hg.jit(f), hg.vmap(f, axis_size=2, in_axes=None), hg.grad(lambda x: f(x).sum())):
        assert np.all(np.asarray(way(1.0)) == (4 if way is not f and np.ndim(way(1.0)) == 0 else 1))
    with pytest.raises(LeakedTracerError):

        @hg.jit
        def reads(x: Any) -> Any:
            with hg.ensure_compile_time_eval():
                return hnp.zeros(int(x))

        reads(3)


def test_names_of_scopes_change_nothing() -> None:
    with hg.named_scope("outer"):
        found = hg.jit(hg.named_call(lambda x, *, by: x * by, name="inner"))(2.0, by=3.0)
    assert float(found) == 6.0 and hg.named_scope("f")(lambda x: x)(1) == 1
    with pytest.raises(ArgumentError), hg.named_scope(3):
        pass
    seen: list[float] = []
    hg.jit(lambda x: hg.debug.callback(lambda v: seen.append(float(v)), x))(2.0)
    hg.effects_barrier()
    assert seen == [2.0]


def test_arrays_on_the_host_and_devices() -> None:
    got = hg.device_get({"a": hnp.ones(2) + 1, "b": [3, np.arange(2)]})
    assert type(got["a"]) is np.ndarray and got["b"][0] == 3
    assert hg.device_count() == len(hg.devices()) == hg.local_device_count() and hg.device_count("cpu") == 1
    assert hg.default_backend() == "cpu" and (hg.process_index(), hg.process_count()) == (0, 1)
    assert hg.typeof(2.0) == hg.ShapeDtypeStruct((), "float32") and hg.typeof(np.ones((2, 3))).shape == (2, 3)
    assert hg.jit(lambda x: x * len(hg.typeof(x).shape))(np.ones((2, 3))).shape == (2, 3)


def test_pytrees_as_vectors() -> None:
    params = {"w": np.arange(6.0).reshape(2, 3), "n": np.array([1, 2], np.int32), "z": [np.float32(0.5), np.zeros((0, 4))]}
    flat, unravel = hg.flatten_util.ravel_pytree(params)
    assert flat.shape == (9,) and flat.dtype == np.float64
    back = unravel(flat * 2)
    assert [x.dtype for x in hg.tree.leaves(back)] == [x.dtype for x in hg.tree.leaves(params)]
    np.testing.assert_array_equal(back["w"], 2 * params["w"])
    loss = lambda p: sum(hnp.sum(hnp.sin(x)) for x in hg.tree.leaves(p))  # noqa: E731
    slope = hg.jit(hg.grad(lambda v: loss(unravel(v))))(flat)
    np.testing.assert_allclose(unravel(slope)["w"], np.cos(params["w"]))
    np.testing.assert_array_equal(hg.vmap(lambda v: unravel(v)["w"])(hnp.stack([flat, flat]))[1], params["w"])
    mixed, back_to = hg.flatten_util.ravel_pytree((1j * np.ones(2), np.ones(1)))
    assert mixed.dtype == np.complex128 and back_to(mixed)[1].dtype == np.float64
    assert hg.flatten_util.ravel_pytree([])[0].shape == (0,) and hg.flatten_util.ravel_pytree([])[0].dtype == np.float32
    with pytest.raises(ShapeError, match="9 elements"):
        unravel(np.ones(8))


def test_a_vector_of_another_type_keeps_it_where_all_leaves_have_one() -> None:
    flat, unravel = hg.flatten_util.ravel_pytree({"a": np.ones(2, np.float32), "b": np.float32(3)})
    for dtype in ("float64", "bool", "complex64"):
        back = unravel(flat.astype(dtype))
        assert {x.dtype for x in hg.tree.leaves(back)} == {np.dtype(dtype)}
    assert hg.jit(lambda v: unravel(v)["b"])(np.full(3, 1 / 3)) == 1 / 3
