"""The C dialects, a row each: what the one walk of kernel IR (:mod:`hologram.backends.c.kernel`) needs to know of each.

Text is written in the types ``i8 … u64 f32 f64`` (``c64`` and ``c128`` for complex numbers, which are only moved and taken apart), and in the
functions that :data:`COMMON` and a row's ``prelude`` define. Narrow floats are their bits, in ``u16`` or ``u8``.

No compiler contracts or assumes anything: what is fused is written as ``fma`` by the walk, so every device that rounds as IEEE 754 does gives the
same bits. ``options`` are the flags that say so, where text cannot, and that keep a driver from printing what its optimiser left undone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hologram.backends.c.helpers import HALF_OPS

_SIZES = "char, short, int, long"


def _prelude(head: str, signed: str, unsigned: str, rest: str) -> str:
    """``head``, the names of integers of 8 to 64 bits and of float32, and ``rest``."""
    for kind, names in (("i", signed), ("u", unsigned)):
        head += " ".join(f"typedef {name} {kind}{bits};" for bits, name in zip((8, 16, 32, 64), names.split(", "), strict=True)) + "\n"
    return head + "typedef float f32;\n" + rest


_OPENCL = _prelude(
    "#pragma OPENCL FP_CONTRACT OFF\n",
    _SIZES,
    "uchar, ushort, uint, ulong",
    """\
typedef float2 c64;
#define hg_c64(re, im) ((c64)(re, im))
#define hg_bits_f32(x) as_uint(x)
#define hg_f32(x) as_float(x)
""",
)
_OPENCL_DOUBLE = """\
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double f64; typedef double2 c128;
#define hg_c128(re, im) ((c128)(re, im))
#define hg_bits_f64(x) as_ulong(x)
#define hg_f64(x) as_double(x)
"""
_CUDA = _prelude(
    "",
    "signed char, short, int, long long",
    "unsigned char, unsigned short, unsigned int, unsigned long long",
    """\
typedef float2 c64;
#define hg_c64(re, im) make_float2(re, im)
#define hg_bits_f32(x) __float_as_uint(x)
#define hg_f32(x) __uint_as_float(x)
#define hg_down(x, by) __shfl_down_sync(0xFFFFFFFFu, x, by)
#define hg_up(x, by) __shfl_up_sync(0xFFFFFFFFu, x, by)
#define hg_first(x) __shfl_sync(0xFFFFFFFFu, x, 0)
#define hg_swap(x, by) __shfl_xor_sync(0xFFFFFFFFu, x, by)
#define hg_in_slot(x) (hg_table[(u64)(x) >> 48] + ((u64)(x) & 0xFFFFFFFFFFFFu))
""",
)
_CUDA_HELPERS = {  # one instruction each
    f"hg_{which}_f32": f"""\
