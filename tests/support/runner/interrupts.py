"""A program that a signal interrupts while its threads compute."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import os, signal, threading
import numpy as np, hologram as hg, hologram.numpy as hnp

{function}
assert "@loop_chunk0" in f.lower(x).as_text("llvm")
threading.Timer(3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    np.asarray(f(x))
except KeyboardInterrupt:
    print(float(hg.jit(lambda x: (x * 2).sum())(np.ones(10**6))))
"""


def require_interruptible(function: str) -> None:
    """An interrupt ends ``f(x)``, whose loop threads share and which never ends by itself, and what comes after is right. ``function`` is the Python
    text that defines both, with NumPy as ``np`` and Hologram as ``hg`` and ``hnp``."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM.format(function=function)], capture_output=True, text=True, timeout=100)
    assert done.stdout == "2000000.0\n", done.stderr
