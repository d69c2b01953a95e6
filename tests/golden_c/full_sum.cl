#pragma OPENCL FP_CONTRACT OFF
typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
typedef float f32;
typedef float2 c64;
#define hg_c64(re, im) ((c64)(re, im))
#define hg_bits_f32(x) as_uint(x)
#define hg_f32(x) as_float(x)

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void kernel0(__global const f32 *b0, const i64 b0_at, __global f32 *b1, const i64 b1_at) {
  b0 += b0_at;
  b1 += b1_at;
  const i64 hg_group = (i64)get_group_id(0), hg_groups = (i64)get_num_groups(0), hg_item = (i64)get_local_id(0);
  __local f32 hg_part0_f32[32];
  __local f32 hg_whole0_f32[1];
  for (i64 p = hg_group; p < 4; p += hg_groups) {
    f32 a0 = (-0.0f);
    {
      f32 part1 = (-0.0f);
      #pragma unroll 8
      for (i64 i = hg_item; i < 3072; i += 32) {
        const bool v2 = (u32)(i + 3072 * p) < (u32)(10000);
        const f32 v3 = v2 ? b0[i + 3072 * p] : 0.0f;
        const f32 v4 = v2 ? v3 : (-0.0f);
        part1 = part1 + v4;
      }
      hg_part0_f32[hg_item] = part1;
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      for (int hg_half = 16; hg_half > 0; hg_half >>= 1) {
        if (hg_item % 32 < hg_half) {
          part1 = part1 + hg_part0_f32[hg_item + hg_half];
          hg_part0_f32[hg_item] = part1;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      }
      if (hg_item == 0) { hg_whole0_f32[0] = part1; }
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      a0 = hg_whole0_f32[0];
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
    if (hg_item == 0) b1[p] = a0;
  }
}

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void kernel1(__global const f32 *b0, const i64 b0_at, __global f32 *b1, const i64 b1_at) {
  b0 += b0_at;
  b1 += b1_at;
  const i64 hg_group = (i64)get_group_id(0), hg_groups = (i64)get_num_groups(0), hg_item = (i64)get_local_id(0);
  __local f32 hg_part0_f32[32];
  __local f32 hg_whole0_f32[1];
  for (i64 p = hg_group; p < 1; p += hg_groups) {
    f32 a0 = (-0.0f);
    {
      f32 part1 = (-0.0f);
      #pragma unroll 8
      for (i64 i = hg_item; i < 4; i += 32) {
        const f32 v2 = b0[i];
        part1 = part1 + v2;
      }
      hg_part0_f32[hg_item] = part1;
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      for (int hg_half = 16; hg_half > 0; hg_half >>= 1) {
        if (hg_item % 32 < hg_half) {
          part1 = part1 + hg_part0_f32[hg_item + hg_half];
          hg_part0_f32[hg_item] = part1;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      }
      if (hg_item == 0) { hg_whole0_f32[0] = part1; }
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      a0 = hg_whole0_f32[0];
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
    if (hg_item == 0) b1[0] = a0;
  }
}
