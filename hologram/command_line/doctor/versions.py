"""Versions of Python and of packages."""

from __future__ import annotations

import re
import sys
from importlib import metadata

from hologram.command_line.doctor.findings import Finding, note, ok, problem, unknown, warning
from hologram.command_line.doctor.machine import Machine

DISTRIBUTION = "hologram-compute"
NEWEST = (3, 14)  # the newest Python that is tested
_REQUIREMENT = re.compile(r"([\w.-]+)\s*(?:>=\s*([\d.]+))?")


def packages(machine: Machine) -> Finding:
    """Whether the packages that Hologram needs, and PyTorch if it is there, are new enough."""
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return unknown(f"{DISTRIBUTION} is not installed as a package, so that what it needs is not known")
    needed = dict(_parsed(r) for r in requirements if "extra ==" not in r)
    optional = dict(_parsed(r) for r in requirements if re.search(r"extra == .torch.", r) and r.startswith("torch"))
    found = {name: _version(name) for name in needed | optional}
    seen = ", ".join(f"{name} {version or 'missing'}" for name, version in found.items() if version or name in needed)
    old = {name: least for name, least in (needed | optional).items() if _is_old(found[name], least) and (found[name] or name in needed)}
    wanted = " ".join(f'"{name}>={least}"' if least else name for name, least in old.items())
    if old.keys() & needed.keys():
        return problem(seen, f"Hologram needs {wanted}.", f"pip install --upgrade {wanted}")
    return warning(seen, "hologram_torch needs a newer PyTorch.", f"pip install --upgrade {wanted}") if old else ok(seen)


def _parsed(requirement: str) -> tuple[str, str]:
    """The name and the least version of a requirement."""
    found = _REQUIREMENT.match(requirement)
    assert found is not None
    return found[1], found[2] or ""


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _is_old(version: str | None, least: str) -> bool:
    return version is None or _numbers(version) < _numbers(least)


def _numbers(version: str) -> list[int]:
    """What is compared of a version: ``2.13.0+cpu`` is [2, 13]. Zeros at the end do not count."""
    numbers = [int(n) for n in re.match(r"[\d.]*", version)[0].split(".") if n]  # type: ignore[index]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return numbers


def python(machine: Machine) -> Finding:
    """The interpreter."""
    version = f"{sys.implementation.name} {'.'.join(map(str, sys.version_info[:3]))}"
    if hasattr(sys, "gettotalrefcount"):
        return warning(f"{version}, a debug build", "Everything that Python does takes several times as long.", "Use a release build.")
    if sys.flags.dev_mode:
        return note(f"{version} in development mode", "Memory is checked, and warnings are shown: Python is slower.", "Unset PYTHONDEVMODE.")
    if sys.version_info[:2] > NEWEST:
        return note(version, f"Hologram is tested with Python up to {'.'.join(map(str, NEWEST))}.")
    return ok(version)


def native_calls(machine: Machine) -> Finding:
    """Whether calls of jitted functions go to native code without Python between."""
    from hologram.backends.native.module import why_not_native

    reason = why_not_native()
    if reason:
        return warning(reason, "Calls go through Python: some microseconds each instead of some tenths of one.", "Use CPython with its usual build.")
    return ok("yes")
