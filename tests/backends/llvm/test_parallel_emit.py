"""Graphs whose kernels are compiled as several modules, side by side."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from llvmlite.binding import ffi

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.cpu import compile as scheduled
from hologram.backends.cpu import executable
from hologram.backends.llvm.graph import writer as module
from hologram.backends.llvm.toolchain import target
from hologram.errors import CompileError
from hologram.settings import override


def layers(x):  # type: ignore[no-untyped-def]
    """Products of ten shapes, so that there are ten kernels."""
    for k in range(1, 11):
        x = hnp.tanh(x @ hnp.ones((x.shape[1], 40 + k), dtype=hnp.float32) / 50)
    return x


X = np.random.default_rng(0).standard_normal((64, 48)).astype(np.float32)


@pytest.fixture(autouse=True)
def several_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduled, "usable_processors", lambda: 3)
    monkeypatch.setattr(module, "MIN_MODULE_CHARACTERS", 1000)


def compiled() -> executable.Executable:
    found = hg.jit(layers).lower(X).compile().executable
    assert isinstance(found, executable.Executable)
    return found


def test_modules_hold_each_kernel_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FLAT_STATEMENTS", 0)  # the smallest ones too
    with override(cache=False):
        modules = compiled()._source.module.modules
    defined = [line.split("(")[0] for m in modules for line in m.splitlines() if line.startswith("define void @kernel")]
    assert len(modules) == 3 and len(defined) == len(set(defined)) == 10
    assert sum("define i64 @graph" in m for m in modules) == 1


@pytest.mark.parametrize("unlocked", [True, False])
def test_several_modules_give_what_one_gives(unlocked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not unlocked:
        monkeypatch.setitem(ffi.lib._fntab, "LLVMPY_TargetMachineEmitToMemory", ffi.lib.LLVMPY_TargetMachineEmitToMemory._cfn)
    with override(cache=False):
        several = hg.jit(layers)(X).numpy()
        monkeypatch.setattr(scheduled, "usable_processors", lambda: 1)
        np.testing.assert_array_equal(hg.jit(layers)(X).numpy(), several)


def test_the_disk_keeps_all_objects(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with override(cache=True, cache_dir=tmp_path):
        first = hg.jit(layers)(X).numpy()
        hg.clear_caches()
        np.testing.assert_array_equal(hg.jit(lambda x: layers(x))(X).numpy(), first)


def test_threads_compile_at_once() -> None:
    out: list[np.ndarray] = []
    with override(cache=False):
        threads = [threading.Thread(target=lambda k=k: out.append(hg.jit(lambda x: layers(x) * k)(X).numpy() / k)) for k in (1, 2, 4)]  # type: ignore[misc]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert len(out) == 3
    for other in out[1:]:
        np.testing.assert_array_equal(other, out[0])


def test_a_refused_module_is_an_error() -> None:
    good = "define i64 @graph() { ret i64 0 }"
    with pytest.raises(CompileError):
        target.compile_modules([good, "define i64 @other() { ret i32 0 }"], None, ["kernel", "kernel"])


def test_kernels_beside_a_loop_are_compiled_apart() -> None:
    def f(x):  # type: ignore[no-untyped-def]
        return layers(hg.fori_loop(0, 5, lambda i, x: x * 0.5 + i, x))

    with override(cache=False):
        modules = hg.jit(f).lower(X).compile().executable._source.module.modules
        np.testing.assert_array_equal(
            hg.jit(f)(X).numpy(), hg.jit(layers)(hg.jit(lambda x: hg.fori_loop(0, 5, lambda i, x: x * 0.5 + i, x))(X)).numpy()
        )
    assert len(modules) == 3
    assert ["define i64 @graph" in m for m in modules] == [True, False, False]


def test_a_small_kernel_is_a_part_of_the_graph() -> None:
    with override(cache=False):
        (module,) = hg.jit(lambda x: x * 2 + 1).lower(X[0]).compile().executable._source.module.modules
    assert "define internal void @kernel0" in module and "hg_parallel_for(ptr %ctx" not in module
