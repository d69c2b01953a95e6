"""Native code of Fourier transforms: runs the steps of a plan (:mod:`hologram.backends.llvm.fft.plan`).

A phase is a parallel loop. Each of its iterations runs the same few steps, calls of kernels on stretches of the arrays and of the thread's memory.
The last block of a row may have steps of its own. All that a step needs but for the addresses of arrays is in the plan.
"""

from __future__ import annotations

# None is the null pointer.
# mypy: disable-error-code="return-value"
from hologram.backends.native.code.capi import PyMem_RawFree, PyMem_RawMalloc
from hologram.backends.native.code.pool import parallel_for
from hologram.backends.native.code.records import SCRATCH_BYTES, Context
from hologram.backends.native_lang.language import Array, Function, Struct, address, exported, i64, integer, native, offset, ptr, void

Pointers = Array[ptr]
LINE = 64
BASES = 64  # bytes of the table of addresses at the head of the memory


class Kernel(Function):
    """One of :mod:`hologram.backends.llvm.fft.kernels`."""

    def __call__(self, x: ptr, xi: ptr, y: ptr, yi: ptr, xrow: i64, yrow: i64, lanes: i64, runs: i64, blocks: i64, table: ptr, aux: ptr) -> void:
        raise NotImplementedError


class Step(Struct):
    """A call. Addresses are that of a base, by its number, and bytes after it."""

    code: Kernel
    x: i64
    x_at: i64
    xi: i64
    xi_at: i64
    y: i64
    y_at: i64
    yi: i64
    yi_at: i64
    xrow: i64
    yrow: i64
    lanes: i64
    runs: i64
    blocks: i64
    table: ptr


class Phase(Struct):
    """``outer`` times ``blocks`` iterations. Block b begins at element min(b * width, limit)."""

    steps: Array[Step]
    n_steps: i64
    last_steps: Array[Step]  # of the last block
    n_last: i64
    blocks: i64
    width: i64
    limit: i64
    source: i64  # which array
    source_outer: i64  # bytes
    source_step: i64
    target: i64
    target_outer: i64
    target_step: i64
    aux: ptr
    aux_step: i64
    memory: i64  # bytes that the steps work in
    chunks: i64
    grain: i64


class Call(Struct):
    context: Context
    phase: Phase
    operand: ptr
    result: ptr
    work: ptr


@native
def run_steps(steps: Array[Step], count: i64, bases: Pointers, aux: ptr) -> void:
    for k in range(count):
        s = steps[k]
        s.code(
            offset(bases[s.x], s.x_at), offset(bases[s.xi], s.xi_at), offset(bases[s.y], s.y_at), offset(bases[s.yi], s.yi_at),
            s.xrow, s.yrow, s.lanes, s.runs, s.blocks, s.table, aux,
        )  # fmt: skip


@native
def run_block(args: ptr, phase: Phase, chunk: i64, bases: Pointers) -> void:
    arrays = Pointers(offset(args, 16))
    row = chunk // phase.blocks
    block = chunk - row * phase.blocks
    start = block * phase.width
    if start > phase.limit:
        start = phase.limit
    source = offset(arrays[phase.source], row * phase.source_outer + start * phase.source_step)
    target = offset(arrays[phase.target], row * phase.target_outer + start * phase.target_step)
    bases[0] = source
    bases[1] = target
    aux = offset(phase.aux, block * phase.aux_step)
    if block == phase.blocks - 1:
        run_steps(phase.last_steps, phase.n_last, bases, aux)
    else:
        run_steps(phase.steps, phase.n_steps, bases, aux)


@exported
def fft_phase(args: ptr, begin: i64, end: i64, scratch: ptr) -> void:
    """Iterations [begin, end) of a phase. Where there is no memory the call is cancelled."""
    phase = Call(args).phase
    allocated = None
    memory = scratch
    if phase.memory + BASES > SCRATCH_BYTES:
        allocated = PyMem_RawMalloc(phase.memory + BASES + LINE)
        if allocated is None:
            Call(args).context.cancelled = 1
            return
        memory = offset(allocated, -integer(allocated) & (LINE - 1))
    bases = Pointers(memory)
    bases[2] = offset(memory, BASES)
    for chunk in range(begin, end):
        run_block(args, phase, chunk, bases)
    if allocated is not None:
        PyMem_RawFree(allocated)


@exported
def fft_run(context: Context, call: Call, phases: Array[Phase], count: i64) -> i64:
    """All phases on the arrays of ``call``: for transforms whose sizes are known when they are run. Nonzero: cancelled."""
    call.context = context
    for i in range(count):
        phase = phases[i]
        call.phase = phase
        if parallel_for(context, address(fft_phase), call, phase.chunks, phase.grain) != 0:
            return 1
    return 0
