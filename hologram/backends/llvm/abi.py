"""What generated code and the runtime agree on: where the context of a call has what the function of a graph reads, in bytes.

The runtime's side is :class:`hologram.backends.native.code.records.Context`, and for bars ``Bar`` there; for
Fourier transforms :class:`hologram.backends.native.code.kernels.fft.Phase`.
"""

from __future__ import annotations

SCRATCH_AT = 0
ARENA_AT = 8
ARENA_BYTES_AT = 16
CANCELLED_AT = 24
PENDING_AT = 32  # how many collectives of the call are under way
BAR_DONE_AT = 128  # in the slot of a progress bar: the steps that are done
BAR_LABEL_BYTES = 64  # of its label in UTF-8, with the zeros behind it
TRIAL_BYTES = 64  # of the trials of a loop, :class:`hologram.backends.native.code.step_trials.StepTrial`
PHASE_BYTES = 144  # of a phase of a Fourier transform's plan
