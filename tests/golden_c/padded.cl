#pragma OPENCL FP_CONTRACT OFF
typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
typedef float f32; typedef float2 c64;
#define hg_c64(re, im) ((c64)(re, im))
#define hg_bits_f32(x) as_uint(x)
#define hg_f32(x) as_float(x)

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void kernel0(__global const f32 *b0, const i64 b0_at, __global const f32 *b1, const i64 b1_at, __global f32 *b2, const i64 b2_at) {
  b0 += b0_at;
  b1 += b1_at;
  b2 += b2_at;
  const i64 hg_group = (i64)get_group_id(0), hg_groups = (i64)get_num_groups(0), hg_item = (i64)get_local_id(0);
  for (i64 p = hg_group; p < 21; p += hg_groups) {
    const bool v0 = (u64)(p - 1) < (u64)(20);
    for (i64 i = hg_item; i < 36; i += 64) {
      const bool v1 = (u64)(i) < (u64)(32);
      const bool v2 = (u64)(i) < (u64)(30);
      const bool v3 = (bool)(v0 & v2);
      const bool v4 = (bool)(v1 & v0);
      const bool v5 = (bool)(v2 & v4);
      const f32 v6 = v5 ? b0[i + 30 * p - 30] : 0.0f;
      const f32 v7 = v3 ? v6 : 7.0f;
      const bool v8 = (u64)(i - 32) < (u64)(4);
      const f32 v9 = v8 ? b1[i + 4 * p - 32] : 0.0f;
      const f32 v10 = v1 ? v7 : v9;
      b2[i + 36 * p] = v10;
    }
  }
}
