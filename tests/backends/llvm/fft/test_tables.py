"""Tables of twiddle factors against long doubles."""

from __future__ import annotations

import numpy as np
import pytest

from hologram.backends.llvm.fft import tables
from hologram.backends.llvm.fft.butterflies import root

WIDE = np.finfo(np.longdouble).eps < np.finfo(np.float64).eps


@pytest.mark.skipif(not WIDE, reason="long doubles are doubles here")
@pytest.mark.parametrize("n", [1, 2, 7, 8, 12, 1000, 4096, 99_991, 2**20])
def test_roots_are_exact_to_the_last_bit_or_so(n: int) -> None:
    k = np.random.default_rng(n).integers(0, 4 * n, 500)
    angle = -2 * (np.longdouble(np.pi) + np.longdouble(1.2246467991473531772e-16)) * np.longdouble(k % n) / np.longdouble(n)
    got = tables.roots(k, n)
    assert np.abs(got.real - np.cos(angle)).max() <= 1.5e-16 and np.abs(got.imag - np.sin(angle)).max() <= 1.5e-16
    assert np.abs(got - tables._all_roots(n)[k % n]).max() <= 1.6e-16  # half of the odd eighths may be rounded otherwise
    assert all(abs(complex(*root(int(i), n)) - g) <= 2.3e-16 for i, g in zip(k[:20], got[:20], strict=True))


def test_axes_are_exact() -> None:
    for n in (4, 8, 12, 400):
        assert tables.roots(np.arange(4) * (n // 4), n).tolist() == [1, -1j, -1, 1j]
