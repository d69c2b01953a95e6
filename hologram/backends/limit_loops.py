"""Loops that no program on this machine is faster than: reads and copies of working sets, and multiply-adds in registers.

They are written in LLVM IR, and owe nothing to Hologram's compiler. As many threads as Hologram uses work at them. What they take is the subject of
:mod:`hologram.backends.limits`.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from hologram.backends.llvm.toolchain import target
from hologram.backends.native.pool import num_threads
from hologram.settings import MAX_CODEGEN_LEVEL

STEPS = 100_000  # of the loop of multiply-adds, in a piece
PIECES = 8  # for each thread: one that is disturbed leaves some to others
UNROLLED = 8  # vectors that a step of a stream moves
LINE = 64  # bytes of a cache line
MOVED = 1 << 25  # bytes at least that a thread moves in one run of a stream, so that its start does not count
LOOPS = ("read", "copy", "copy_past_caches")


def stream(loop: str, nbytes: int, moved: int = MOVED) -> tuple[Callable[[], None], int]:
    """A function that goes through a working set again and again, by a loop of LOOPS, and how many bytes it moves, read and written.

    Each thread has its part of ``nbytes``, of a power of two, and moves at least ``moved``. Copies past the caches do not read what they overwrite.
    """
    host, threads = target.host(), num_threads()
    pieces = threads * (PIECES if nbytes // threads >= MOVED else 1)  # of what no cache of a core holds, each thread takes the next one
    half = 1 << (max(nbytes // pieces, 4 * UNROLLED * host.vector_bytes).bit_length() - 2)
    memory, step = _aligned(2 * half * pieces), UNROLLED * host.vector_bytes
    window = 2 * half if loop == "read" else half  # what a step's address goes round in
    steps = max(moved * threads // (2 * half * pieces), 1) * (2 * half) // (step if loop == "read" else 2 * step)
    starts = [memory.ctypes.data + 2 * half * i for i in range(pieces)]
    places = [(at + (0 if loop == "read" else half), at, window - 1, steps) for at in starts]
    run = _side_by_side(getattr(_code(host), loop), places)

    def move(keep: Any = memory) -> None:
        run()

    return move, steps * step * (1 if loop == "read" else 2) * pieces


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
        fast = replace(host, codegen_level=MAX_CODEGEN_LEVEL)
        self.linked = target.link(target.compile_ir(_ir(host), fast, "kernel"), {}, (*LOOPS, "multiply_add"))
        pointer, number = ctypes.c_void_p, ctypes.c_int64
        self.read, self.copy, self.copy_past_caches = (
            ctypes.CFUNCTYPE(None, pointer, pointer, number, number)(self.linked.address(name)) for name in LOOPS
        )
        self.multiply_add = ctypes.CFUNCTYPE(None, pointer, number)(self.linked.address("multiply_add"))


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


def _ir(host: target.Target) -> str:
    return (
        _read_ir(host)
        + _copy_ir(host, "copy", "")
        + _copy_ir(host, "copy_past_caches", ", !nontemporal !0")
        + _multiply_add_ir(host)
        + "!0 = !{i32 1}\n"
    )


_STREAM = "ptr %destination, ptr %source, i64 %mask"


def _loads(host: target.Target) -> str:
    """A step's vectors, at an address that goes round."""
    vector, step = f"<{_lanes(host)} x i32>", UNROLLED * host.vector_bytes
    body = f"  %far = mul i64 %i, {step}\n  %offset = and i64 %far, %mask\n"
    for k in range(UNROLLED):
        body += f"  %at{k} = add i64 %offset, {k * host.vector_bytes}\n  %from{k} = getelementptr i8, ptr %source, i64 %at{k}\n"
        body += f"  %x{k} = load {vector}, ptr %from{k}, align {host.vector_bytes}\n"
    return body


def _read_ir(host: target.Target) -> str:
    """Each vector of a step goes into an accumulator of its own."""
    vector = f"<{_lanes(host)} x i32>"
    phis = "".join(f"  %a{k} = phi {vector} [zeroinitializer, %entry], [%b{k}, %step]\n" for k in range(UNROLLED))
    body = _loads(host) + "".join(f"  %b{k} = add {vector} %a{k}, %x{k}\n" for k in range(UNROLLED))
    after, total = _total(vector, "add", UNROLLED)
    after += f"  store {vector} {total}, ptr %destination, align {host.vector_bytes}\n"
    return _loop("read", _STREAM, body, phis, after)


def _copy_ir(host: target.Target, name: str, how: str) -> str:
    body = _loads(host)
    for k in range(UNROLLED):
        body += f"  %to{k} = getelementptr i8, ptr %destination, i64 %at{k}\n"
        body += f"  store <{_lanes(host)} x i32> %x{k}, ptr %to{k}, align {host.vector_bytes}{how}\n"
    return _loop(name, _STREAM, body)


def _total(vector: str, add: str, count: int) -> tuple[str, str]:
    """The sum of the accumulators: instructions, and its name."""
    lines = [f"  %t{k} = {add} {vector} %{f't{k - 1}' if k > 1 else 'a0'}, %a{k}\n" for k in range(1, count)]
    return "".join(lines), f"%t{count - 1}"


def _multiply_add_ir(host: target.Target) -> str:
    """Chains that do not depend on each other; each goes to a fixed point, without subnormal numbers on the way."""
    vector, n = f"<{_lanes(host)} x float>", _accumulators(host)
    half, one = (f"splat (float {c})" for c in ("5.0e-01", "1.0"))
    name = f"llvm.fmuladd.v{_lanes(host)}f32"
    phis = "".join(f"  %a{k} = phi {vector} [splat (float {k}.0), %entry], [%b{k}, %step]\n" for k in range(n))
    body = "".join(f"  %b{k} = call {vector} @{name}({vector} %a{k}, {vector} {half}, {vector} {one})\n" for k in range(n))
    after, total = _total(vector, "fadd", n)
    after += f"  store {vector} {total}, ptr %result, align {host.vector_bytes}\n"
    return f"declare {vector} @{name}({vector}, {vector}, {vector})\n" + _loop("multiply_add", "ptr %result", body, phis, after)
