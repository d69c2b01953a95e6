"""Host steps of Fourier transforms: which of them run natively, and their calls.

Object code names a plan by a symbol that says all that the plan depends on; the process that loads it makes the plan. Transforms of symbolic sizes,
and those of ``exact`` programs, whose bits are NumPy's, go through Python.
"""

from __future__ import annotations

from collections.abc import Sequence

from hologram import dtypes
from hologram.backends.llvm.fft.plan import Phase, Request, plan
from hologram.backends.llvm.toolchain.target import Target
from hologram.graph.lower.host_step import HostStep
from hologram.ir.symbolic import is_static
from hologram.primitives.host import fourier

KERNEL = "hg_fft_phase"
_KINDS = {"float32": "f32", "float64": "f64"}
_NAMES = {op.name for op in (fourier.fft, fourier.rfft, fourier.irfft)}


def request(step: HostStep, precision: str, of: Target) -> Request | None:
    """The native transform that a step is; None where it goes through Python."""
    (x, *_), (out, *_), attrs = step.node.inputs or (None,), step.results, step.node.attrs
    if step.op.name not in _NAMES or x is None or precision == "exact" or x.size == 0 or out.size == 0:
        return None
    if not all(map(is_static, (*x.shape, *out.shape))):
        return None
    real = dtypes.real_of(x.dtype)
    width = of.vector_bytes // real.itemsize
    inverse, n, norm = (attrs[1], 0, attrs[2]) if step.op is fourier.fft else (False, 0, attrs[1]) if step.op is fourier.rfft else (True, *attrs[1:])
    made = Request(step.op.name, _KINDS[real.name], x.shape, attrs[0], n, inverse, norm, width)  # type: ignore[arg-type]  # static
    return None if plan(made) is None else made


def phases(r: Request) -> Sequence[Phase]:
    """The parallel loops of a transform, in order."""
    found = plan(r)
    assert found is not None
    return found
