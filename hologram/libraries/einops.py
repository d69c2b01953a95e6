"""einops: rearrange, reduce, repeat, einsum and pack of Tensors, inside and outside of traces."""

from __future__ import annotations

from typing import Any

from einops import _backends

from hologram.trace.tensor import Tensor, namespace


def register() -> None:
    """einops finds its backends as subclasses of one class: the one here is."""


class HologramBackend(_backends.NumpyBackend):
    """What einops does with Tensors."""

    framework_name = "hologram"

    def __init__(self) -> None:
        self.np: Any = namespace()

    def is_appropriate_type(self, tensor: Any) -> bool:
        return type(tensor) is Tensor

    def from_numpy(self, x: Any) -> Tensor:
        found: Tensor = self.np.asarray(x)
        return found

    def to_numpy(self, x: Tensor) -> Any:
        return x.numpy()

    def reduce(self, x: Tensor, operation: str, axes: Any) -> Tensor:
        found: Tensor = getattr(self.np, operation)(x, axis=tuple(axes))
        return found

    def is_float_type(self, x: Tensor) -> bool:
        return x._aval()[1].kind == "f"
