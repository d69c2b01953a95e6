"""Sums of products of pairs of bfloat16 by one instruction (AVX512-BF16): each lane takes two products to its sum."""

from __future__ import annotations

from hologram.backends.llvm.text import FunctionText, Reg, shuffle_half, vector

MAX_LANES, MIN_LANES = 16, 4  # lanes of an instruction


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
