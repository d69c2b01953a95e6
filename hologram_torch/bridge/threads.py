"""Shares torch's OpenMP threads with Hologram."""

from __future__ import annotations

import ctypes

import torch

from hologram.backends.native.module import why_not_native
from hologram.support.once import once


@once
def share() -> bool:
    """Makes Hologram's long calls run on the OpenMP threads that torch works with, where it has some; once for a process.

    Torch's threads spin after each op of eager mode. Threads of our own on the same cores would wait for them.
    """
    if why_not_native() is not None or torch.get_num_threads() < 2:
        return False
    try:
        library = ctypes.CDLL(torch._C.__file__)  # whose dependencies are searched too
        fork, number = library.GOMP_parallel, library.omp_get_thread_num
    except (OSError, AttributeError):
        return False
    from hologram.backends.native.pool import share_openmp

    share_openmp(*(ctypes.cast(f, ctypes.c_void_p).value or 0 for f in (fork, number)))
    return True
