"""``jit(dynamic="auto")`` on devices: axes whose sizes vary turn symbolic where that costs a program nothing, and its results do not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import HologramError, ShapeError
from hologram.ir import devices
from hologram.nn import dot_product_attention
from tests.support.devices.some_devices import available

SIZES = (5, 12, 7, 300, 1, 0, 12, 2, 41)
NAMES = ["null:5", "cuda", "opencl"]


@pytest.fixture(params=NAMES)
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    return available(request.param, monkeypatch)


def array(*shape: int) -> np.ndarray:
    return np.random.default_rng(list(shape)).integers(-8, 9, shape).astype(np.float32)


def programs(f: Any) -> list[str]:
    """The types for which ``f`` has programs."""
    return [", ".join(map(repr, s.record.types)) for s in f._specialisations.values()]


def is_symbolic(f: Any) -> bool:
    return any("n0" in p for p in programs(f))


def agree(device: Any, got: Any, want: Any) -> None:
    """Types and shapes, and on devices that compute, bits."""
    for g, w in zip(hg.tree.leaves(got), hg.tree.leaves(want), strict=True):
        assert g.device == device.name and (g.dtype, g.shape) == (w.dtype, w.shape)
        if device.has_values:
            np.testing.assert_array_equal(np.asarray(g), np.asarray(w))


KEPT: dict[str, Callable[[Any], Any]] = {
    "elements": lambda x: hnp.where(x > 0, x * 2, 1) - x.shape[0],
    "rows": lambda x: x - hnp.max(x, axis=1, keepdims=True),
    "columns": lambda x: (hnp.sum(x, axis=0), hnp.sum(x * x)),
    "scans": lambda x: hnp.cumsum(x, axis=0),
    "order": lambda x: hnp.sort(x, axis=0),
    "movement": lambda x: hnp.concatenate([x, x[::-1]], axis=0).T,
    "indices": lambda x: x.at[hnp.arange(x.shape[0]) // 2].add(1.0),
    "products of batches": lambda x: hnp.matmul(hnp.stack([x, x], axis=1), array(4, 16))[:, :, :3],
}


@pytest.mark.parametrize("name", KEPT)
def test_one_program_serves_sizes_that_vary(name: str, device: Any) -> None:
    f, g = (hg.jit(KEPT[name], precision="exact", device=d, dynamic=way) for d, way in ((device.name, "auto"), (None, False)))
    for n in SIZES:
        agree(device, f(array(n, 4)), g(array(n, 4)))
    if name != "products of batches":
        assert is_symbolic(f) and len(programs(f)) == 5  # two of known sizes, those of 0 and 1, and the one for all others


NO_TILES = "has tiles for products of known sizes alone"


def loss(w: Any, x: Any) -> Any:
    return hnp.sum((x @ w) ** 2)


BY_SIZE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "products": (lambda x: x @ array(16, 16), NO_TILES),
    "gradients of products": (lambda x: hg.grad(loss)(hnp.asarray(array(16, 16)), x), NO_TILES),
    "attention": (lambda x: dot_product_attention(x, x, x), NO_TILES),
    "loops": (lambda x: hg.fori_loop(0, 3, lambda i, c: c * 2 + i, x), "does not run loops and branches of symbolic shapes"),
    "values of sizes": (lambda x: x * 2 if x.shape[0] > 9 else x, "n0 > 9 is not known while tracing"),
}


@pytest.mark.parametrize("name", BY_SIZE)
def test_sizes_stay_static_where_symbols_would_cost(name: str, device: Any) -> None:
    """And the function tells why."""
    function, reason = BY_SIZE[name]
    f, g = (hg.jit(function, device=d, dynamic=way) for d, way in ((device.name, "auto"), (None, False)))
    told = []
    for n in (5, 12, 7, 300, 12):
        for got, want in zip(hg.tree.leaves(f(array(n, 16))), hg.tree.leaves(g(array(n, 16))), strict=True):
            assert got.shape == want.shape and got.device == device.name
            if device.has_values:
                np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-4, atol=1e-4)
        told.append(f.explain_last_miss())
    assert programs(f) == [f"float32[{n}, 16]" for n in (5, 12, 7, 300)]
    assert "its sizes stay static, because with symbols: " in told[2] and reason in told[2]
    assert sum("stay static" in t for t in dict.fromkeys(told)) == 1


def test_symbols_that_are_asked_for_need_no_tiles(device: Any) -> None:
    f = hg.jit(lambda x: x @ array(16, 16), device=device.name, dynamic={0: 0}, precision="exact")
    for n in (5, 40):
        agree(device, f(array(n, 16)), hg.jit(lambda x: x @ array(16, 16), dynamic=False, precision="exact")(array(n, 16)))
    assert programs(f) == ["float32[n0, 16]"]


def test_arguments_and_closed_over_values_decide_the_device(device: Any) -> None:
    """A program that runs where values are is held to the same."""
    weights = hg.device_put(array(16, 16), device.name)
    f = hg.jit(lambda x: x @ weights)
    g = hg.jit(lambda x: x * 2 + 1, precision="exact")
    for n in (5, 12, 7, 300):
        assert f(array(n, 16)).device == device.name
        agree(device, g(hg.device_put(array(n, 16), device.name)), g(array(n, 16)))
    assert not is_symbolic(f) and "tiles" not in f.explain_last_miss()  # of the family, told once
    assert sum("n0" in p for p in programs(g)) == 2  # here and on the host


def test_parts_on_several_devices(device: Any) -> None:
    def function(x: Any) -> Any:
        return hnp.cumsum(hg.device_put(hnp.sin(x), device.name) * 2), x + 1

    f = hg.jit(function)
    for n in (5, 12, 7, 300):
        there, here = f(array(n))
        assert there.device == device.name and np.array_equal(np.asarray(here), array(n) + 1)
        if device.has_values:
            np.testing.assert_allclose(np.asarray(there), np.cumsum(np.sin(array(n)) * 2), rtol=1e-4, atol=1e-3)
    assert is_symbolic(f)


def test_errors_do_not_change(device: Any) -> None:
    f, g = (hg.jit(lambda x, y: x + y, device=device.name, dynamic=way) for way in ("auto", False))
    for n, m in ((4, 4), (5, 5), (6, 6), (7, 8), (9, 3), (10, 11), (11, 11)):
        found: list[Any] = []
        for h in (f, g):
            try:
                found.append(h(array(n), array(m)).shape)
            except HologramError as e:
                found.append((type(e), str(e).partition(" (at ")[0]))
        assert found[0] == found[1] and (n == m or found[0][0] is ShapeError)
    assert programs(f)[-1] == "float32[n0], float32[n0]"


def test_placement_by_cost_is_decided_for_each_size() -> None:
    f = hg.jit(lambda x: x * 2, device="auto")
    told = []
    for n in (5, 12, 7, 300):
        f(array(n))
        told.append(f.explain_last_miss())
    assert programs(f) == [f"float32[{n}]" for n in (5, 12, 7, 300)]
    assert "its sizes stay static, because what runs where is decided by them" in told[2]


def test_calls_of_known_sizes_allocate_nothing_more() -> None:
    null = devices.find("null:6")
    f = hg.jit(lambda x: hnp.cumsum(x * 2), device="null:6")
    for _ in range(3):
        for n in range(2, 40):
            f(hg.device_put(array(n), "null:6"))
        if _ == 1:
            taken = null.taken
    assert null.taken == taken and len(programs(f)) == 3
