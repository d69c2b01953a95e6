#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)
typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
typedef float f32; typedef float2 c64;
#define hg_c64(re, im) float2(re, im)
#define hg_bits_f32(x) as_type<u32>(x)
#define hg_f32(x) as_type<f32>(x)

static inline f32 hg_max_f32(const f32 a, const f32 b) { /* NaN if either is; -0 below +0 */
  if (a != a || b != b) return a + b;
  if (a == b) return hg_f32(hg_bits_f32(a) & hg_bits_f32(b));
  return a > b ? a : b;
}

static inline f32 hgf_exp_f32(const f32 x0) {
  const bool v1 = x0 > 89.0f;
  const f32 v3 = v1 ? 89.0f : x0;
  const bool v4 = v3 < (-104.0f);
  const f32 v6 = v4 ? (-104.0f) : v3;
  const f32 v7 = fma(v6, 1.442695f, 1.2583166e+07f);
  const f32 v10 = v7 - 1.2583166e+07f;
  const f32 v11 = fma(v10, (-0.69314575f), v6);
  const f32 v13 = v10 * 1.4286068e-06f;
  const f32 v15 = v11 - v13;
  const f32 v16 = v15 * v15;
  const f32 v17 = fma(v15, 0.0013920806f, 0.008369495f);
  const f32 v20 = fma(v17, v15, 0.041666586f);
  const f32 v22 = fma(v20, v15, 0.16666514f);
  const f32 v24 = fma(v22, v15, 0.5f);
  const f32 v26 = fma(v16, v24, v15);
  const f32 v27 = v26 + 1.0f;
  const u32 v29 = hg_bits_f32(v7);
  const u32 v30 = (u32)((u32)v29 << 23u);
  const u32 v32 = (u32)(v30 >> 1u);
  const u32 v34 = (u32)(v32 & 4286578688u);
  const f32 v36 = hg_f32((u32)v34);
  const f32 v37 = v27 * v36;
  const u32 v38 = (u32)((u32)v30 - (u32)v34);
  const f32 v39 = hg_f32((u32)v38);
  const f32 v40 = v37 * v39;
  return v40;
}

kernel void kernel0(device const f32 *b0 [[buffer(0)]], device f32 *b1 [[buffer(1)]], uint hg_group_id [[threadgroup_position_in_grid]], uint hg_group_count [[threadgroups_per_grid]], uint hg_item_id [[thread_position_in_threadgroup]]) {
  const i64 hg_group = (i64)hg_group_id, hg_groups = (i64)hg_group_count, hg_item = (i64)hg_item_id;
  threadgroup f32 s3[128];
  threadgroup f32 hg_part0_f32[128];
  for (i64 p = hg_group; p < 64; p += hg_groups) {
    threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    f32 a0 = hg_f32((u32)0xFF800000);
    {
      f32 part1 = hg_f32((u32)0xFF800000);
      for (i64 i = hg_item < 32 ? hg_item : 128; i < 128; i += 32) {
        const f32 v2 = b0[i + 128 * p];
        part1 = hg_max_f32(part1, v2);
      }
      hg_part0_f32[hg_item] = part1;
      threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
      for (int hg_half = 16; hg_half > 0; hg_half >>= 1) {
        if (hg_item % 32 < hg_half) {
          hg_part0_f32[hg_item] = hg_max_f32(hg_part0_f32[hg_item], hg_part0_f32[hg_item + hg_half]);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
      }
      a0 = hg_part0_f32[0];
      threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    }
    f32 a3 = (-0.0f);
    {
      f32 part4 = (-0.0f);
      for (i64 i = hg_item < 32 ? hg_item : 128; i < 128; i += 32) {
        const f32 v5 = b0[i + 128 * p];
        const f32 v6 = v5 - a0;
        const f32 v7 = hgf_exp_f32(v6);
        s3[i] = v7;
        part4 = part4 + v7;
      }
      hg_part0_f32[hg_item] = part4;
      threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
      for (int hg_half = 16; hg_half > 0; hg_half >>= 1) {
        if (hg_item % 32 < hg_half) {
          hg_part0_f32[hg_item] = hg_part0_f32[hg_item] + hg_part0_f32[hg_item + hg_half];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
      }
      a3 = hg_part0_f32[0];
      threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    }
    for (i64 i = hg_item; i < 128; i += 128) {
      const f32 v8 = s3[i];
      const f32 v9 = v8 / a3;
      b1[i + 128 * p] = v9;
    }
  }
}
