#pragma OPENCL FP_CONTRACT OFF
typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
typedef float f32;
typedef float2 c64;
#define hg_c64(re, im) ((c64)(re, im))
#define hg_bits_f32(x) as_uint(x)
#define hg_f32(x) as_float(x)

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void kernel0(__global const f32 *b0, const i64 b0_at, __global i64 *b1, const i64 b1_at) {
  b0 += b0_at;
  b1 += b1_at;
  const i64 hg_group = (i64)get_group_id(0), hg_groups = (i64)get_num_groups(0), hg_item = (i64)get_local_id(0);
  __local f32 hg_part0_f32[32];
  __local i64 hg_part0_at_i64[32];
  __local f32 hg_whole0_f32[1];
  __local i64 hg_whole0_at_i64[1];
  for (i64 p = hg_group; p < 8; p += hg_groups) {
    f32 a0 = hg_f32((u32)0xFF800000); i64 a0_at = 9223372036854775807L;
    {
      f32 part1 = hg_f32((u32)0xFF800000); i64 part1_at = 9223372036854775807L;
      #pragma unroll 8
      for (i64 i = hg_item; i < 40; i += 32) {
        const f32 v2 = b0[i + 40 * p];
        const i64 v3 = (i);
        { const f32 hg_x = part1, hg_y = v2; const i64 hg_i = part1_at, hg_j = v3; const bool hg_later = hg_y > hg_x || (hg_y != hg_y && hg_x == hg_x) || ((hg_y == hg_x || (hg_y != hg_y && hg_x != hg_x)) && hg_j < hg_i); part1 = hg_later ? hg_y : hg_x; part1_at = hg_later ? hg_j : hg_i; }
      }
      hg_part0_f32[hg_item] = part1; hg_part0_at_i64[hg_item] = part1_at;
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      for (int hg_half = 16; hg_half > 0; hg_half >>= 1) {
        if (hg_item % 32 < hg_half) {
          { const f32 hg_x = part1, hg_y = hg_part0_f32[hg_item + hg_half]; const i64 hg_i = part1_at, hg_j = hg_part0_at_i64[hg_item + hg_half]; const bool hg_later = hg_y > hg_x || (hg_y != hg_y && hg_x == hg_x) || ((hg_y == hg_x || (hg_y != hg_y && hg_x != hg_x)) && hg_j < hg_i); part1 = hg_later ? hg_y : hg_x; part1_at = hg_later ? hg_j : hg_i; }
          hg_part0_f32[hg_item] = part1; hg_part0_at_i64[hg_item] = part1_at;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      }
      if (hg_item == 0) { hg_whole0_f32[0] = part1; hg_whole0_at_i64[0] = part1_at; }
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      a0 = hg_whole0_f32[0];
      a0_at = hg_whole0_at_i64[0];
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
    if (hg_item == 0) b1[p] = a0_at;
  }
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void kernel1(__global const f32 *b0, const i64 b0_at, __global i64 *b1, const i64 b1_at) {
  b0 += b0_at;
  b1 += b1_at;
  const i64 hg_group = (i64)get_group_id(0), hg_groups = (i64)get_num_groups(0), hg_item = (i64)get_local_id(0);
  for (i64 p = hg_group; p < 1; p += hg_groups) {
    for (i64 t = hg_item; t < 40; t += 64) {
      f32 a0 = hg_f32((u32)0x7F800000); i64 a0_at = 9223372036854775807L;
      #pragma unroll 8
      for (i64 q = 0; q < 8; ++q) {
        const f32 v1 = b0[40 * q + t];
        const i64 v2 = (q);
        { const f32 hg_x = a0, hg_y = v1; const i64 hg_i = a0_at, hg_j = v2; const bool hg_later = hg_y < hg_x || (hg_y != hg_y && hg_x == hg_x) || ((hg_y == hg_x || (hg_y != hg_y && hg_x != hg_x)) && hg_j < hg_i); a0 = hg_later ? hg_y : hg_x; a0_at = hg_later ? hg_j : hg_i; }
      }
      b1[t] = a0_at;
    }
  }
}
