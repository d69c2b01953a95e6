"""What limits programs on this machine: copies of memory past the caches, and multiply-adds in registers.

The loops are written in LLVM IR, and owe nothing to Hologram's compiler. As many threads as Hologram uses work at them, each taking the next piece.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

from hologram.backends.llvm.toolchain import target
from hologram.backends.native.pool import num_threads

STEPS = 100_000  # of the loop of multiply-adds, in a piece
PIECES = 8  # for each thread: one that is disturbed leaves some to others
UNROLLED = 4  # vectors that a step of the copy moves
LINE = 64  # bytes of a cache line


def copier(nbytes: int) -> Callable[[], Any]:
    """A function that copies ``nbytes`` by stores that do not read what they overwrite: no kernel that moves its data is faster."""
    host = target.host()
    step = UNROLLED * host.vector_bytes
    source, destination = _aligned(nbytes), _aligned(nbytes)
    pieces = num_threads() * PIECES
    ends = [i * nbytes // pieces // step * step for i in range(pieces + 1)]
    places = [(destination.ctypes.data + a, source.ctypes.data + a, (b - a) // step) for a, b in zip(ends, ends[1:], strict=False)]
    run = _side_by_side(_code(host).copy, places)

    def copy(keep: Any = (source, destination)) -> None:
        run()

    return copy


def multiply_adds() -> tuple[Callable[[], Any], int]:
    """A function that does chains of multiply-adds in float32, and how many operations it does. No program does more in a second."""
    host, pieces = target.host(), num_threads() * PIECES
    results = _aligned(pieces * LINE * 4)
    places = [(results.ctypes.data + i * LINE * 4, STEPS) for i in range(pieces)]
    run = _side_by_side(_code(host).multiply_add, places)

    def compute(keep: Any = results) -> None:
        run()

    return compute, 2 * pieces * STEPS * _accumulators(host) * _lanes(host)


def _aligned(nbytes: int) -> np.ndarray:
    """Bytes that begin at a cache line, all written once."""
    memory = np.ones(nbytes + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + nbytes]


@cache
def _workers(process: int, threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


def _side_by_side(function: Any, arguments: Sequence[tuple[int, ...]]) -> Callable[[], None]:
    """Calls a function with each of the arguments, which threads take in turn; the one that asks is one of them."""
    others = num_threads() - 1

    def take(left: Iterator[tuple[int, ...]]) -> None:
        for a in left:
            function(*a)  # ctypes releases the GIL

    def run() -> None:
        left = iter(arguments)
        started = [_workers(os.getpid(), others).submit(take, left) for _ in range(others)]
        take(left)
        for s in started:
            s.result()

    return run


class _Code:
    """The linked loops."""

    def __init__(self, host: target.Target) -> None:
        self.linked = target.link(target.compile_ir(_copy_ir(host) + _multiply_add_ir(host), host, "kernel"), {}, ("copy", "multiply_add"))
        self.copy = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(self.linked.address("copy"))
        self.multiply_add = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(self.linked.address("multiply_add"))


_code = cache(_Code)


def _lanes(host: target.Target) -> int:
    return host.vector_bytes // 4


def _accumulators(host: target.Target) -> int:
    """As many as hide the latency of a multiply-add, with registers left for its factors."""
    return host.registers * 3 // 4


def _loop(name: str, parameters: str, body: str, phis: str = "", after: str = "") -> str:
    return f"""
define void @{name}({parameters}, i64 %steps) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %step]
{phis}  %more = icmp slt i64 %i, %steps
  br i1 %more, label %step, label %done
step:
{body}  %next = add i64 %i, 1
  br label %loop
done:
{after}  ret void
}}
"""


def _copy_ir(host: target.Target) -> str:
    """Steps of UNROLLED vectors, stored past the caches."""
    vector, lanes = f"<{_lanes(host)} x float>", _lanes(host)
    body = f"  %offset = mul i64 %i, {UNROLLED * lanes}\n"
    for k in range(UNROLLED):
        body += f"  %at{k} = add i64 %offset, {k * lanes}\n"
        body += f"  %from{k} = getelementptr float, ptr %source, i64 %at{k}\n  %to{k} = getelementptr float, ptr %destination, i64 %at{k}\n"
        body += f"  %x{k} = load {vector}, ptr %from{k}, align {host.vector_bytes}\n"
    for k in range(UNROLLED):
        body += f"  store {vector} %x{k}, ptr %to{k}, align {host.vector_bytes}, !nontemporal !0\n"
    return _loop("copy", "ptr %destination, ptr %source", body) + "!0 = !{i32 1}\n"


def _multiply_add_ir(host: target.Target) -> str:
    """Chains that do not depend on each other; each goes to a fixed point, without subnormal numbers on the way."""
    vector, n = f"<{_lanes(host)} x float>", _accumulators(host)
    half, one = (f"splat (float {c})" for c in ("5.0e-01", "1.0"))
    name = f"llvm.fmuladd.v{_lanes(host)}f32"
    phis = "".join(f"  %a{k} = phi {vector} [splat (float {k}.0), %entry], [%b{k}, %step]\n" for k in range(n))
    body = "".join(f"  %b{k} = call {vector} @{name}({vector} %a{k}, {vector} {half}, {vector} {one})\n" for k in range(n))
    after, total = "", "%a0"
    for k in range(1, n):
        after += f"  %t{k} = fadd {vector} {total}, %a{k}\n"
        total = f"%t{k}"
    after += f"  store {vector} {total}, ptr %result, align {host.vector_bytes}\n"
    return f"declare {vector} @{name}({vector}, {vector}, {vector})\n" + _loop("multiply_add", "ptr %result", body, phis, after)
