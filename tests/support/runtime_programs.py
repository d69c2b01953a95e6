"""Programs in LLVM IR written by hand, and calls of them, for the tests of the native runtime."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from hologram import dtypes
from hologram.backends.llvm.toolchain import target
from hologram.backends.native import calls, storage
from hologram.backends.native.dispatch import Dispatch, Output, Spec
from hologram.backends.native.module import why_not_native
from hologram.ir.aval import aval
from hologram.trace.tensor import Tensor

# marks of a file of such tests
natively = [pytest.mark.skipif(why_not_native() is not None, reason="native calls are off"), pytest.mark.usefixtures("tensors")]
F8 = aval(dtypes.float32, (8,))
CHUNK = 1024

ADD_8 = """
define i64 @graph(ptr %bufs, ptr %ctx) {
  %a = load ptr, ptr %bufs
  %pb = getelementptr i64, ptr %bufs, i64 1
  %b = load ptr, ptr %pb
  %pc = getelementptr i64, ptr %bufs, i64 2
  %c = load ptr, ptr %pc
  %x = load <8 x float>, ptr %a, align 4
  %y = load <8 x float>, ptr %b, align 4
  %z = fadd <8 x float> %x, %y
  store <8 x float> %z, ptr %c
  ret i64 0
}
"""

# adds float32 arrays whose length is the one symbol, in chunks of 1,024; each chunk goes over its elements `rounds` times
ADD_PARALLEL = """
declare i64 @hg_parallel_for(ptr, ptr, ptr, i64, i64)
define internal void @kernel(ptr %bufs, i64 %begin, i64 %end, ptr %scratch) {
entry:
  %a = load ptr, ptr %bufs
  %pb = getelementptr i64, ptr %bufs, i64 1
  %b = load ptr, ptr %pb
  %pc = getelementptr i64, ptr %bufs, i64 2
  %c = load ptr, ptr %pc
  %first = mul i64 %begin, 1024
  %last = mul i64 %end, 1024
  br label %round
round:
  %r = phi i64 [0, %entry], [%r1, %again]
  br label %loop
loop:
  %i = phi i64 [%first, %round], [%j, %loop]
  %pi = getelementptr float, ptr %a, i64 %i
  %qi = getelementptr float, ptr %b, i64 %i
  %oi = getelementptr float, ptr %c, i64 %i
  %x = load volatile float, ptr %pi
  %y = load float, ptr %qi
  %z = fadd float %x, %y
  store float %z, ptr %oi
  store float %z, ptr %scratch
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %last
  br i1 %more, label %loop, label %again
again:
  %r1 = add i64 %r, 1
  %on = icmp slt i64 %r1, ROUNDS
  br i1 %on, label %round, label %out
out:
  ret void
}
define i64 @graph(ptr %bufs, ptr %ctx) {
  %pn = getelementptr i64, ptr %bufs, i64 3
  %n = load i64, ptr %pn
  %chunks = udiv i64 %n, 1024
  %status = call i64 @hg_parallel_for(ptr %ctx, ptr @kernel, ptr %bufs, i64 %chunks, i64 GRAIN)
  ret i64 %status
}
"""

COPY_CELLS = """
define i64 @graph(ptr %bufs, ptr %ctx) {
  %a = load ptr, ptr %bufs
  %pc = getelementptr i64, ptr %bufs, i64 1
  %c = load ptr, ptr %pc
  %v = load i64, ptr %a
  store i64 %v, ptr %c
  ret i64 0
}
"""


def linked(text: str) -> target.Code:
    return target.link(target.compile_ir(text), calls.symbols())


def tensor(x) -> Tensor:
    t = Tensor.__new__(Tensor)
    t._node, t._storage, t._weak = None, storage.copy_of(np.asarray(x)), False
    return t


def values(t: Tensor) -> np.ndarray:
    assert t._node is None and t._weak is False
    return storage.view(t._storage)


class Calls:
    """A fallback that notes its calls."""

    def __init__(self) -> None:
        self.seen: list[tuple] = []

    def __call__(self, *args, **kwargs):
        self.seen.append((args, kwargs))
        return "python"


def adder(code: target.Code, a, b, **options) -> tuple[Dispatch, Calls]:
    fallback = Calls()
    d = Dispatch(fallback, "adder")
    options.setdefault("outputs", [Output(F8)])
    assert d.add(Spec((a, b), 0, address=code.address("graph"), keep=code, **options))
    return d, fallback


def resident() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize()


ROOT = Path(__file__).parents[2]
PRELUDE = f"""
import os, sys, threading, time
sys.path.insert(0, {str(ROOT)!r})
import numpy as np
import pytest
from hologram import dtypes
from hologram.backends.native import classes, dispatch
from hologram.backends.native import pool
from hologram.backends.native import python_storage
from hologram.backends.native import storage
from hologram.backends.native.dispatch import Dispatch
from hologram.backends.native.module import why_not_native
from hologram.errors import OutOfMemory
from hologram.ir.aval import aval
from hologram.trace.tensor import Tensor
from tests.support.runtime_programs import *
"""


def python(code: str, **environment: str) -> subprocess.CompletedProcess:
    """Runs a program of its own, with all the names of this file and of :data:`PRELUDE`."""
    command = [sys.executable, "-W", "ignore", "-c", PRELUDE + textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=os.environ | environment)


def parallel(grain: int, rounds: int = 1) -> target.Code:
    return linked(ADD_PARALLEL.replace("ROUNDS", str(rounds)).replace("GRAIN", str(grain)))


def run_add(code: target.Code, x: np.ndarray, **options) -> np.ndarray:
    a = storage.copy_of(x)
    out = storage.empty(a.aval)
    calls.run(code.address("graph"), [a, a], [out], [x.size], **options)
    return storage.view(out)
