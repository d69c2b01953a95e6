"""Comparisons, selection and the algebra of bits and truth values.

``>`` and ``>=`` are turned round, so that only ``<`` and ``<=`` remain. Where a NaN makes both a comparison and its opposite false, the rule is
for integers, or ``fast``.
"""

from __future__ import annotations

from hologram.graph.rewrite.pattern import c, d, ones, p, q, spelled, x, y, z
from hologram.graph.rewrite.rewriter import Rule
from hologram.graph.rewrite.rule import rule

eq, ne, select, isnan, maximum, minimum = map(spelled, ("eq", "ne", "select", "isnan", "max", "min"))

COMPARISONS: list[Rule] = [
    rule("gt", "x > y = y < x", "exact", x > y, y < x),
    rule("ge", "x >= y = y <= x", "exact", x >= y, y <= x),
    rule("lt-self", "x < x = false", "exact", x < x, 0),
    rule("le-self", "x <= x = true", "exact", x <= x, 1, kinds="biu"),
    rule("le-self-float", "x <= x = true", "fast", x <= x, 1, kinds="f"),
    rule("eq-self", "(x == x) = true", "exact", eq(x, x), 1, kinds="biu"),
    rule("eq-self-float", "(x == x) = true", "fast", eq(x, x), 1, kinds="f"),
    rule("ne-self", "(x != x) = false", "exact", ne(x, x), 0, kinds="biu"),
    rule("ne-self-float", "(x != x) = false", "fast", ne(x, x), 0, kinds="f"),
    rule("isnan", "isnan(x) = x != x", "exact", isnan(x), ne(x, x)),
    rule("not-eq", "not x == y = x != y", "exact", ~eq(x, y), ne(x, y)),
    rule("not-ne", "not x != y = x == y", "exact", ~ne(x, y), eq(x, y)),
    rule("not-lt", "not x < y = y <= x", "exact", ~(x < y), y <= x, kinds="biu"),
    rule("not-lt-float", "not x < y = y <= x", "fast", ~(x < y), y <= x, kinds="f"),
    rule("not-le", "not x <= y = y < x", "exact", ~(x <= y), y < x, kinds="biu"),
    rule("not-le-float", "not x <= y = y < x", "fast", ~(x <= y), y < x, kinds="f"),
    rule("eq-neg", "(-x == -y) = x == y", "exact", eq(-x, -y), eq(x, y)),
    rule("ne-neg", "(-x != -y) = x != y", "exact", ne(-x, -y), ne(x, y)),
    rule("lt-neg", "-x < -y = y < x", "exact", -x < -y, y < x, kinds="f"),
    rule("le-neg", "-x <= -y = y <= x", "exact", -x <= -y, y <= x, kinds="f"),
    rule("lt-neg-constant", "-x < c = -c < x", "exact", -x < c, -c < x, kinds="f"),
    rule("constant-lt-neg", "c < -x = x < -c", "exact", c < -x, x < -c, kinds="f"),
    rule("le-neg-constant", "-x <= c = -c <= x", "exact", -x <= c, -c <= x, kinds="f"),
    rule("constant-le-neg", "c <= -x = x <= -c", "exact", c <= -x, x <= -c, kinds="f"),
    rule("eq-add-constant", "(x + c == d) = x == d - c", "exact", eq(x + c, d), eq(x, d - c), kinds="iu"),
    rule("ne-add-constant", "(x + c != d) = x != d - c", "exact", ne(x + c, d), ne(x, d - c), kinds="iu"),
    rule("eq-difference", "(x - y == 0) = x == y", "exact", eq(x - y, 0), eq(x, y), kinds="iu"),
    rule("ne-difference", "(x - y != 0) = x != y", "exact", ne(x - y, 0), ne(x, y), kinds="iu"),
    rule("unsigned-lt-zero", "x < 0 = false", "exact", x < 0, 0, kinds="u"),
    rule("zero-le-unsigned", "0 <= x = true", "exact", 0 <= x, 1, kinds="u"),
]

# on truth values the arithmetic ops are logic: one spelling each
TRUTH: list[Rule] = [
    rule("bool-add", "p + q = p or q", "exact", p + q, p | q),
    rule("bool-mul", "p * q = p and q", "exact", p * q, p & q),
    rule("bool-max", "max(p, q) = p or q", "exact", maximum(p, q), p | q),
    rule("bool-min", "min(p, q) = p and q", "exact", minimum(p, q), p & q),
    rule("bool-ne", "(p != q) = p xor q", "exact", ne(p, q), p ^ q),
    rule("bool-eq", "(p == q) = not p xor q", "exact", eq(p, q), ~(p ^ q)),
    rule("bool-lt", "p < q = not p and q", "exact", p < q, ~p & q),
    rule("bool-le", "p <= q = not p or q", "exact", p <= q, ~p | q),
]

