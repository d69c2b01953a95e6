"""The devices that programs can run on, under the names that users give, and why others are not there."""

from __future__ import annotations

from typing import Any

from hologram.errors import DeviceError

CPU = "cpu"


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
    from hologram.backends.opencl import device as opencl

    found = {CPU: "LLVM, native code"}
    for d in opencl.devices():
        found[d.name] = repr(d).partition(": ")[2]
    missing = {"cuda": "not in this version", "metal": "not in this version"}
    reason = opencl.why_none()
    if reason is not None:
        missing["opencl"] = reason
    return Devices(found, missing)


def resolve(device: Any) -> str:
    """The name of the device that a program given ``device`` runs on. Raises DeviceError for one that is not there, and says why."""
    name = CPU if device is None else str(device)
    if name == CPU:
        return CPU
    if name.partition(":")[0] == "opencl":
        from hologram.backends.opencl import device as opencl

        return opencl.device(name).name
    there = devices()
    reason = there.missing.get(name.partition(":")[0])
    raise DeviceError(f"device {name!r} is not available{f': {reason}' if reason else ''}; there is {', '.join(map(repr, there))}")
