"""The pipeline as a list: every pass can be printed, and every pass that is not required can be left out without a change of results."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError
from hologram.graph import pipeline
from hologram.graph.pipeline import PIPELINE, passes
from hologram.settings import override

NAMES = list(dict.fromkeys(p.name for p in passes()))
OPTIONAL = list(dict.fromkeys(p.name for p in passes() if not p.required))
W = hg.tensor(np.linspace(-1, 1, 24 * 16, dtype=np.float32).reshape(24, 16))


def program(x: Any) -> Any:
    """Products with constants, a softmax over a product, a scan, a scatter, a sort and complex numbers."""
    y = hnp.tanh(W) + W
    h = hnp.maximum(x @ (y @ y.T), 0)
    p = hg.nn.softmax(h @ h.T, axis=-1) @ h
    carry, steps = hg.scan(lambda c, row: (c * 0.5 + row @ y.sum(1), hnp.sort(row)), hnp.zeros(()), p)
    z = (p + 1j * h).sum(0)
    return carry, steps, x.at[:, 3].add(steps[:, 0]), hnp.real(z * z.conj())


@pytest.fixture(scope="module")
def x() -> np.ndarray:
    return np.random.default_rng(5).normal(size=(40, 24)).astype(np.float32)


@pytest.mark.costly(3)
@pytest.mark.parametrize("precision", ["exact", "standard"])
@pytest.mark.parametrize("name", OPTIONAL)
def test_a_program_means_the_same_without_a_pass_that_is_not_required(name: str, precision: str, x: np.ndarray) -> None:
    with override(disabled_passes=()):
        want = hg.jit(program, precision="exact")(x)
    with override(disabled_passes=(name,)):
        got = hg.jit(program, precision=precision)(x)
    for a, b in zip(want, got, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_required_passes_run_although_they_are_disabled(x: np.ndarray) -> None:
    with override(disabled_passes=tuple(p.name for p in passes() if p.required)):
        text = hg.jit(program).lower(x).as_text("kernels")
    assert text == hg.jit(program).lower(x).as_text("kernels")


def test_each_kernel_is_verified_once(x: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that changes neither the initializer nor the main part gives the same object, which is not verified again."""
    verified: list[Any] = []
    monkeypatch.setattr(pipeline, "verify_kernel", verified.append)
    hg.jit(lambda x: program(x) + (x @ hnp.exp(W),)).lower(x).as_text("plan")
    assert verified and len(verified) == len({id(k) for k in verified})


def test_a_misspelt_pass_is_an_error(x: np.ndarray) -> None:
    with override(disabled_passes=("simplfy",)), pytest.raises(ArgumentError, match="no pass 'simplfy' to disable: .* arguments, simplify"):
        hg.jit(program)(x)


def test_each_stage_and_each_pass_prints_the_program(x: np.ndarray) -> None:
    lowered = hg.jit(program).lower(x)
    texts = {stage: lowered.as_text(stage) for stage in ("trace", *(s.name for s in PIPELINE), *NAMES)}
    assert "scan" in texts["trace"] and "complex64" in texts["trace"] and "complex64" not in texts["canonical"]
    assert texts["canonical"] == texts["simplify"]  # the last of canonical reduction
    assert "attention" in texts["join_attention"] and "attention" not in texts["canonical"]
    assert texts["legalized"] == texts["loop_bodies"] and texts["folded"].startswith("initializer, runs once:")
    assert "group 0: over" in texts["groups"] and "reduced along" in texts["groups"] and "calls scan" in texts["groups"]
    assert texts["kernels"].startswith("kernel(") and "step 0: kernel, " in texts["plan"] and "arena: " in texts["plan"]
    assert texts["reduce_in_tiles"] == "the pass reduce_in_tiles does not run for this target, precision and settings"
    assert lowered.compile().executable.stages == ("trace", *(s.name for s in PIPELINE), "llvm", "asm")


def test_an_unknown_stage_says_which_there_are(x: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"no stage 'nothing'; the CPU has trace, canonical, .* and the passes arguments, .*, plan"):
        hg.jit(program).lower(x).as_text("nothing")


def test_times_of_passes_are_told(x: np.ndarray, capsys: pytest.CaptureFixture[str]) -> None:
    with override(debug=2, cache=False):
        hg.jit(lambda x: hnp.cumsum(x, 0) * 3)(x)
    told = capsys.readouterr().err
    assert all(f"--- hologram: pass {name}: " in told for name in ("arguments", "simplify", "legalize", "fuse", "lower", "plan"))


# --- backends of other packages --------------------------------------------------------------------------------------

PACKAGE = {
    "other-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: other\nVersion: 1.0\n",
    "other-1.0.dist-info/entry_points.txt": "[hologram.backends]\nother = other_backend\ncuda = other_backend\nbroken = no_such_module\n",
    "other_backend.py": """
from hologram.backends.null.device import Device as Null

class Device(Null):
    kind = "gpu"
    backend_module = "other_backend"
    def __init__(self):
        super().__init__(0)
        self.name = "other:0"

class Code:
    def __init__(self, compilation):
        self.constants, self.compilation, self.remote, self.long, self.placement = [], compilation, True, False, compilation.placement
    def run(self, inputs):
        from hologram.backends.native import storage
        from hologram.ir.interpreter import evaluate
        return [storage.copy_of(x) for x in evaluate(self.compilation.canonical, [storage.view(x) for x in inputs])]
    def replays(self, inputs):
        return None
    def as_text(self, stage):
        return self.compilation.as_text(stage, {"code": lambda: "interpreted"}, "the other")

class DeviceBackend:
    tile = None
    def __init__(self, device): pass
    def generate(self, compilation): return compilation
    def load(self, code): return Code(code)
    def storage(self, source):
        from hologram.backends.residence import on_host
        return on_host(source)

DEVICE = Device()
def found(): return [DEVICE], None
""",
}
USE = """
import numpy as np, hologram as hg, hologram.numpy as hnp
from hologram.ir import devices
assert "other:0" in hg.devices() and "No module named 'no_such_module'" in hg.devices().missing["broken"], hg.devices()
assert list(devices.modules()) == [*devices.BACKENDS, "other", "broken"]
f = hg.jit(lambda x: hnp.tanh(x) + 1, device="other")
x = np.linspace(-1, 1, 5, dtype=np.float32)
np.testing.assert_allclose(f(x), np.tanh(x) + 1, rtol=1e-6)
assert hg.device_put(x, "other").tolist() == x.tolist()
assert f.lower(x).as_text("code") == "interpreted" and "kernel(" in f.lower(x).as_text("kernels")
"""


def test_a_package_adds_a_backend_by_an_entry_point(tmp_path: Path) -> None:
    """It implements the protocol; an entry point of a name that Hologram has replaces nothing."""
    for name, text in PACKAGE.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    subprocess.run([sys.executable, "-c", USE], check=True, env={**os.environ, "PYTHONPATH": paths})
