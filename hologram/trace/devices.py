"""Where arrays live and programs run, and what is cached on their behalf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hologram.errors import ArgumentError
from hologram.ir.devices import Devices
from hologram.ir.devices import devices as every_device
from hologram.support.user_lines import located
from hologram.trace import hooks, lazy, tree
from hologram.trace.call import jit
from hologram.trace.checks import integer
from hologram.trace.convert import asarray, device_name, put
from hologram.trace.tensor import Tensor

forgetting: list[Callable[[], None]] = []  # of other packages: what forgets the programs that they keep


def devices() -> Devices:
    """The names of the devices that ``jit(device=…)`` takes: a list, whose ``missing`` says why others are not there. ``print`` shows both.

    >>> hg.devices()[0]
    'cpu'
    """
    return every_device()


def default_device() -> str:
    """The name of the device on which programs run unless ``jit`` or their arguments say otherwise.

    >>> hg.default_device()
    'cpu'
    """
    return "cpu"


def device_put(value: Any, device: Any = None) -> Any:
    """Moves the leaves of a pytree to ``device``, as Tensors; programs that read them then run there. None is the CPU. A
    :class:`~hologram.distributed.NamedSharding` divides them among processes: see docs/distributed.md.

    Returns before the copies are done. What is there already is not copied. Raises DeviceError for a device that is not there, OutOfMemory where it
    has no room.

    >>> moved = hg.device_put({"w": np.ones(2, np.float32)}, "cpu")
    >>> moved["w"].device
    'cpu'
    """
    if getattr(type(device), "is_sharding", False):
        return hooks.device_put_sharded(value, device)
    name = device_name(device)
    return tree.map(lambda x: put(asarray(x), name), value)


def device_get(value: Any) -> Any:
    """The leaves of a pytree as NumPy arrays, read-only; numbers and what is no array stay as they are.

    Computes what is pending. Raises TracedValueError for a traced value, DistributedError for an array whose parts other processes have.

    >>> hg.device_get({"w": hnp.ones(2)})
    {'w': array([1., 1.], dtype=float32)}
    """

    def array(x: Any) -> Any:
        return x.numpy() if isinstance(x, Tensor) else np.asarray(x) if type(x) in tree.divided else x

    return tree.map(array, value, is_leaf=lambda x: type(x) in tree.divided)


def local_devices(process_index: int | None = None, backend: str | None = None, host_id: int | None = None) -> list[str]:
    """The names of the devices of this process; of those that run ``backend`` (``cpu``, ``cuda``, …) alone, if it is given.

    >>> hg.local_devices(backend="cpu")
    ['cpu']
    """
    return [name for name in every_device() if backend is None or name.split(":")[0] == backend]


def device_count(backend: str | None = None) -> int:
    """How many :func:`devices` this process has, or has of a ``backend``.

    >>> hg.device_count("cpu")
    1
    """
    return len(local_devices(backend=backend))


def default_backend() -> str:
    """The backend of :func:`default_device`.

    >>> hg.default_backend()
    'cpu'
    """
    return default_device().split(":")[0]


def set_num_threads(n: int) -> None:
    """Sets how many threads kernels may use, the caller's included; 0: what the machine allows. Results do not depend on it.

    Raises ArgumentError for what is no integer, or negative.

    >>> hg.set_num_threads(1)
    >>> hg.set_num_threads(0)
    """
    from hologram.backends.native.pool import set_num_threads

    if (count := integer(n, "set_num_threads", "a number of threads")) < 0:
        raise located(ArgumentError(f"set_num_threads: a number of threads is at least 0, not {count}"))
    set_num_threads(count)


def clear_caches() -> None:
    """Forgets compiled programs and gives back memory kept for results. The disk cache stays.

    >>> hg.clear_caches()
    """
    lazy.clear()
    jit.clear_all()
    for forget in forgetting:
        forget()
    from hologram.backends.native import storage
    from hologram.backends.op_by_op import program

    program.clear()
    storage.clear_caches()
    from hologram.backends.device.runtime import runtimes

    for runtime in runtimes():
        runtime.finish()
        runtime.pool.trim()
