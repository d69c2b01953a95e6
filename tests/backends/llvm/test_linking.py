"""Linked code in a process whose address space is nearly full where code goes."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Every gap of the address space below 4 GiB is taken, but for one of a few pages, and 3 GiB beyond. So what is mapped piece by piece, the first piece
# into that gap, ends up further apart than 2 GiB.
PROGRAM = """
import ctypes, mmap
import numpy as np
import hologram as hg
import hologram.numpy as hnp

PAGE, NOTHING, KEEP, FIXED = mmap.PAGESIZE, 0, 0x4022, 0x100000  # private, anonymous, without reserving; and only where asked
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def take(size, at=None):
    return libc.mmap(at, size, NOTHING, KEEP | (FIXED if at else 0), -1, 0)


def gaps():
    with open("/proc/self/maps") as f:
        ranges = [[int(x, 16) for x in line.split()[0].split("-")] for line in f]
    return [(a, b - a) for (_, a), (b, _) in zip(ranges, ranges[1:]) if 0 < b - a < 2**32]


x = np.ones(100, np.float32)
for i in range(16):
    gap = take(PAGE * (1 + i % 8))
    take(PAGE)
    for at, size in gaps():
        take(size, at)
    take(3 * 2**30)
    libc.munmap(gap, PAGE * (1 + i % 8))
    y = hg.jit(lambda x: hnp.tanh(x * (i + 0.5)) + hnp.exp(x) / (3.7 + i))(x)
    np.testing.assert_allclose(y, np.tanh(x * (i + 0.5)) + np.exp(x) / (3.7 + i), rtol=1e-6)
print("linked")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="maps memory as Linux does")
def test_code_and_its_constants_stay_near() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.stdout == "linked\n", done.stderr
