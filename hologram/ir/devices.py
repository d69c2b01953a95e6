"""The devices that programs can run on, under the names that users give, and why others are not there.

A backend is a module with ``found()``: its devices, and why there are none. Importing a backend imports no driver; asking it does.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

from hologram.errors import DeviceError

CPU = "cpu"
AUTO = "auto"
# in the order in which "auto" prefers them
BACKENDS = {
    "metal": "hologram.backends.metal.device",
    "cuda": "hologram.backends.cuda.device",
    "opencl": "hologram.backends.opencl.device",
    "null": "hologram.backends.null.device",
}
_ENDLESS = ("null",)  # backends with as many devices as one asks for, by ``numbered(n)``; they are not listed


class Runtime(Protocol):
    """What is under way on a device."""

    device: Any
    pool: Any  # of its memory

    def compile(self, graph: Any, precision: str, canonical: Any) -> Any:
        """What runs ``graph``, which ``canonical`` reduces."""

    def put(self, source: Any) -> Any:
        """A storage on the device with the values of one elsewhere."""

    def copied(self, source: Any) -> Any:
        """A copy of a storage that is on the device."""

    def read(self, array: Any, source: Any) -> None:
        """Fills an array with the elements of a storage of the device, which are there."""

    @property
    def queue(self) -> Any:
        """Where this thread's work goes."""

    def enter(self, queue: Any) -> None:
        """This thread's work goes to ``queue``, until :meth:`leave`."""

    def leave(self, queue: Any) -> None:
        """Ends the last :meth:`enter` of ``queue``."""


class Device(Protocol):
    """A device that programs can run on."""

    name: str
    kind: str
    units: int  # that compute side by side
    memory_bytes: int

    def describe(self) -> str: ...

    def why_not(self, precision: str, double: bool) -> str | None:
        """Why programs of a precision, with 64-bit floats where ``double``, do not run there; None where they do."""

    @property
    def runtime(self) -> Runtime: ...


class Devices(list[str]):
    """Names of devices. ``details`` says more of each, ``missing`` why the devices of a backend are not there."""

    def __init__(self, details: dict[str, str], missing: dict[str, str]) -> None:
        super().__init__(details)
        self.details, self.missing = details, missing

    def __str__(self) -> str:
        there = [f"{name:12} {what}" for name, what in self.details.items()]
        return "\n".join(there + [f"{name:12} not available: {why}" for name, why in self.missing.items()])


def devices() -> Devices:
    """All devices. Looking for them imports the packages that drive them."""
    found: dict[str, str] = {CPU: "LLVM, native code"}
    missing: dict[str, str] = {}
    for name in BACKENDS:
        if name not in _ENDLESS:
            there, reason = _backend(name).found()
            found |= {d.name: d.describe() for d in there}
            if reason is not None:
                missing[name] = reason
    return Devices(found, missing)


def _backend(name: str) -> Any:
    return import_module(BACKENDS[name])


def why_none(kind: str) -> str | None:
    """Why a backend, one of :data:`BACKENDS`, has no device; None where it has."""
    return _backend(kind).found()[1]


def _numbered(kind: str, number: int | None) -> Device | None:
    """A backend's device of that number, or what the backend's bare name means: the first GPU, or else the first device."""
    if kind in _ENDLESS:
        return _backend(kind).numbered(number or 0)
    there = _backend(kind).found()[0]
    if number is None:
        return next((d for d in there if d.kind == "gpu"), there[0] if there else None)
    return there[number] if number < len(there) else None


def find(name: str) -> Device:
    """The device that ``name``, which is not the CPU's, means. Raises DeviceError for one that is not there: why, and what there is."""
    kind, colon, number = name.partition(":")
    reason = None
    if kind in BACKENDS and (not colon or number.isdecimal()):
        reason = why_none(kind)
        found = _numbered(kind, int(number) if colon else None)
        if found is not None:
            return found
    there = ", ".join(map(repr, devices()))
    raise DeviceError(f"device {name!r} is not available{f': {reason}' if reason else ''}; there is {there}")


def resolve(device: Any) -> str:
    """The name of the device that ``device`` means. Raises DeviceError for one that is not there, and says why."""
    name = str(device)
    return name if name in (CPU, AUTO) else find(name).name


def accelerator() -> str | None:
    """The GPU that ``auto`` may choose, the first in the order of :data:`BACKENDS`; None where there is none."""
    found = (d for name in BACKENDS for d in _backend(name).found()[0])
    return next((d.name for d in found if d.kind == "gpu"), None)


def runtime(name: str) -> Runtime:
    """What is under way on the device that ``name`` means. Raises DeviceError as :func:`find`."""
    return find(name).runtime