f32 hg_{which}_f32(const f32 a, const f32 b) {{
  f32 r;
  asm("{which}.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}}
"""
    for which in ("max", "min")
} | {
    f"hg_f32_to_{half}": f"""\
u16 hg_f32_to_{half}(const f32 x) {{
  u16 r;
  asm("cvt.rn.{half}.f32 %0, %1;" : "=h"(r) : "f"(x));
  return r;
}}
"""
    for half in ("f16", "bf16")
}
_FUSED = {  # where there is but a multiply-add of bfloat16: operands of it, of which the constants are 1, -1 and -0
    "add": ("%1, %3, %2", "0x3F80"),
    "sub": ("%2, %3, %1", "0xBF80"),
    "mul": ("%1, %2, %3", "0x8000"),
}
_CUDA_HELPERS |= {
    f"hg_{op}_f16": f"""\
u16 hg_{op}_f16(const u16 a, const u16 b) {{
  u16 r;
  asm("{op}.rn.f16 %0, %1, %2;" : "=h"(r) : "h"(a), "h"(b));
  return r;
}}
"""
    for op in HALF_OPS
}
_CUDA_HELPERS |= {
    f"hg_{op}_bf16": f"""\
u16 hg_{op}_bf16(const u16 a, const u16 b) {{
  u16 r;
#if __CUDA_ARCH__ >= 900
  asm("{op}.rn.bf16 %0, %1, %2;" : "=h"(r) : "h"(a), "h"(b));
#else
  const u16 c = {constant};
  asm("fma.rn.bf16 %0, {operands};" : "=h"(r) : "h"(a), "h"(b), "h"(c));
#endif
  return r;
}}
"""
    for op, (operands, constant) in _FUSED.items()
}
_CUDA_HELPERS["hg_f16_to_f32"] = """\
f32 hg_f16_to_f32(const u16 h) {
  f32 r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(h));
  return r;
}
"""
_CUDA_HELPERS |= {
    f"hg_popcount_u{bits}": f"u{bits} hg_popcount_u{bits}(const u{bits} x) {{\n  return (u{bits}){name}(x);\n}}\n"
    for bits, name in ((32, "__popc"), (64, "__popcll"))
}
_CUDA_DOUBLE = """\
typedef double f64; typedef double2 c128;
#define hg_c128(re, im) make_double2(re, im)
#define hg_bits_f64(x) ((u64)__double_as_longlong(x))
#define hg_f64(x) __longlong_as_double((i64)(x))
"""
_METAL = _prelude(
    "#include <metal_stdlib>\nusing namespace metal;\n#pragma METAL fp contract(off)\n",
    _SIZES,
    "uchar, ushort, uint, ulong",
    """\
typedef float2 c64;
#define hg_c64(re, im) float2(re, im)
#define hg_bits_f32(x) as_type<u32>(x)
#define hg_f32(x) as_type<f32>(x)
template <class T> static inline T hg_down(T x, ushort by) { return simd_shuffle_down(x, by); }
template <class T> static inline T hg_up(T x, ushort by) { return simd_shuffle_up(x, by); }
template <class T> static inline T hg_first(T x) { return simd_broadcast_first(x); }
template <class T> static inline T hg_swap(T x, ushort by) { return simd_shuffle_xor(x, by); }
static inline i64 hg_down(i64 x, ushort by) { /* SIMD-groups exchange at most 32 bits */
  return (i64)((u64)simd_shuffle_down((u32)((u64)x >> 32), by) << 32 | simd_shuffle_down((u32)x, by));
}
static inline i64 hg_up(i64 x, ushort by) {
  return (i64)((u64)simd_shuffle_up((u32)((u64)x >> 32), by) << 32 | simd_shuffle_up((u32)x, by));
}
static inline i64 hg_first(i64 x) { return (i64)((u64)simd_broadcast_first((u32)((u64)x >> 32)) << 32 | simd_broadcast_first((u32)x)); }
static inline u64 hg_down(u64 x, ushort by) { return (u64)hg_down((i64)x, by); }
static inline u64 hg_up(u64 x, ushort by) { return (u64)hg_up((i64)x, by); }
static inline u64 hg_first(u64 x) { return (u64)hg_first((i64)x); }
static inline bool hg_down(bool x, ushort by) { return simd_shuffle_down((u32)x, by) != 0; }
static inline bool hg_up(bool x, ushort by) { return simd_shuffle_up((u32)x, by) != 0; }
static inline bool hg_first(bool x) { return simd_broadcast_first((u32)x) != 0; }
""",
)
_C = _prelude(
    "".join(f"#include <{name}.h>\n" for name in ("math", "stdbool", "stdint", "string")),
    "int8_t, int16_t, int32_t, int64_t",
    "uint8_t, uint16_t, uint32_t, uint64_t",
    """\
typedef struct { f32 x, y; } c64;
void hg_barrier(void);
void hg_team_barrier(void);
void hg_shuffle(void *value, i64 nbytes, int from); /* the value of that item of the team */
static inline c64 hg_c64(f32 re, f32 im) { c64 z; z.x = re; z.y = im; return z; }
static inline u32 hg_bits_f32(f32 x) { u32 b; memcpy(&b, &x, 4); return b; }
static inline f32 hg_f32(u32 b) { f32 x; memcpy(&x, &b, 4); return x; }
#define hg_from(x, item) ({ __typeof__(x) hg_moved = x; hg_shuffle(&hg_moved, sizeof hg_moved, item); hg_moved; })
#define hg_down(x, by) hg_from(x, (int)(hg_item % 32) + (by))
#define hg_up(x, by) hg_from(x, (int)(hg_item % 32) - (by))
#define hg_first(x) hg_from(x, 0)
#define hg_swap(x, by) hg_from(x, (int)(hg_item % 32) ^ (by))
""",
)
_C_DOUBLE = """\
typedef double f64; typedef struct { f64 x, y; } c128;
static inline c128 hg_c128(f64 re, f64 im) { c128 z; z.x = re; z.y = im; return z; }
static inline u64 hg_bits_f64(f64 x) { u64 b; memcpy(&b, &x, 8); return b; }
static inline f64 hg_f64(u64 b) { f64 x; memcpy(&x, &b, 8); return x; }
"""


SLOT_BIT = 48  # as hg_in_slot has it


@dataclass(frozen=True, slots=True)
class Dialect:
    """One row.

    - ``prelude``: types, bit casts and complex numbers; ``double``: the same for float64, None where the dialect has none.
    - ``kernel``: a kernel's head, of ``{name}``, ``{params}``, ``{items}``, the work-items of a group, and ``{resident}``, groups that a unit should
      have registers for; ``function``: what stands before a helper.
    - ``memory``, ``local``: address spaces of parameters and of what a group shares; ``local_pointer``: of pointers to that.
    - ``group``, ``groups``, ``item``: the work-group's number, how many there are, and the work-item's number in its group.
    - ``integer``: a parameter that is an integer; ``extra``: parameters that every kernel has.
    - ``pointer``: what is said of a parameter that is a pointer, ``{name}``; ``helpers``: the dialect's own texts of :data:`~.helpers.HELPERS`.
    - ``offsets``: whether each buffer comes with an offset in elements, for devices where a pointer into a buffer cannot be passed.
    - ``table``: whether each kernel has a first parameter ``hg_table``, which, unless it is null, holds the addresses of slots; pointers are then a
      slot, from bit :data:`SLOT_BIT` on, and an offset there in bytes.
    - ``local_bytes``: of memory that a group may share, which every device of the dialect has.
    - ``staged_bytes``: of these, for rows that all items fetch before some reduce (:mod:`.analysis.staged_rows`); 0: rows are not staged.
    - ``matrix_units``: whether products of 16-bit floats may use instructions for them (:mod:`hologram.backends.c.tensor_core.mma`).
    - ``slots``: whether parameters are bound by number in the text.
    - ``subgroup_barrier``: where 32 neighbouring items, a *subgroup* (a warp), exchange values in registers by ``hg_down``, ``hg_up``, ``hg_swap``
      and ``hg_first``, and meet without the rest of their group; None where a device promises no such thing.
    - ``align``: what aligns a type or an array to ``{n}`` bytes; ``unroll``: asks to unroll the loop that follows.
    - ``single``: the suffix of functions of float32. ``long``: the suffix of 64-bit literals.
    """

    name: str
    prelude: str
    double: str | None
    kernel: str
    function: str
    memory: str
    local: str
    local_pointer: str
    barrier: str
    group: str
    groups: str
    item: str
    integer: str = "const i64 {name}"
    extra: tuple[str, ...] = ()
    pointer: str = ""
    helpers: Mapping[str, str] = field(default_factory=dict)
    offsets: bool = False
    slots: bool = False
    table: bool = False
    local_bytes: int = 32 * 1024
    staged_bytes: int = 0
    matrix_units: bool = False
    subgroup_barrier: str | None = None
    align: str = "__attribute__((aligned({n})))"
    unroll: str = "#pragma unroll"
    single: str = ""
    long: str = "L"
    options: tuple[str, ...] = ()


OPENCL = Dialect(
    name="opencl",
    prelude=_OPENCL,
    double=_OPENCL_DOUBLE,
    kernel="__kernel __attribute__((reqd_work_group_size({items}, 1, 1))) void {name}({params})",
    function="static ",
    memory="__global ",
    local="__local ",
    local_pointer="__local ",
    barrier="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    group="(i64)get_group_id(0)",
    groups="(i64)get_num_groups(0)",
    item="(i64)get_local_id(0)",
    offsets=True,
    options=("-cl-std=CL1.2", "-w"),
)
METAL = Dialect(
    name="metal",
    prelude=_METAL,
    double=None,
    kernel="[[max_total_threads_per_threadgroup({items})]] kernel void {name}({params})",
    function="static inline ",
    memory="device ",
    local="threadgroup ",
    local_pointer="threadgroup ",
    barrier="threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);",
    group="(i64)hg_group_id",
    groups="(i64)hg_group_count",
    item="(i64)hg_item_id",
    integer="constant i64 &{name}",
    extra=(
        "uint hg_group_id [[threadgroup_position_in_grid]]",
        "uint hg_group_count [[threadgroups_per_grid]]",
        "uint hg_item_id [[thread_position_in_threadgroup]]",
    ),
    slots=True,
    subgroup_barrier="simdgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);",
    align="alignas({n})",
    options=("-fno-fast-math",),
)
_FLAT = Dialect(  # one address space, and the functions of C for float32
    name="",
    prelude="",
    double="",
    kernel="",
    function="static inline ",
    memory="",
    local="static ",
    local_pointer="",
    barrier="hg_barrier();",
    group="hg_group_id",
    groups="hg_group_count",
    item="hg_item_id",
    subgroup_barrier="hg_team_barrier();",
    single="f",
    long="LL",
)
CUDA = replace(
    _FLAT,
    name="cuda",
    prelude=_CUDA,
    double=_CUDA_DOUBLE,
    kernel='extern "C" __global__ void __launch_bounds__({items}, {resident}) {name}({params})',
    function="static __device__ __forceinline__ ",
    local="__shared__ ",
    barrier="__syncthreads();",
    subgroup_barrier="__syncwarp();",
    group="(i64)blockIdx.x",
    groups="(i64)gridDim.x",
    item="(i64)threadIdx.x",
    integer="i64 {name}",
    pointer="__builtin_assume(__isGlobal({name}));",
    helpers=_CUDA_HELPERS,
    table=True,
    local_bytes=48 * 1024,
    staged_bytes=48 * 1024,
    matrix_units=True,
    align="__align__({n})",
    options=("--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true"),
)
C = replace(
    _FLAT,
    name="c",
    prelude=_C,
    double=_C_DOUBLE,
    kernel="void {name}({params})",
    extra=("const i64 hg_group_id", "const i64 hg_group_count", "const i64 hg_item_id"),
    unroll="",
    options=("-ffp-contract=off", "-fwrapv"),
)
DIALECTS = {d.name: d for d in (OPENCL, CUDA, METAL, C)}