BITS: list[Rule] = [
    rule("and-zero", "x & 0 = 0", "exact", x & 0, 0),
    rule("and-ones", "x & ~0 = x", "exact", x & ones, x),
    rule("or-zero", "x | 0 = x", "exact", x | 0, x),
    rule("or-ones", "x | ~0 = ~0", "exact", x | ones, ones),
    rule("xor-zero", "x ^ 0 = x", "exact", x ^ 0, x),
    rule("xor-ones", "x ^ ~0 = ~x", "exact", x ^ ones, ~x),
    rule("xor-self", "x ^ x = 0", "exact", x ^ x, 0),
    rule("xor-again", "x ^ (x ^ y) = y", "exact", x ^ (x ^ y), y),
    rule("xor-not", "~x ^ y = ~(x ^ y)", "exact", ~x ^ y, ~(x ^ y)),
    rule("and-not-self", "x & ~x = 0", "exact", x & ~x, 0),
    rule("or-not-self", "x | ~x = ~0", "exact", x | ~x, ones),
    rule("and-again", "x & (x & y) = x & y", "exact", x & (x & y), x & y),
    rule("or-again", "x | (x | y) = x | y", "exact", x | (x | y), x | y),
    rule("and-absorbs", "x & (x | y) = x", "exact", x & (x | y), x),
    rule("or-absorbs", "x | (x & y) = x", "exact", x | (x & y), x),
    rule("and-nots", "~x & ~y = ~(x | y)", "exact", ~x & ~y, ~(x | y)),
    rule("or-nots", "~x | ~y = ~(x & y)", "exact", ~x | ~y, ~(x & y)),
    rule("and-constants", "(x & c) & d = x & (c & d)", "exact", (x & c) & d, x & (c & d)),
    rule("or-constants", "(x | c) | d = x | (c | d)", "exact", (x | c) | d, x | (c | d)),
    rule("xor-constants", "(x ^ c) ^ d = x ^ (c ^ d)", "exact", (x ^ c) ^ d, x ^ (c ^ d)),
]

SELECTIONS: list[Rule] = [
    rule("select-same", "p ? x : x = x", "exact", select(p, x, x), x),
    rule("select-true", "true ? x : y = x", "exact", select(True, x, y), x),
    rule("select-false", "false ? x : y = y", "exact", select(False, x, y), y),
    rule("select-not", "(not p) ? x : y = p ? y : x", "exact", select(~p, x, y), select(p, y, x)),
    rule("select-then", "p ? (p ? x : y) : z = p ? x : z", "exact", select(p, select(p, x, y), z), select(p, x, z)),
    rule("select-else", "p ? x : (p ? y : z) = p ? x : z", "exact", select(p, x, select(p, y, z)), select(p, x, z)),
    rule("select-or", "p ? true : q = p or q", "exact", select(p, True, q), p | q),
    rule("select-and", "p ? q : false = p and q", "exact", select(p, q, False), p & q),
    rule("select-not-and", "p ? false : q = not p and q", "exact", select(p, False, q), ~p & q),
    rule("select-not-or", "p ? q : true = not p or q", "exact", select(p, q, True), ~p | q),
    rule("select-min", "x < y ? x : y = min(x, y)", "exact", select(x < y, x, y), minimum(x, y), kinds="iu"),
    rule("select-min-float", "x < y ? x : y = min(x, y)", "fast", select(x < y, x, y), minimum(x, y), kinds="f"),
    rule("select-max", "x < y ? y : x = max(x, y)", "exact", select(x < y, y, x), maximum(x, y), kinds="iu"),
    rule("select-max-float", "x < y ? y : x = max(x, y)", "fast", select(x < y, y, x), maximum(x, y), kinds="f"),
    rule("select-min-or-equal", "x <= y ? x : y = min(x, y)", "exact", select(x <= y, x, y), minimum(x, y), kinds="iu"),
    rule("select-min-or-equal-float", "x <= y ? x : y = min(x, y)", "fast", select(x <= y, x, y), minimum(x, y), kinds="f"),
    rule("select-max-or-equal", "x <= y ? y : x = max(x, y)", "exact", select(x <= y, y, x), maximum(x, y), kinds="iu"),
    rule("select-max-or-equal-float", "x <= y ? y : x = max(x, y)", "fast", select(x <= y, y, x), maximum(x, y), kinds="f"),
]

RULES: list[Rule] = [*TRUTH, *COMPARISONS, *BITS, *SELECTIONS]
