"""Graphs on memory that is named by its address."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.cpu.executable import Executable
from hologram.settings import override
from hologram.trace.compiling import compile_graph


def _executable(f, *args, dynamic=False) -> Executable:  # type: ignore[no-untyped-def]
    """``f`` compiled for arguments like these."""
    return compile_graph(hg.jit(f, dynamic=dynamic).lower(*args).graph)  # type: ignore[return-value]


def _addresses(*arrays: np.ndarray) -> list[int]:
    return [a.ctypes.data for a in arrays]


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("dynamic", [True, False])
def test_results_lie_where_the_caller_wants_them(native: bool, dynamic: bool) -> None:
    x, y = np.arange(5000, dtype=np.float32), np.full(5000, 0.5, np.float32)
    weight = np.arange(2000, dtype=np.float32)
    made = _executable(lambda a, b: (a + b * weight[7], hnp.sum(a) + hnp.sum(hnp.asarray(weight) * 2)), x, y, dynamic=dynamic)
    total, out = np.zeros((), np.float32), np.zeros_like(x)
    shapes = [a.shape for a in (x, y)]
    run = made.bound(shapes) if native else _in_python(made, shapes)
    assert run(*_addresses(x, y, out, total)) is None
    np.testing.assert_array_equal(out, x + y * 7)
    np.testing.assert_allclose(total, x.sum() + 2 * weight.sum(), rtol=1e-6)


def _in_python(made: Executable, shapes):  # type: ignore[no-untyped-def]
    from hologram.backends.native import addresses

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(addresses, "why_not_native", lambda: "not in this test")
        return made.bound(shapes)


@pytest.mark.parametrize("native", [True, False])
def test_wrong_arguments_raise(native: bool) -> None:
    x = np.ones(8, np.float32)
    made = _executable(lambda a: a + 1, x)
    run = made.bound() if native else _in_python(made, ())
    with pytest.raises(TypeError):
        run(*_addresses(x))
    with pytest.raises(TypeError):
        run("no address", x.ctypes.data)


def test_code_lives_as_long_as_the_function() -> None:
    x, out = np.ones(8, np.float32), np.zeros(8, np.float32)
    run = _executable(lambda a: a + np.arange(8, dtype=np.float32), x).bound()
    hg.clear_caches()
    run(*_addresses(x, out))
    np.testing.assert_array_equal(out, x + np.arange(8))


def test_threads_share_a_function() -> None:
    x = np.random.default_rng(0).standard_normal((64, 300)).astype(np.float32)
    run = _executable(lambda a: hnp.exp(a - hnp.max(a, axis=1, keepdims=True)) / hnp.sum(hnp.exp(a), axis=1, keepdims=True), x).bound()
    outs = [np.zeros_like(x) for _ in range(8)]
    threads = [threading.Thread(target=lambda o=o: [run(*_addresses(x, o)) for _ in range(50)]) for o in outs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(np.array_equal(o, outs[0]) for o in outs)
    assert outs[0].any()


def test_settings_do_not_matter_to_a_bound_graph() -> None:
    x, out = np.ones(8, np.float32), np.zeros(8, np.float32)
    run = _executable(lambda a: a * 2, x).bound()
    with override(native=False):
        run(*_addresses(x, out))
    np.testing.assert_array_equal(out, 2 * x)
