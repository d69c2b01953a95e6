"""Devices for tests: what the machine has, and CUDA's without a GPU."""

from __future__ import annotations

from typing import Any

import pytest

from hologram.backends.cuda import device as cuda_device
from hologram.ir import devices
from tests.support.devices.fake_cuda import FakeApi
from tests.support.needs import NO_COMPILERS, NO_OPENCL


def install(fake: FakeApi, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Its devices are the CUDA devices of the process."""
    found = [cuda_device.Device(fake, i) for i in range(fake.devices)]  # type: ignore[arg-type]
    monkeypatch.setattr(cuda_device, "found", lambda: (found, None))
    return found


def available(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The device of that name, ``cuda`` being one without a GPU. Skips the test where it cannot be had."""
    if name == "opencl" and NO_OPENCL is not None:
        pytest.skip(f"OpenCL: {NO_OPENCL}")
    if name == "cuda":
        if NO_COMPILERS is not None:
            pytest.skip(NO_COMPILERS)
        install(FakeApi(), monkeypatch)
    return devices.find(name)
