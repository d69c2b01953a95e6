"""The doctor on vector instructions and on what LLVM knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from hologram.backends.llvm.toolchain import target
from hologram.backends.llvm.toolchain.target import Target
from hologram.command_line.doctor.findings import Level
from hologram.command_line.doctor.instructions import llvm_host, vectors
from tests.support.devices.fake_machine import answers, machine

X86 = "x86_64-unknown-linux-gnu"
AVX2 = "+avx,+avx2,+fma,+f16c"


def host(monkeypatch: pytest.MonkeyPatch, triple: str, cpu: str, features: str) -> None:
    monkeypatch.setattr(target, "host", lambda: Target(triple, cpu, features))


@pytest.mark.parametrize(
    ("triple", "features", "level", "said"),
    [
        (X86, AVX2 + ",+avx512f", Level.OK, "512 bits (AVX-512"),
        (X86, AVX2, Level.OK, "256 bits (AVX2"),
        (X86, "+avx", Level.WARNING, "without avx2, fma"),
        (X86, "+sse4.2", Level.WARNING, "128 bits, without avx, avx2, fma"),
        ("aarch64-unknown-linux-gnu", "+neon", Level.OK, "aarch64"),
        ("arm64-apple-darwin", "+neon", Level.OK, "aarch64"),
    ],
)
def test_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, triple: str, features: str, level: Level, said: str) -> None:
    host(monkeypatch, triple, "some", features)
    found = vectors(machine(tmp_path))
    assert found.level is level and said in found.seen


def test_a_translated_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host(monkeypatch, "x86_64-apple-darwin", "westmere", AVX2)
    assert vectors(machine(tmp_path, system="darwin", command=answers({"sysctl": "1\n"}))).level is Level.WARNING
    assert vectors(machine(tmp_path, system="darwin", command=answers({"sysctl": "0\n"}))).level is Level.OK


@pytest.mark.parametrize(
    ("cpu", "features", "flags", "level", "said"),
    [
        ("znver5", AVX2 + ",+avx512f", "fpu avx avx2 fma f16c avx512f", Level.OK, "znver5"),
        ("generic", AVX2, "fpu avx avx2 fma", Level.WARNING, "'generic'"),
        ("", AVX2, "fpu", Level.WARNING, "nothing"),
        ("znver5", AVX2 + ",-avx512f", "fpu avx avx2 fma avx512f", Level.WARNING, "without avx512f"),
        ("znver5", AVX2, "", Level.UNKNOWN, "does not tell"),
    ],
)
def test_llvm_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpu: str, features: str, flags: str, level: Level, said: str) -> None:
    host(monkeypatch, X86, cpu, features)
    found = llvm_host(machine(tmp_path, {"proc/cpuinfo": f"processor\t: 0\nflags\t\t: {flags}\n"} if flags else {}))
    assert found.level is level and said in found.seen


def test_a_chosen_target(tmp_path: Path) -> None:
    assert llvm_host(machine(tmp_path, environment={"HOLOGRAM_TARGET": "x86-64-v3"})).level is Level.NOTE
