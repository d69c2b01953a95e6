"""Kernels of Fourier transforms as objects for every machine, and transforms of a few elements in registers."""

from __future__ import annotations

import pytest

from hologram.backends.llvm.fft.butterflies import RADICES
from hologram.backends.llvm.fft.kernels import WHATS, Code, module_ir
from hologram.backends.llvm.toolchain import target
from hologram.graph.library.fft import sizes
from tests.support.machines import EXTERNAL, LEVELS, TRIPLES, called, machine

MACHINES = [(level, "linux") for level in [*LEVELS, "aarch64"]] + [("x86-64", "windows"), ("aarch64", "macos")]


def codes(widest: int, turn: int) -> list[Code]:
    """One of each kind, with radices, widths and formats by turns."""
    out = []
    for i, what in enumerate(WHATS):
        kind = ("f32", "f64")[(i + turn) % 2]
        width = max(2, widest // (4 if kind == "f32" else 8) >> (i + turn) % 2)
        radix = RADICES[(3 * i + 5 * turn) % len(RADICES)] if what in ("pass", "last", "scaled", "first") else width // 2
        source, target_ = {"gather": "cp", "scatter": "ps", "turn": "pp", "zero": "pp"}.get(what, ("cp", "ps", "pp", "pc")[(i + turn) % 4])
        out.append(Code(what, radix, width, kind, source, target_))
    return out


@pytest.mark.parametrize(("level", "system"), MACHINES)
def test_kernels_compile_for_every_machine(level: str, system: str) -> None:
    """Without calls of what is linked nowhere."""
    of = machine(level, system)
    for code in codes(of.vector_bytes, MACHINES.index((level, system))):
        text = module_ir(code)
        assert called(target.assembly(text, of)) <= EXTERNAL, code.name


@pytest.mark.parametrize("system", TRIPLES)
def test_kernels_become_objects_for_every_system(system: str) -> None:
    for level in ("x86-64-v4", "aarch64"):
        code = target.compile_ir(module_ir(Code("pass", 4, 4, "f32", "c", "p")), machine(level, system))
        assert code.startswith({"linux": b"\x7fELF", "macos": b"\xcf\xfa\xed\xfe", "windows": (b"\x64\x86", b"\x64\xaa")}[system])


def test_vectors_are_the_machine_s() -> None:
    for level, register in (("x86-64-v4", "zmm"), ("x86-64-v3", "ymm"), ("x86-64", "xmm")):
        of = machine(level, "linux")
        text = target.assembly(module_ir(Code("pass", 4, of.vector_bytes // 4, "f32", "p", "p")), of)
        assert f"%{register}" in text and ("vfmadd" in text) == (level != "x86-64")


def test_every_radix_that_plans_use_has_a_transform() -> None:
    assert sizes.RADICES == RADICES
