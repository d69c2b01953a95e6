"""The dispatcher's fallback for the device. It registers all kernels when the device is first used, and runs ops that have none.

Until then neither torch's decompositions nor the functions of the table are imported.
"""

from __future__ import annotations

import threading
from typing import Any

from torch._ops import OpOverload
from torch.library import Library

KEY = "PrivateUse1"
_libraries: list[Library] = []  # a kernel lives as long as its library
_lock = threading.Lock()
_complete = False


def register() -> None:
    """Registers the fallback, which registers the kernels."""
    _libraries.append(Library("_", "IMPL"))
    _libraries[0].fallback(_fallback, KEY)


def _fallback(op: OpOverload, *args: Any, **options: Any) -> Any:
    from hologram_torch.eager.kernels import fallback  # late: with torch's decompositions

    with _lock:
        first = not _complete
        if first:
            _register_kernels()
    return op(*args, **options) if first else fallback.run(op, *args, **options)


def _register_kernels() -> None:
    global _complete
    from hologram_torch.eager.kernels import table  # late: with all kernels

    library = Library("aten", "IMPL")
    _libraries.append(library)
    for op, function in table.kernels().items():
        library.impl(op, function, KEY)
    for op, function in table.differentiable().items():
        for key in (KEY, "Autograd" + KEY):
            library.impl(op, function, key)
    _complete = True
