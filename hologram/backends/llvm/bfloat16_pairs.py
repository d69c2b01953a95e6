"""Sums of products of pairs of bfloat16 by one instruction (AVX512-BF16): each lane takes two products to its sum."""

from __future__ import annotations

from hologram.backends.llvm.text import FunctionText, Reg, shuffle_half, vector
from hologram.graph.kernel.ir import Accumulate, Kernel, Store
from hologram.ir.instruction import Ins

MAX_LANES, MIN_LANES = 16, 4  # lanes of an instruction


def summed_pairs(kernel: Kernel) -> frozenset[Ins]:
    """The ``pair_dot`` instructions that sums, and nothing else, want."""
    summed: set[Ins] = set()
    others: set[object] = set()
    for s in kernel.walk():
        if isinstance(s, Accumulate):
            (first, *rest) = s.args
            if isinstance(first, Ins) and first.opname == "pair_dot" and s.acc.op.name == "reduce_sum":
                summed.add(first)
            others.update(rest)
        elif isinstance(s, Ins):
            others.update(s.args)
        elif isinstance(s, Store):
            others.update((s.value, s.mask))
    return frozenset(summed - others)


def add_pairs(f: FunctionText, total: Reg, x: Reg, y: Reg) -> Reg:
    """``total`` and the products of the pairs ``x`` and ``y``, lane by lane."""
    n = total.width
    if n == 1:
        parts = (f.emit(f"insertelement {vector(r.type, MIN_LANES)} zeroinitializer, {r.typed}, i64 0", r.type, MIN_LANES) for r in (total, x, y))
        return f.emit(f"extractelement {add_pairs(f, *parts).typed}, i64 0", "float", 1)
    if n > MAX_LANES:
        low, high = (add_pairs(f, *(shuffle_half(f, r, is_low) for r in (total, x, y))) for is_low in (True, False))
        order = ", ".join(f"i32 {i}" for i in range(n))
        return f.emit(f"shufflevector {low.typed}, {high.typed}, <{n} x i32> <{order}>", "float", n)
    x, y = (f.emit(f"bitcast {r.typed} to {vector('bfloat', 2 * n)}", "bfloat", 2 * n) for r in (x, y))
    return f.emit(f"call {vector('float', n)} @llvm.x86.avx512bf16.dpbf16ps.{32 * n}({total.typed}, {x.typed}, {y.typed})", "float", n)
