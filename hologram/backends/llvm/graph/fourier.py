"""Host steps of Fourier transforms: which of them run natively, and their calls.

Object code names a plan by a symbol that says all that the plan depends on; the process that loads it makes the plan. Those of ``exact`` programs,
whose bits are NumPy's, go through Python, and so do those of symbolic sizes, which find their plan when they are called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hologram import dtypes
from hologram.backends.llvm.fft.plan import Phase, Request, plan
from hologram.backends.llvm.toolchain.target import Target
from hologram.graph.lower.host_step import HostStep
from hologram.ir.symbolic import is_static
from hologram.primitives.host import fourier

KERNEL = "hg_fft_phase"
_KINDS = {"float32": "f32", "float64": "f64"}
NAMES = {op.name for op in (fourier.fft, fourier.rfft, fourier.irfft)}


def request(step: HostStep, precision: str, of: Target) -> Request | None:
    """The native transform that a step is; None where it goes through Python."""
    arrays = (*step.node.inputs, *step.results)
    if precision == "exact" or step.op.name not in NAMES or not all(is_static(n) for x in arrays for n in x.shape):
        return None
    x, out = arrays
    return request_of(step.op.name, x.dtype, x.shape, out.shape, step.node.attrs, of)  # type: ignore[arg-type]  # static


def request_of(name: str, dtype: dtypes.DType, shape: tuple[int, ...], result: tuple[int, ...], attrs: tuple[Any, ...], of: Target) -> Request | None:
    """The native transform of an array; None for an empty one, and where there is no plan."""
    if 0 in (*shape, *result):
        return None
    axes, *rest = attrs
    real = dtypes.real_of(dtype)
    n = rest[0] if name == "irfft" else 0
    inverse = rest[0] if name == "fft" else name == "irfft"
    made = Request(name, _KINDS[real.name], shape, axes, n, inverse, rest[-1], of.vector_bytes // real.itemsize)
    return None if plan(made) is None else made


def phases(r: Request) -> Sequence[Phase]:
    """The parallel loops of a transform, in order."""
    found = plan(r)
    assert found is not None
    return found
