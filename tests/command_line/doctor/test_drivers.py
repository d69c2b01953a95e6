"""The doctor on devices: what is plugged in, what drives it, and what a backend finds, in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hologram.command_line.doctor import drivers
from hologram.command_line.doctor.findings import Finding, Level
from hologram.command_line.doctor.machine import Machine
from tests.support.devices.fake_machine import answers, machine

GPU = {"sys/bus/pci/devices/0/class": "0x030000\n", "sys/bus/pci/devices/0/vendor": "0x10de\n"}
AUDIO = {"sys/bus/pci/devices/1/class": "0x040300\n", "sys/bus/pci/devices/1/vendor": "0x10de\n"}
DRIVER = {"proc/driver/nvidia/version": "NVRM version: 580.1"}
ICD = {"etc/OpenCL/vendors/intel.icd": "/usr/lib/libigdrcl.so\n"}


def finds(there: list[str], why: str | None = None) -> Callable[[Sequence[str]], str]:
    """A backend that finds these devices, after a driver has printed something."""
    return lambda command: f"hello from a driver\n{json.dumps([there, why])}\n"


def test_no_gpu(tmp_path: Path) -> None:
    assert drivers.cuda(machine(tmp_path, AUDIO)).level is Level.OK
    assert drivers.cuda(machine(tmp_path, system="darwin")).level is Level.OK
    assert drivers.cuda(machine(tmp_path, system="win32")).level is Level.OK
    assert drivers.metal(machine(tmp_path)).level is Level.OK


def test_a_gpu_without_a_driver(tmp_path: Path) -> None:
    assert drivers.cuda(machine(tmp_path, GPU)).level is Level.WARNING


def test_a_gpu_with_its_driver(tmp_path: Path) -> None:
    found = drivers.cuda(machine(tmp_path, GPU | DRIVER, command=finds(["H100"])))
    assert (found.level, found.seen) == (Level.OK, "H100")
    found = drivers.cuda(machine(tmp_path, GPU | DRIVER, command=finds([], "CuPy cannot be imported")))
    assert (found.level, found.seen) == (Level.NOTE, "CuPy cannot be imported") and "pip install" in found.advice
    windows = machine(tmp_path, system="win32", command=lambda c: "GPU 0: RTX" if c[0] == "nvidia-smi" else finds(["RTX"])(c))
    assert drivers.cuda(windows).level is Level.OK


@pytest.mark.parametrize("check", [drivers.cuda, drivers.opencl])
def test_a_driver_that_ends_the_process(tmp_path: Path, check: Callable[[Machine], Finding]) -> None:
    files = GPU | DRIVER | ICD | {"usr/lib/libigdrcl.so": ""}
    assert check(machine(tmp_path, files, command=answers({}))).level is Level.WARNING


def test_opencl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drivers, "find_spec", lambda name: None)
    assert drivers.opencl(machine(tmp_path)).level is Level.OK  # nothing is there, and nothing is asked
    assert drivers.opencl(machine(tmp_path, GPU, command=finds([], "no pyopencl"))).level is Level.NOTE
    assert "of the GPU" in drivers.opencl(machine(tmp_path, GPU, command=finds([], "no pyopencl"))).advice
    lost = drivers.opencl(machine(tmp_path, ICD))
    assert lost.level is Level.WARNING and "/usr/lib/libigdrcl.so" in lost.seen
    there = machine(tmp_path, ICD | {"usr/lib/libigdrcl.so": "", "etc/OpenCL/vendors/by_name.icd": "libpocl.so"}, command=finds(["pocl"]))
    assert (drivers.opencl(there).level, drivers.opencl(there).seen) == (Level.OK, "pocl")


def test_no_driver_of_a_gpu_is_asked_for_without_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drivers, "find_spec", lambda name: name)
    found = drivers.opencl(machine(tmp_path, command=finds([], "no platform")))
    assert found.level is Level.NOTE and "GPU" not in found.advice and "PoCL" in found.advice


def test_metal(tmp_path: Path) -> None:
    assert drivers.metal(machine(tmp_path, system="darwin", command=finds(["M4"]))).seen == "M4"
    assert drivers.metal(machine(tmp_path, system="darwin", command=finds([], "no PyObjC"))).level is Level.NOTE


def test_the_real_probe() -> None:
    found = drivers._devices(Machine(), "metal")
    assert found is not None and (found.there or found.why_none)
    assert drivers._devices(Machine(), "no backend") is None
