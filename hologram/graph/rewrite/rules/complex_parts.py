"""Complex numbers and their parts: joining cancels splitting, and the other way round."""

from __future__ import annotations

from hologram.graph.rewrite.pattern import spelled, x, y
from hologram.graph.rewrite.rewriter import Rule
from hologram.graph.rewrite.rule import rule

real, imag, complex_ = map(spelled, ("real", "imag", "complex"))

RULES: list[Rule] = [
    rule("real-complex", "real(complex(x, y)) = x", "exact", real(complex_(x, y)), x),
    rule("imag-complex", "imag(complex(x, y)) = y", "exact", imag(complex_(x, y)), y),
    rule("complex-of-parts", "complex(real(x), imag(x)) = x", "exact", complex_(real(x), imag(x)), x),
]
