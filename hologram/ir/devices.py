"""The registry of devices: those that programs can run on, by the names that users give, and why others are missing.

A row of :data:`BACKENDS` is a module with ``found()``: its devices, and why there are none. Importing it imports no driver; asking it does. Other
packages add theirs by an entry point of the group ``hologram.backends``. What compiles for a device and runs programs there keeps to the protocol
:class:`Backend`, the CPU's too.
"""

from __future__ import annotations

from functools import cache
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
CPU_BACKEND = "hologram.backends.cpu.backend"  # loads LLVM
_ENDLESS = ("null",)  # backends with as many devices as one asks for, by ``numbered(n)``; they are not listed


class Backend(Protocol):
    """What compiles programs for one device, and what runs there."""

    @property
    def tile(self) -> Any:
        """How kernels share the work of products on the device: what the pipeline schedules for; None for no tiles."""

    def generate(self, compilation: Any) -> Any:
        """The code of a :class:`hologram.graph.compilation.Compilation`, as :meth:`load` takes it: text, or object code from the disk cache. Raises
        UnsupportedError, with the op and the user's line, for what the device does not run."""

    def load(self, code: Any) -> Any:
        """The executable of generated code."""

    def storage(self, source: Any) -> Any:
        """A storage on the device with the values of one elsewhere."""


class Runtime(Protocol):
    """What is under way on a device."""

    device: Any
    pool: Any  # of its memory

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
    units: int  # that compute in parallel
    memory_bytes: int
    backend_module: str  # has ``DeviceBackend(device)``: what compiles for it

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
    for name in modules():
        if name not in _ENDLESS:
            there, reason = _found(name)
            found |= {d.name: d.describe() for d in there}
            if reason is not None:
                missing[name] = reason
    return Devices(found, missing)


@cache
def modules() -> dict[str, str]:
    """The modules of all backends by their names: :data:`BACKENDS`, then those of entry points, which replace none of these."""
    from importlib.metadata import entry_points  # slow, and of use only where devices are looked for

    return BACKENDS | {e.name: e.value for e in entry_points(group="hologram.backends") if e.name not in BACKENDS}


def _module(name: str) -> Any:
    return import_module(BACKENDS.get(name) or modules()[name])


def _found(name: str) -> tuple[list[Any], str | None]:
    """A backend's devices, and why there are none. Another package's backend that fails has none, and takes nothing else along."""
    try:
        there, reason = _module(name).found()
        return list(there), reason
    except Exception as e:
        if name in BACKENDS:
            raise
        return [], f"its package failed: {type(e).__name__}: {e}"


def _is_backend(name: str) -> bool:
    return name in BACKENDS or name in modules()


def why_none(kind: str) -> str | None:
    """Why a backend, one of :func:`modules`, has no device; None where it has."""
    return _found(kind)[1]


def _numbered(kind: str, number: int | None) -> Device | None:
    """A backend's device of that number, or what the backend's bare name means: the first GPU, or else the first device."""
    if kind in _ENDLESS:
        return _module(kind).numbered(number or 0)
    there = _found(kind)[0]
    if number is None:
        return next((d for d in there if d.kind == "gpu"), there[0] if there else None)
    return there[number] if number < len(there) else None


def find(name: str) -> Device:
    """The device that ``name``, which is not the CPU's, means. Raises DeviceError for one that is not there: why, and what there is."""
    kind, colon, number = name.partition(":")
    reason = None
    if _is_backend(kind) and (not colon or number.isdecimal()):
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
    """The GPU that ``auto`` may choose, the first in the order of :func:`modules`; None where there is none."""
    found = (d for name in modules() for d in _found(name)[0])
    return next((d.name for d in found if d.kind == "gpu"), None)


def runtime(name: str) -> Runtime:
    """What is under way on the device that ``name`` means. Raises DeviceError as :func:`find`."""
    return find(name).runtime


def backend(name: str) -> Backend:
    """What compiles for the device that ``name`` means, the CPU included. Raises DeviceError as :func:`find`."""
    if name == CPU:
        found: Backend = import_module(CPU_BACKEND).BACKEND
    else:
        device = find(name)
        found = import_module(device.backend_module).DeviceBackend(device)
    return found
