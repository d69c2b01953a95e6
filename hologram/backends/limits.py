"""What the machine can do at most: operations and bytes a second. The roof of a roofline.

They are measured once in a process, and the best of all processes is kept in the disk cache: other work on the machine makes what is measured slower,
never faster.

:mod:`hologram.backends.rates` has what programs usually reach, which placement reckons with. These are bounds: multiply-adds that wait for nothing,
and arrays that are read and written in order, from memory and from caches.
"""

from __future__ import annotations

import ctypes
import math
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import cache

from hologram.backends import object_cache as disk
from hologram.backends.llvm.toolchain import target
from hologram.backends.native.processors import usable_processors
from hologram.backends.rates import LARGE, rates, stream_seconds
from hologram.ir.devices import CPU

CACHED_BYTES = 2**22  # what is not more is taken to be in caches from one call to the next
_CACHED_ELEMENTS = 1 << 16  # float32, of an array in caches
_SMALL_ELEMENTS = 1 << 8
_STEPS, _RUNS, _ATTEMPTS = 1 << 19, 64, 8  # short runs, many of them: other work disturbs most
_REGISTERS = {"x86_64": 12}  # accumulators that fit into registers, and hide how long an operation takes
_MANY_REGISTERS = 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Nanoseconds, of all threads together: ``operation`` on float32, half a multiply-add; ``byte`` of memory read or written, ``cached_byte`` of
    an array that caches hold; ``launch`` what a kernel costs before it does anything."""

    operation: float
    byte: float
    cached_byte: float
    launch: float = 0.0

    def seconds(self, nbytes: float, operations: float, itemsize: int = 4) -> tuple[float, str]:
        """The least time of a kernel, and what it is bound by: ``memory`` or ``arithmetic``, on elements of ``itemsize`` bytes."""
        moving = nbytes * (self.cached_byte if nbytes <= CACHED_BYTES else self.byte)
        computing = operations * self.operation * max(1.0, itemsize / 4)
        return (self.launch + max(moving, computing)) / 1e9, "memory" if moving >= computing else "arithmetic"


FIELDS = tuple(f.name for f in fields(Limits))


@cache
def limits(name: str) -> Limits:
    """Of the device ``name``; to measure them takes some tenths of a second."""
    if name != CPU:
        found = rates(name)
        return Limits(found.operation, found.byte, found.byte, found.launch)
    key = disk.key("limits", f"cpu, {usable_processors()} threads", target.host().id)
    known = disk.load_entry(key, lambda data, meta: meta.keys() == set(FIELDS) and all(type(x) is float for x in meta.values()))
    before, now = Limits(**known[1]) if known is not None else None, _measured()
    best = now if before is None else Limits(*[min(getattr(x, n) for x in (before, now)) for n in FIELDS])
    if best != before:
        disk.store(key, b"", asdict(best), kind="limits")
    return best


def _measured() -> Limits:
    byte = min([*(_byte(LARGE) for _ in range(_ATTEMPTS)), rates(CPU).byte or 1.0])
    return Limits(_operation(), byte, min([*(_byte(_CACHED_ELEMENTS) for _ in range(_ATTEMPTS)), byte]))


def _byte(elements: int) -> float:
    """Nanoseconds of a byte of arrays of ``elements``; without bound where other work disturbed what is measured so much that there is none."""
    found = (stream_seconds(elements) - stream_seconds(_SMALL_ELEMENTS)) * 1e9 / (8 * (elements - _SMALL_ELEMENTS))
    return found if found > 0 else math.inf


def _operation() -> float:
    """Nanoseconds of an operation where every thread runs multiply-adds that wait for nothing: the fastest of some runs."""
    machine = target.host()
    width, count = machine.vector_bytes // 4, _REGISTERS.get(machine.architecture, _MANY_REGISTERS)
    code = target.link(target.compile_ir(_chains(width, count), machine), {})
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.address("graph"))
    threads = usable_processors()
    best = min(_together(lambda: _chain(run), threads) for _ in range(_RUNS))
    return best / (2 * width * count * _STEPS * threads)


def _chain(run: Callable[..., None]) -> None:
    numbers = (ctypes.c_float * 3)(0.5, 0.25, 0.0)
    run(ctypes.addressof(numbers), _STEPS)


def _together(work: Callable[[], None], threads: int) -> float:
    """Nanoseconds from a common start to the last thread's end."""
    ready = threading.Barrier(threads + 1)

    def run() -> None:
        ready.wait()
        work()

    team = [threading.Thread(target=run) for _ in range(threads)]
    for t in team:
        t.start()
    ready.wait()
    start = time.perf_counter_ns()
    for t in team:
        t.join()
    return float(time.perf_counter_ns() - start)


def _chains(width: int, count: int) -> str:
    """A loop of ``count`` multiply-adds on vectors, each on its own result."""
    v, each = f"<{width} x float>", range(count)
    spread = "\n".join(
        f"  %i{x} = insertelement {v} poison, float %{x}, i32 0\n  %{x}s = shufflevector {v} %i{x}, {v} poison, <{width} x i32> zeroinitializer"
        for x in ("x", "y")
    )
    starts = "\n".join(f"  %s{i} = fadd {v} %ys, splat (float {float(i)})" for i in each)
    phis = "\n".join(f"  %a{i} = phi {v} [ %s{i}, %entry ], [ %b{i}, %loop ]" for i in each)
    steps = "\n".join(f"  %b{i} = call {v} @llvm.fmuladd.v{width}f32({v} %a{i}, {v} %xs, {v} %ys)" for i in each)
    sums = "\n".join(f"  %t{i} = fadd {v} %{f't{i - 1}' if i else 'ys'}, %b{i}" for i in each)
    return f"""declare {v} @llvm.fmuladd.v{width}f32({v}, {v}, {v})
define void @graph(ptr %p, i64 %n) {{
entry:
  %x = load float, ptr %p
  %py = getelementptr float, ptr %p, i64 1
  %y = load float, ptr %py
{spread}
{starts}
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
{phis}
{steps}
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
{sums}
  %total = extractelement {v} %t{count - 1}, i32 0
  %pt = getelementptr float, ptr %p, i64 2
  store float %total, ptr %pt
  ret void
}}
"""
