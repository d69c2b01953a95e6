#pragma OPENCL FP_CONTRACT OFF
typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
typedef float f32;
typedef float2 c64;
#define hg_c64(re, im) ((c64)(re, im))
#define hg_bits_f32(x) as_uint(x)
#define hg_f32(x) as_float(x)

static f32 hg_max_f32(const f32 a, const f32 b) { /* NaN if either is; -0 below +0 */
  if (a != a || b != b) return a + b;
  if (a == b) return hg_f32(hg_bits_f32(a) & hg_bits_f32(b));
  return a > b ? a : b;
}

struct __attribute__((aligned(16))) hg_f32x4 { f32 v[4]; };
typedef struct hg_f32x4 hg_f32x4;

struct __attribute__((aligned(16))) hg_u64x2 { u64 v[2]; };
typedef struct hg_u64x2 hg_u64x2;

static f32 hgf_exp_f32(const f32 x0) {
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

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void kernel0(__global const f32 *b0, const i64 b0_at, __global f32 *b1, const i64 b1_at) {
  b0 += b0_at;
  b1 += b1_at;
  const i64 hg_group = (i64)get_group_id(0), hg_groups = (i64)get_num_groups(0), hg_item = (i64)get_local_id(0);
  __local hg_u64x2 hg_s3[32];
  __local f32 *s3 = (__local f32 *)hg_s3;
  __local f32 hg_part0_f32[32];
  __local f32 hg_whole0_f32[1];
  for (i64 p = hg_group; p < 64; p += hg_groups) {
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    f32 a0 = hg_f32((u32)0xFF800000);
    {
      f32 part1 = hg_f32((u32)0xFF800000);
      #pragma unroll 8
      for (i64 i = hg_item; i < 128; i += 32) {
        const f32 v2 = b0[i + 128 * p];
        part1 = hg_max_f32(part1, v2);
      }
      hg_part0_f32[hg_item] = part1;
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      for (int hg_half = 16; hg_half > 0; hg_half >>= 1) {
        if (hg_item % 32 < hg_half) {
          part1 = hg_max_f32(part1, hg_part0_f32[hg_item + hg_half]);
          hg_part0_f32[hg_item] = part1;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      }
      if (hg_item == 0) { hg_whole0_f32[0] = part1; }
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      a0 = hg_whole0_f32[0];
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
    f32 a3 = (-0.0f);
    {
      f32 part4 = (-0.0f);
      #pragma unroll 4
      for (i64 i = hg_item; i < 128; i += 32) {
        const f32 v5 = b0[i + 128 * p];
        const f32 v6 = v5 - a0;
        const f32 v7 = hgf_exp_f32(v6);
        s3[i] = v7;
        part4 = part4 + v7;
      }
      hg_part0_f32[hg_item] = part4;
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      for (int hg_half = 16; hg_half > 0; hg_half >>= 1) {
        if (hg_item % 32 < hg_half) {
          part4 = part4 + hg_part0_f32[hg_item + hg_half];
          hg_part0_f32[hg_item] = part4;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      }
      if (hg_item == 0) { hg_whole0_f32[0] = part4; }
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      a3 = hg_whole0_f32[0];
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
    #pragma unroll 1
    for (i64 at8 = hg_item * 4; at8 < 128; at8 += 128) {
      hg_f32x4 w9[1];
      #pragma unroll
      for (int hg_turn = 0; hg_turn < 1; ++hg_turn) {
        const i64 hg_first = at8 + hg_turn * 128;
        {
          w9[hg_turn] = *(__local const hg_f32x4 *)(s3 + hg_first);
        }
      }
      #pragma unroll
      for (int hg_turn = 0; hg_turn < 1; ++hg_turn) {
        const i64 hg_first = at8 + hg_turn * 128;
        {
          hg_f32x4 w10;
          #pragma unroll
          for (int hg_near = 0; hg_near < 4; ++hg_near) {
            const i64 i = hg_first + hg_near;
            const f32 v11 = w9[hg_turn].v[hg_near];
            const f32 v12 = v11 / a3;
            w10.v[hg_near] = v12;
          }
          *(__global hg_f32x4 *)(b1 + hg_first + 128 * p) = w10;
        }
      }
    }
  }
}
