"""Devices and their drivers. Each backend looks for its devices in a process of its own: a broken driver may end it, or hang."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from hologram.command_line.doctor.findings import Finding, note, ok, warning
from hologram.command_line.doctor.machine import COMMAND_SECONDS, Machine

VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}
DISPLAY = "0x03"  # the class of PCI devices that GPUs are of
_PROBE = """
import json, sys
from importlib import import_module
from hologram.ir.devices import BACKENDS
try:
    there, why = import_module(BACKENDS[sys.argv[1]]).found()
except ImportError as e:
    there, why = [], str(e)
print(json.dumps([[d.describe() for d in there], why]))
"""


class Devices(NamedTuple):
    """What a backend finds: devices, and why there are none."""

    there: list[str]
    why_none: str


def cuda(machine: Machine) -> Finding:
    """NVIDIA's GPUs."""
    if machine.is_mac:
        return ok("macOS has no CUDA")
    card = "NVIDIA" in _cards(machine)
    driver = machine.text("proc/driver/nvidia/version")
    if machine.system == "win32":
        driver = machine.command(["nvidia-smi", "-L"])
    if not card and driver is None:
        return ok("there is no NVIDIA GPU")
    if driver is None:
        return warning(
            "there is an NVIDIA GPU, and its driver is not loaded", "Programs run on the CPU.", "Install NVIDIA's driver; `nvidia-smi` tells."
        )
    return _of_backend(machine, "cuda", "Programs run on the CPU.", 'pip install "hologram-compute[cuda]"')


def opencl(machine: Machine) -> Finding:
    """Devices of OpenCL."""
    lost = [
        f"{icd.name} names {library}" for icd, library in _icds(machine) if Path(library).is_absolute() and not (machine.root / library[1:]).exists()
    ]
    if lost:
        return warning(f"{', '.join(lost)}, which is not there", "The OpenCL loader skips this driver, or fails.", "Install the driver again.")
    if not _cards(machine) and not list(_icds(machine)) and find_spec("pyopencl") is None:
        return ok("no GPU, no driver and no pyopencl is seen")
    driver = "the driver of the GPU" if _cards(machine) or not machine.is_linux else "an OpenCL driver of the processor, such as PoCL"
    advice = f'Install {driver}, and pip install "hologram-compute[opencl]".'
    return _of_backend(machine, "opencl", "Programs run on the CPU.", advice)


def metal(machine: Machine) -> Finding:
    """GPUs of Macs."""
    if not machine.is_mac:
        return ok("Metal is for Macs")
    return _of_backend(machine, "metal", "Programs run on the CPU.", 'pip install "hologram-compute[metal]"')


def _of_backend(machine: Machine, name: str, why: str, advice: str) -> Finding:
    found = _devices(machine, name)
    if found is None:
        return warning(
            f"the look for devices of {name} ended the process that looked, or took more than {COMMAND_SECONDS:.0f} s",
            "Programs that use devices, and `hologram info`, do the same.",
            "Install the driver again; until then do not import the package that drives it.",
        )
    return ok("; ".join(found.there)) if found.there else note(found.why_none, why, advice)


def _devices(machine: Machine, name: str) -> Devices | None:
    """What a backend finds; None where looking fails."""
    said = machine.command([sys.executable, "-c", _PROBE, name])
    if said is None:
        return None
    there, why = json.loads(said.strip().splitlines()[-1])  # drivers may print
    return Devices(there, why or "")


def _cards(machine: Machine) -> set[str]:
    """The vendors of the GPUs on the PCI bus."""
    folders = (machine.root / "sys/bus/pci/devices").glob("*")
    displays = [f for f in folders if (machine.text(f / "class") or "").startswith(DISPLAY)]
    return {VENDORS[v] for f in displays if (v := machine.text(f / "vendor") or "") in VENDORS}


def _icds(machine: Machine) -> Iterator[tuple[Path, str]]:
    """Registered OpenCL drivers: the file, and the library that it names."""
    for icd in sorted((machine.root / "etc/OpenCL/vendors").glob("*.icd")):
        text = machine.text(icd)
        if text:
            yield icd, text.splitlines()[0].strip()
