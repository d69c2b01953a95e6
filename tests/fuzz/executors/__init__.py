"""What runs a case, and what each result is held against.

An executor is a function of a :class:`Run` that raises :class:`~tests.fuzz.judge.Mismatch`, or :class:`Skipped` where it has no meaning for the
case. Any other exception is a failure: every step of the program was traced once already, so nothing may be refused now, save with symbolic sizes
(:data:`compiled.DYNAMIC_REFUSALS`).

Which executors run is drawn from the case's seed, each with its own probability: interpreting costs a millisecond, compiling fifty.
"""

from __future__ import annotations

from ..judge import Skipped
from . import compiled, derivatives, libraries
from .registry import Executor
from .run import Run

EXECUTORS: list[Executor] = [  # in the order in which seeds draw them
    compiled.exact_jit,
    libraries.numpy_steps,
    compiled.standard_jit,
    compiled.fast_jit,
    compiled.lazy,
    compiled.op_by_op,
    compiled.unfused,
    compiled.threads,
    compiled.cpu_level,
    compiled.saved,
    compiled.closed_over,
    compiled.dynamic,
    compiled.other_sizes,
    compiled.donated,
    compiled.tensors,
    compiled.opencl,
    derivatives.vmap_loop,
    derivatives.finite_differences,
    derivatives.transposed,
    libraries.by_values,
    libraries.jax_steps,
    compiled.known_expressions,
    compiled.native_steps,
]

__all__ = ["EXECUTORS", "Executor", "Run", "Skipped"]
