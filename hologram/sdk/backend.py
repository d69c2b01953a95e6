"""The backends that executors run on: their names, and which are there."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from hologram.errors import BackendNameError, DeviceError
from hologram.ir import devices
from hologram.support.user_lines import located

__all__ = [
    "BackendType", "get_default_backend", "is_cuda_available", "is_metal_available", "is_opencl_available", "validate_backend",
]  # fmt: skip


class BackendType(StrEnum):
    """Backends, an enumeration of strings: CPU, METAL, CUDA, OPENCL, AUTO.

    >>> hg.backend.BackendType.CPU == "cpu"
    True
    """

    CPU = "cpu"
    METAL = "metal"
    CUDA = "cuda"
    OPENCL = "opencl"
    AUTO = "auto"


_PREFERRED = (BackendType.METAL, BackendType.CUDA, BackendType.OPENCL)  # what auto tries before the CPU


def _why_not(backend: BackendType) -> DeviceError | None:
    """Why there is no device of a backend; None where there is one."""
    try:
        devices.resolve(backend.value)
    except DeviceError as e:
        return e
    return None


def is_metal_available() -> bool:
    """Whether ``Executor("metal")`` can be had.

    >>> hg.backend.is_metal_available() == ("metal" in hg.devices())
    True
    """
    return _why_not(BackendType.METAL) is None


def is_cuda_available() -> bool:
    """Whether ``Executor("cuda")`` can be had.

    >>> isinstance(hg.backend.is_cuda_available(), bool)
    True
    """
    return _why_not(BackendType.CUDA) is None


def is_opencl_available() -> bool:
    """Whether ``Executor("opencl")`` can be had, on a GPU or another OpenCL device.

    >>> isinstance(hg.backend.is_opencl_available(), bool)
    True
    """
    return _why_not(BackendType.OPENCL) is None


def get_default_backend() -> BackendType:
    """Backend that "auto" means on this machine: Metal, CUDA or a GPU with OpenCL, the first that is there, else the CPU.

    >>> hg.backend.get_default_backend() in hg.backend.BackendType
    True
    """
    return next((b for b in _PREFERRED if _is_preferred(b)), BackendType.CPU)


def _is_preferred(backend: BackendType) -> bool:
    return _why_not(backend) is None and devices.find(backend.value).kind == "gpu"  # OpenCL on a CPU is no gain over the CPU itself


def validate_backend(name: Any) -> BackendType:
    """The backend of that name, which is there ("auto" always is).

    Raises BackendNameError for a name that no backend has, DeviceError for a backend that is not there, and says why.

    >>> hg.backend.validate_backend("CPU")
    <BackendType.CPU: 'cpu'>
    """
    backend = backend_of(name)
    reason = None if backend is BackendType.AUTO else _why_not(backend)
    if reason is not None:
        raise located(reason)
    return backend


def backend_of(name: Any) -> BackendType:
    """The backend of that name. Raises BackendNameError."""
    try:
        return BackendType(name.lower() if isinstance(name, str) else name)
    except ValueError:
        raise located(BackendNameError(f"{name!r} is no backend: there are {', '.join(repr(b.value) for b in BackendType)}")) from None
