"""Rows without a derivative, and why."""

from __future__ import annotations

from hologram.ir.op import NoDerivative
from hologram.transform.rules.rules import attach

_ZERO = {
    "it is constant between its steps": ("floor", "ceil", "trunc", "round", "heaviside", "floordiv", "unit_scale", "nextafter"),
    "it reads bits": ("bitcast", "pair_dot", "sort_key", "sort_value", "sort_keys", "order_keys"),
    "it is made while kernels are": ("digit_counts", "digit_move", "run_sums", "scatter_runs", "fused_mul"),
    "it stops derivatives": ("stop",),
    "it has no inputs": ("input", "const", "leaf", "iota", "example"),
    "its result is no real number": (
        *("eq", "ne", "lt", "le", "gt", "ge", "and", "or", "xor", "not", "signbit", "isnan", "isinf", "isfinite"),
        *(
            "shl",
            "shr",
            "shl_low",
            "shr_low",
            "div_trunc",
            "ipow",
            "popcount",
            "reduce_any",
            "reduce_all",
            "argmax",
            "argmin",
            "argsort",
            "axis_index",
        ),
    ),
}
for _reason, _names in _ZERO.items():
    for _name in _names:
        attach(_name, jvp=NoDerivative(_reason))
