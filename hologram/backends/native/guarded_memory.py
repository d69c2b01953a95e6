"""Memory between pages that nobody may touch: an access beyond either end stops the process instead of reaching another array.

Checked programs compare the indices of kernels themselves; this is for what kernels are not: routines of libraries, and code that is compiled ahead.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Any

import numpy as np

from hologram.backends.native.code.checked import POISON

PAGE = mmap.PAGESIZE
LINE = 64
MAX_BLOCKS = 8192  # each takes three of the mappings that a process may have, some 65,000 on Linux
_PAGE_NOACCESS = 1  # Windows
_blocks: dict[int, mmap.mmap] = {}


def allocate(nbytes: int) -> int:
    """The address of poisoned memory, aligned to 64 bytes, after a word that is zero; 0 where the system gives none.

    The page after its last line is guarded, and the page before the one in which it starts.
    """
    if len(_blocks) >= MAX_BLOCKS:
        return 0
    size = -(-nbytes // LINE) * LINE
    inner = -(-(size + LINE) // PAGE) * PAGE
    try:
        block = _map(inner + 2 * PAGE)
        start = _address(block)
        if not (_protect(start) and _protect(start + PAGE + inner)):
            block.close()
            return 0
    except (OSError, ValueError, OverflowError, MemoryError):
        return 0
    data = start + PAGE + inner - size
    _blocks[data] = block
    np.ndarray((size // 8,), np.uint64, block, data - start).fill(POISON)
    return data


def free(address: int) -> None:
    """Gives back what :func:`allocate` gave."""
    _blocks.pop(address).close()


def _map(nbytes: int) -> mmap.mmap:
    if os.name == "nt":
        return mmap.mmap(-1, nbytes)
    return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _address(block: mmap.mmap) -> int:
    return ctypes.addressof(ctypes.c_char.from_buffer(block))


def _protect(page: int) -> bool:
    """Takes all access from a page; False where that fails."""
    if os.name == "nt":
        before = ctypes.c_uint32()
        kernel: Any = ctypes.windll.kernel32  # type: ignore[attr-defined]
        return bool(kernel.VirtualProtect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), _PAGE_NOACCESS, ctypes.byref(before)))
    return ctypes.CDLL(None).mprotect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), 0) == 0
