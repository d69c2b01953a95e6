#pragma OPENCL FP_CONTRACT OFF
typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
typedef float f32;
typedef float2 c64;
#define hg_c64(re, im) ((c64)(re, im))
#define hg_bits_f32(x) as_uint(x)
#define hg_f32(x) as_float(x)

struct __attribute__((aligned(16))) hg_f32x4 { f32 v[4]; };
typedef struct hg_f32x4 hg_f32x4;

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void kernel0(__global const f32 *b0, const i64 b0_at, __global f32 *b1, const i64 b1_at) {
  b0 += b0_at;
  b1 += b1_at;
  const i64 hg_group = (i64)get_group_id(0), hg_groups = (i64)get_num_groups(0), hg_item = (i64)get_local_id(0);
  __local f32 hg_scan_f32[64];
  __local f32 hg_lasts_f32[4];
  __local f32 hg_before_f32[5];
  for (i64 p = hg_group; p < 8; p += hg_groups) {
    f32 a0 = (-0.0f);
    for (i64 turn1 = 0; turn1 < 40; turn1 += 64) {
      const i64 i = turn1 + hg_item;
      const bool live2 = i < 40;
      const f32 v3 = live2 ? b0[i + 40 * p] : 0.0f;
      f32 group5 = v3;
      if (!live2) group5 = (-0.0f);
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      hg_scan_f32[hg_item] = group5;
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      for (int hg_step = 1; hg_step < 16; hg_step <<= 1) {
        f32 before6 = (-0.0f);
        if (hg_item % 16 >= hg_step) before6 = hg_scan_f32[hg_item - hg_step];
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if (hg_item % 16 >= hg_step) { group5 = before6 + group5; }
        hg_scan_f32[hg_item] = group5;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      }
      if (hg_item % 16 == 15) hg_lasts_f32[hg_item / 16] = group5;
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      if (hg_item == 0) {
        #pragma unroll
        for (int hg_at = 0; hg_at < 4; ++hg_at) {
          hg_before_f32[hg_at] = a0;
          a0 = a0 + hg_lasts_f32[hg_at];
        }
        hg_before_f32[4] = a0;
      }
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      f32 v4;
      v4 = hg_before_f32[hg_item / 16] + group5;
      a0 = hg_before_f32[4];
      if (live2) b1[i + 40 * p] = v4;
    }
  }
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void kernel1(__global const f32 *b0, const i64 b0_at, __global f32 *b1, const i64 b1_at) {
  b0 += b0_at;
  b1 += b1_at;
  const i64 hg_group = (i64)get_group_id(0), hg_groups = (i64)get_num_groups(0), hg_item = (i64)get_local_id(0);
  for (i64 p = hg_group; p < 1; p += hg_groups) {
    for (i64 t = hg_item; t < 40; t += 64) {
      f32 a0 = 1.0f;
      for (i64 q = 0; q < 8; ++q) {
        const f32 v1 = b0[-40 * q + t + 280];
        a0 = a0 * v1;
        const f32 v2 = a0;
        b1[40 * q + t] = v2;
      }
    }
  }
}

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void kernel2(__global const f32 *b0, const i64 b0_at, __global f32 *b1, const i64 b1_at) {
  b0 += b0_at;
  b1 += b1_at;
  const i64 hg_group = (i64)get_group_id(0), hg_groups = (i64)get_num_groups(0), hg_item = (i64)get_local_id(0);
  for (i64 p = hg_group; p < 8; p += hg_groups) {
    #pragma unroll 1
    for (i64 at0 = hg_item * 4; at0 < 40; at0 += 128) {
      hg_f32x4 w1[1];
      #pragma unroll
      for (int hg_turn = 0; hg_turn < 1; ++hg_turn) {
        const i64 hg_first = at0 + hg_turn * 128;
        {
          w1[hg_turn] = *(__global const hg_f32x4 *)(b0 + hg_first - 40 * p + 280);
        }
      }
      #pragma unroll
      for (int hg_turn = 0; hg_turn < 1; ++hg_turn) {
        const i64 hg_first = at0 + hg_turn * 128;
        {
          hg_f32x4 w2;
          #pragma unroll
          for (int hg_near = 0; hg_near < 4; ++hg_near) {
            const i64 i = hg_first + hg_near;
            const f32 v3 = w1[hg_turn].v[hg_near];
            w2.v[hg_near] = v3;
          }
          *(__global hg_f32x4 *)(b1 + hg_first + 40 * p) = w2;
        }
      }
    }
  }
}
