"""``distributed``, Dask's clusters: how Tensors travel between processes, and to the disk and back: as their bytes, without copies of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from distributed.protocol.serialize import dask_deserialize, dask_serialize

from hologram import dtypes
from hologram.trace.convert import asarray
from hologram.trace.tensor import Tensor


def register() -> None:
    """Tells the library about Tensors."""
    dask_serialize.register(Tensor, _serialized)
    dask_deserialize.register(Tensor, _deserialized)


def _serialized(x: Tensor, context: Any = None) -> tuple[dict[str, Any], list[memoryview]]:
    """What tells the array, and its bytes, in C order: those of the Tensor, where these have that order."""
    values = x.numpy()
    return {"dtype": str(dtypes.of(values.dtype)), "shape": values.shape}, [values.reshape(-1).view(np.uint8).data]


def _deserialized(header: dict[str, Any], frames: list[Any]) -> Tensor:
    """The Tensor, in the memory of the message or of what was read from the disk, which nothing else writes to."""
    dtype = dtypes.of(header["dtype"]).np
    return asarray(np.frombuffer(frames[0], np.uint8).view(dtype).reshape(header["shape"]))
