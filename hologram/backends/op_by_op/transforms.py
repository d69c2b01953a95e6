"""Fourier transforms as steps: by the plans that compiled programs have, so with the same bits, and without a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.ir.node import Node
from hologram.primitives.host import fourier

TRANSFORMS = (fourier.fft, fourier.rfft, fourier.irfft)


def is_transform(x: Node) -> bool:
    """Whether a node is the result of a Fourier transform."""
    return x.op.kind == "project" and x.inputs[0].op in TRANSFORMS


def function_of_transform(x: Node) -> Callable[..., Any]:
    """What computes the result of a transform: a function of an array and of the attributes of the result's node, where sizes are filled in."""
    from hologram.backends.native.fourier import run  # with the code of transforms, which few expressions need

    op, attrs = x.inputs[0].op, x.inputs[0].attrs

    def transformed(array: np.ndarray, _: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        out = np.empty(shape, dtypes.of(dtype).np)
        axes, n, *rest = attrs
        known = [axes, shape[axes[-1]], *rest] if op is fourier.irfft else list(attrs)
        if not run(op.name, [np.ascontiguousarray(array), out], known):
            np.copyto(out, op.reference(array, *known)[0])
        return out

    return transformed
