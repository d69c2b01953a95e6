"""Functions that kernels in C call: what C leaves open or devices lack, by integer arithmetic on bits.

Each is the twin of what ``primitives.scalar.elementwise`` says the row means. A text's helpers are those that it names, and those that these name.
"""

from __future__ import annotations

import re

import numpy as np

from hologram import dtypes
from hologram.dtypes import FloatFormat

# of narrow floats, in the names of helpers
NARROW = {dtypes.float16: "f16", dtypes.bfloat16: "bf16", dtypes.float8_e4m3fn: "e4m3", dtypes.float8_e5m2: "e5m2"}
HALF_OPS = {"add": "+", "sub": "-", "mul": "*"}  # that instructions for 16-bit floats round as if by float32
_EXTREMES = """\
f{n} hg_{which}_f{n}(const f{n} a, const f{n} b) {{ /* NaN if either is; -0 below +0 */
  if (a != a || b != b) return a + b;
  if (a == b) return hg_f{n}(hg_bits_f{n}(a) {joint} hg_bits_f{n}(b));
  return a {order} b ? a : b;
}}
"""
_PLAIN = {
    "hg_f16_to_f32": """\
f32 hg_f16_to_f32(const u16 h) {
  const u32 body = h & 0x7FFFu, sign = (u32)(h & 0x8000u) << 16;
  if (body >= 0x7C00u) return hg_f32(sign | 0x7F800000u | body << 13);
  if (body >= 0x400u) return hg_f32(sign | ((body << 13) + 0x38000000u));
  return hg_f32(sign | hg_bits_f32((f32)body * 5.9604644775390625e-08f)); /* 2^-24 */
}
""",
    "hg_f32_to_f16": """\
u16 hg_f32_to_f16(const f32 x) {
  const u32 bits = hg_bits_f32(x), body = bits & 0x7FFFFFFFu, sign = bits >> 16 & 0x8000u;
  if (body > 0x7F800000u) return (u16)(sign | 0x7E00u);
  if (body >= 0x477FF000u) return (u16)(sign | 0x7C00u);
  if (body >= 0x38800000u) return (u16)(sign | (body + 0xC8000FFFu + (body >> 13 & 1u)) >> 13);
  return (u16)(sign | (hg_bits_f32(hg_f32(body) + 0.5f) - 0x3F000000u)); /* the sum's last bit is the least of a float16 */
}
""",
    "hg_bf16_to_f32": """\
f32 hg_bf16_to_f32(const u16 h) {
  return hg_f32((u32)h << 16);
}
""",
    "hg_f32_to_bf16": """\
u16 hg_f32_to_bf16(const f32 x) {
  const u32 bits = hg_bits_f32(x);
  return (u16)((x != x ? bits | 0x400000u : bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}
""",
    "hg_popcount_u32": """\
u32 hg_popcount_u32(const u32 x) { /* sums of neighbours, in fields twice as wide each time */
  const u32 pairs = x - ((x >> 1) & 0x55555555u), fours = (pairs & 0x33333333u) + ((pairs >> 2) & 0x33333333u);
  return (((fours + (fours >> 4)) & 0x0F0F0F0Fu) * 0x01010101u) >> 24;
}
""",
    "hg_popcount_u64": """\
u64 hg_popcount_u64(const u64 x) {
  return (u64)(hg_popcount_u32((u32)x) + hg_popcount_u32((u32)(x >> 32)));
}
""",
    "hg_odd_f32": """\
f32 hg_odd_f32(const f64 x) { /* inexact results have their last bit set, so that a second rounding is as good as one */
  const f32 near = (f32)x;
  const f64 back = (f64)near;
  const u32 bits = hg_bits_f32(near);
  if (back == x || x != x) return near;
  return hg_f32((bits - (u32)((hg_bits_f64(back) & ~(1ul << 63)) > (hg_bits_f64(x) & ~(1ul << 63)))) | 1u);
}
""".replace("1ul << 63", "(u64)1 << 63"),
    "hg_odd_i64": """\
f64 hg_odd_i64(const i64 x) { /* as hg_odd_f32, to the 53 bits of a float64 */
  const u64 size = x < 0 ? 0 - (u64)x : (u64)x;
  return (f64)(size > (u64)1 << 52 ? (i64)(((u64)x & ~(u64)2047) | (u64)(((u64)x & 2047) != 0) << 11) : x);
}
""",
    "hg_odd_u64": """\
f64 hg_odd_u64(const u64 x) {
  return (f64)(x > (u64)1 << 52 ? (x & ~(u64)2047) | (u64)((x & 2047) != 0) << 11 : x);
}
""",
}


