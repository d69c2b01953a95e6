"""The C dialects, a row each: what the one walk of kernel IR (:mod:`hologram.backends.c.walk`) needs to know of each.

Text is written in the types ``i8 … u64 f32 f64`` (``c64`` and ``c128`` for complex numbers, which are only moved and taken apart), and in the
functions that :data:`COMMON` and a row's ``prelude`` define. float16 and bfloat16 are their bits, in ``u16``.

No compiler contracts or assumes anything: what is fused is written as ``fma`` by the walk, so every device that rounds as IEEE 754 does gives the
same bits. ``options`` are the flags that say so, where text cannot.
"""

from __future__ import annotations

from dataclasses import dataclass

_OPENCL = """\
#pragma OPENCL FP_CONTRACT OFF
typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
typedef float f32; typedef float2 c64;
#define hg_c64(re, im) ((c64)(re, im))
#define hg_bits_f32(x) as_uint(x)
#define hg_f32(x) as_float(x)
"""
_OPENCL_DOUBLE = """\
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double f64; typedef double2 c128;
#define hg_c128(re, im) ((c128)(re, im))
#define hg_bits_f64(x) as_ulong(x)
#define hg_f64(x) as_double(x)
"""
_CUDA = """\
typedef signed char i8; typedef short i16; typedef int i32; typedef long long i64;
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
typedef float f32; typedef float2 c64;
#define hg_c64(re, im) make_float2(re, im)
#define hg_bits_f32(x) __float_as_uint(x)
#define hg_f32(x) __uint_as_float(x)
"""
_CUDA_DOUBLE = """\
typedef double f64; typedef double2 c128;
#define hg_c128(re, im) make_double2(re, im)
#define hg_bits_f64(x) ((u64)__double_as_longlong(x))
#define hg_f64(x) __longlong_as_double((i64)(x))
"""
_METAL = """\
#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)
typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
typedef float f32; typedef float2 c64;
#define hg_c64(re, im) float2(re, im)
#define hg_bits_f32(x) as_type<u32>(x)
#define hg_f32(x) as_type<f32>(x)
"""
_C = """\
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
typedef int8_t i8; typedef int16_t i16; typedef int32_t i32; typedef int64_t i64;
typedef uint8_t u8; typedef uint16_t u16; typedef uint32_t u32; typedef uint64_t u64;
typedef float f32; typedef struct { f32 x, y; } c64;
void hg_barrier(void);
static inline c64 hg_c64(f32 re, f32 im) { c64 z; z.x = re; z.y = im; return z; }
static inline u32 hg_bits_f32(f32 x) { u32 b; memcpy(&b, &x, 4); return b; }
static inline f32 hg_f32(u32 b) { f32 x; memcpy(&x, &b, 4); return x; }
"""
_C_DOUBLE = """\
typedef double f64; typedef struct { f64 x, y; } c128;
static inline c128 hg_c128(f64 re, f64 im) { c128 z; z.x = re; z.y = im; return z; }
static inline u64 hg_bits_f64(f64 x) { u64 b; memcpy(&b, &x, 8); return b; }
static inline f64 hg_f64(u64 b) { f64 x; memcpy(&x, &b, 8); return x; }
"""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One row.

    - ``prelude``: types, bit casts and complex numbers; ``double``: the same for float64, None where the dialect has none.
    - ``kernel``: a kernel's head, of ``{name}``, ``{params}`` and ``{items}``, the work-items of a group; ``function``: what stands before a helper.
    - ``memory``, ``local``: address spaces of parameters and of what a group shares.
    - ``group``, ``groups``, ``item``: the work-group's number, how many there are, and the work-item's number in its group.
    - ``integer``: a parameter that is an integer; ``extra``: parameters that every kernel has.
    - ``offsets``: whether each buffer comes with an offset in elements, for devices where a pointer into a buffer cannot be passed.
    - ``slots``: whether parameters are bound by number in the text.
    - ``single``: the suffix of functions of float32. ``long``: the suffix of 64-bit literals.
    """

    name: str
    prelude: str
    double: str | None
    kernel: str
    function: str
    memory: str
    local: str
    barrier: str
    group: str
    groups: str
    item: str
    integer: str
    extra: tuple[str, ...] = ()
    offsets: bool = False
    slots: bool = False
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
    barrier="barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);",
    group="(i64)get_group_id(0)",
    groups="(i64)get_num_groups(0)",
    item="(i64)get_local_id(0)",
    integer="const i64 {name}",
    offsets=True,
    options=("-cl-std=CL1.2",),
)
CUDA = Dialect(
    name="cuda",
    prelude=_CUDA,
    double=_CUDA_DOUBLE,
    kernel='extern "C" __global__ void __launch_bounds__({items}) {name}({params})',
    function="static __device__ __forceinline__ ",
    memory="",
    local="__shared__ ",
    barrier="__syncthreads();",
    group="(i64)blockIdx.x",
    groups="(i64)gridDim.x",
    item="(i64)threadIdx.x",
    integer="const i64 {name}",
    single="f",
    long="LL",
    options=("--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true"),
)
METAL = Dialect(
    name="metal",
    prelude=_METAL,
    double=None,
    kernel="kernel void {name}({params})",
    function="static inline ",
    memory="device ",
    local="threadgroup ",
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
    options=("-fno-fast-math",),
)
C = Dialect(
    name="c",
    prelude=_C,
    double=_C_DOUBLE,
    kernel="void {name}({params})",
    function="static inline ",
    memory="",
    local="static ",
    barrier="hg_barrier();",
    group="hg_group_id",
    groups="hg_group_count",
    item="hg_item_id",
    integer="const i64 {name}",
    extra=("const i64 hg_group_id", "const i64 hg_group_count", "const i64 hg_item_id"),
    single="f",
    long="LL",
    options=("-ffp-contract=off", "-fwrapv"),
)
DIALECTS = {d.name: d for d in (OPENCL, CUDA, METAL, C)}
