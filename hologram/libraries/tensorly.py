"""TensorLy: ``tensorly.set_backend("hologram")``."""

from __future__ import annotations

from typing import Any

import tensorly.backend as manager
from tensorly.backend.core import Backend, backend_array, backend_basic_math, backend_types

from hologram.trace.tensor import Tensor, namespace

_NAMES = """
    arange argmax argmin argsort concatenate conj copy diag dot flip kron log2 max mean moveaxis nan shape sign sort stack sum tensordot trace
    transpose
"""


def register() -> None:
    """TensorLy knows its backends as subclasses of one class, and takes the names that a list has."""
    names = manager.BackendManager.available_backend_names
    if "hologram" not in names:
        names.append("hologram")


class HologramBackend(Backend, backend_name="hologram"):  # type: ignore[call-arg]
    """What TensorLy computes with: functions of :mod:`hologram.numpy` on Tensors."""

    def __init__(self) -> None:
        super().__init__()
        functions = namespace()  # which may be half imported when this module is
        for name in [*backend_types, *backend_basic_math, *backend_array, *_NAMES.split()]:
            self.register_method(name, getattr(functions, name))
        for name in ("eigh", "lstsq", "qr", "solve", "svd"):
            self.register_method(name, getattr(functions.linalg, name))

    @staticmethod
    def context(tensor: Any) -> dict[str, Any]:
        return {"dtype": tensor.dtype}

    @staticmethod
    def tensor(data: Any, dtype: Any = None, **context: Any) -> Tensor:
        found: Tensor = namespace().asarray(data, dtype=dtype, copy=True)
        return found

    @staticmethod
    def is_tensor(obj: Any) -> bool:
        return type(obj) is Tensor

    @staticmethod
    def to_numpy(tensor: Any) -> Any:
        return tensor.numpy().copy() if type(tensor) is Tensor else tensor

    @staticmethod
    def ndim(tensor: Any) -> int:
        found: int = tensor.ndim
        return found

    @staticmethod
    def clip(tensor: Any, a_min: Any = None, a_max: Any = None) -> Tensor:
        found: Tensor = namespace().clip(tensor, a_min, a_max)
        return found

    @staticmethod
    def logsumexp(tensor: Any, axis: Any = 0) -> Tensor:
        found: Tensor = namespace().special.logsumexp(tensor, axis=axis)
        return found

    @staticmethod
    def index_update(tensor: Any, indices: Any, values: Any) -> Any:
        return tensor.at[indices].set(values)

    def digamma(self, x: Any) -> Tensor:
        found: Tensor = namespace().special.digamma(x)
        return found
