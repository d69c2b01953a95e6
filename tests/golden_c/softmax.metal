#include <metal_stdlib>
using namespace metal;
#pragma METAL fp contract(off)
typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
typedef float f32;
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

static inline f32 hg_max_f32(const f32 a, const f32 b) { /* NaN if either is; -0 below +0 */
  if (a != a || b != b) return a + b;
  if (a == b) return hg_f32(hg_bits_f32(a) & hg_bits_f32(b));
  return a > b ? a : b;
}

struct alignas(16) hg_f32x4 { f32 v[4]; };
typedef struct hg_f32x4 hg_f32x4;

struct alignas(16) hg_u64x2 { u64 v[2]; };
typedef struct hg_u64x2 hg_u64x2;

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

[[max_total_threads_per_threadgroup(256)]] kernel void kernel0(device const f32 *b0 [[buffer(0)]], device f32 *b1 [[buffer(1)]], uint hg_group_id [[threadgroup_position_in_grid]], uint hg_group_count [[threadgroups_per_grid]], uint hg_item_id [[thread_position_in_threadgroup]]) {
  const i64 hg_team = (i64)hg_item_id / 32, hg_item = (i64)hg_item_id % 32, hg_group = (i64)hg_group_id * 8 + hg_team, hg_groups = (i64)hg_group_count * 8;
  threadgroup hg_u64x2 hg_s3[256];
  threadgroup f32 *s3 = (threadgroup f32 *)hg_s3 + hg_team * 128;
  for (i64 p = hg_group; p < 64; p += hg_groups) {
    simdgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    f32 a0 = hg_f32((u32)0xFF800000);
    {
      f32 part1 = hg_f32((u32)0xFF800000);
      #pragma unroll 8
      for (i64 i = hg_item; i < 128; i += 32) {
        const f32 v2 = b0[i + 128 * p];
        part1 = hg_max_f32(part1, v2);
      }
      #pragma unroll
      for (int hg_half = 16; hg_half > 0; hg_half >>= 1) {
        const f32 other3 = hg_down(part1, hg_half);
        part1 = hg_max_f32(part1, other3);
      }
      a0 = hg_first(part1);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    f32 a4 = (-0.0f);
    {
      f32 part5 = (-0.0f);
      #pragma unroll 4
      for (i64 i = hg_item; i < 128; i += 32) {
        const f32 v6 = b0[i + 128 * p];
        const f32 v7 = v6 - a0;
        const f32 v8 = hgf_exp_f32(v7);
        s3[i] = v8;
        part5 = part5 + v8;
      }
      #pragma unroll
      for (int hg_half = 16; hg_half > 0; hg_half >>= 1) {
        const f32 other9 = hg_down(part5, hg_half);
        part5 = part5 + other9;
      }
      a4 = hg_first(part5);
    }
    simdgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    #pragma unroll 1
    for (i64 at10 = hg_item * 4; at10 < 128; at10 += 128) {
      hg_f32x4 w11[1];
      #pragma unroll
      for (int hg_turn = 0; hg_turn < 1; ++hg_turn) {
        const i64 hg_first = at10 + hg_turn * 128;
        {
          w11[hg_turn] = *(threadgroup const hg_f32x4 *)(s3 + hg_first);
        }
      }
      #pragma unroll
      for (int hg_turn = 0; hg_turn < 1; ++hg_turn) {
        const i64 hg_first = at10 + hg_turn * 128;
        {
          hg_f32x4 w12;
          #pragma unroll
          for (int hg_near = 0; hg_near < 4; ++hg_near) {
            const i64 i = hg_first + hg_near;
            const f32 v13 = w11[hg_turn].v[hg_near];
            const f32 v14 = v13 / a4;
            w12.v[hg_near] = v14;
          }
          *(device hg_f32x4 *)(b1 + hg_first + 128 * p) = w12;
        }
      }
    }
  }
}