def _bits(value: float) -> str:
    """The bits of a float32."""
    return f"0x{int(np.float32(value).view(np.uint32)):08X}u"


def _from_8_bits(name: str, form: FloatFormat) -> tuple[str, str]:
    up, single = dtypes.float32.format.fraction_bits - form.fraction_bits, dtypes.float32.format
    infinite = f"  if (body == 0x{form.beyond:X}u) return hg_f32(sign | 0x{single.beyond:X}u);\n" if form.has_infinity else ""
    unit = 2.0 ** (form.least_exponent - form.fraction_bits)
    return (
        f"hg_{name}_to_f32",
        f"""\
f32 hg_{name}_to_f32(const u8 h) {{
  const u32 body = h & 0x7Fu, sign = (u32)(h & 0x80u) << 24;
  if (body > 0x{form.greatest:X}u) return hg_f32(sign | 0x{single.nan:X}u);
{infinite}  if (body >= {1 << form.fraction_bits}u) return hg_f32(sign | ((body << {up}) + 0x{(single.bias - form.bias) << single.fraction_bits:X}u));
  return hg_f32(sign | hg_bits_f32((f32)body * {unit!r}f));
}}
""",
    )


def _to_8_bits(name: str, form: FloatFormat) -> tuple[str, str]:
    """Rounded to even; a sum whose last bit is that of the format's subnormal numbers rounds to these."""
    single = dtypes.float32.format
    down = single.fraction_bits - form.fraction_bits
    rebias = ((form.bias - single.bias) * (1 << single.fraction_bits) + (1 << (down - 1)) - 1) & 0xFFFFFFFF
    power = 2.0 ** (form.least_exponent + down)
    return (
        f"hg_f32_to_{name}",
        f"""\
u8 hg_f32_to_{name}(const f32 x) {{
  const u32 bits = hg_bits_f32(x), body = bits & 0x7FFFFFFFu, sign = bits >> 24 & 0x80u;
  const u32 normal = (body + 0x{rebias:X}u + (body >> {down} & 1u)) >> {down};
  if (body > 0x{single.beyond:X}u) return (u8)(sign | 0x{form.nan:X}u);
  if (body >= {_bits(form.least_normal)}) return (u8)(sign | (normal > 0x{form.beyond:X}u ? 0x{form.beyond:X}u : normal));
  return (u8)(sign | (hg_bits_f32(hg_f32(body) + {power!r}f) - {_bits(power)}));
}}
""",
    )


def _saturating(real: str, signed: bool, bits: int) -> tuple[str, str]:
    """Truncates, saturates at the ends, gives 0 for NaN."""
    to = f"{'i' if signed else 'u'}{bits}"
    name = f"hg_{real}_to_{to}"
    high = 2.0 ** (bits - signed)
    low = -high if signed else 0.0
    suffix = "f" if real == "f32" else ""
    least = f"({to})((u64)1 << {bits - 1})" if signed else "0"
    most = f"({to})(((u64)1 << {bits - 1}) - 1)" if signed else f"({to})~(u64)0"
    body = f"  return x != x ? 0 : x <= {low!r}{suffix} ? {least} : x >= {high!r}{suffix} ? {most} : ({to})x;\n"
    return name, f"{to} {name}(const {real} x) {{\n{body}}}\n"


def _of_halves(op: str, sign: str, half: str) -> tuple[str, str]:
    name, wide = f"hg_{op}_{half}", f"hg_{half}_to_f32"
    return name, f"u16 {name}(const u16 a, const u16 b) {{\n  return hg_f32_to_{half}({wide}(a) {sign} {wide}(b));\n}}\n"


HELPERS: dict[str, str] = {
    **_PLAIN,
    **dict(_of_halves(op, sign, half) for op, sign in HALF_OPS.items() for half in ("f16", "bf16")),
    **dict(make(name, d.format) for d, name in NARROW.items() if d.bits == 8 for make in (_from_8_bits, _to_8_bits)),
    **{
        f"hg_{which}_f{n}": _EXTREMES.format(which=which, n=n, joint=joint, order=order)
        for which, joint, order in (("max", "&", ">"), ("min", "|", "<"))
        for n in (32, 64)
    },
    **dict(_saturating(real, signed, bits) for real in ("f32", "f64") for signed in (True, False) for bits in (8, 16, 32, 64)),
}


def needed(text: str) -> list[str]:
    """Names of the helpers that a text calls, and of those that these call, callees first."""
    found: dict[str, None] = {}

    def visit(part: str) -> None:
        for name in re.findall(r"\bhg_\w+", part):
            if name in HELPERS and name not in found:
                visit(HELPERS[name].partition("{")[2])
                found[name] = None

    visit(text)
    return list(found)
