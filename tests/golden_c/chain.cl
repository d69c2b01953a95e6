#pragma OPENCL FP_CONTRACT OFF
typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
typedef float f32; typedef float2 c64;
#define hg_c64(re, im) ((c64)(re, im))
#define hg_bits_f32(x) as_uint(x)
#define hg_f32(x) as_float(x)

static f32 hg_max_f32(const f32 a, const f32 b) { /* NaN if either is; -0 below +0 */
  if (a != a || b != b) return a + b;
  if (a == b) return hg_f32(hg_bits_f32(a) & hg_bits_f32(b));
  return a > b ? a : b;
}

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void kernel0(__global const f32 *b0, const i64 b0_at, __global const f32 *b1, const i64 b1_at, __global f32 *b2, const i64 b2_at, __global f32 *b3, const i64 b3_at) {
  b0 += b0_at;
  b1 += b1_at;
  b2 += b2_at;
  b3 += b3_at;
  const i64 hg_group = (i64)get_group_id(0), hg_groups = (i64)get_num_groups(0), hg_item = (i64)get_local_id(0);
  for (i64 p = hg_group; p < 4; p += hg_groups) {
    const i64 stop0 = 3072 * p + 3072 < 10000 ? 3072 * p + 3072 : 10000;
    for (i64 i = 3072 * p + hg_item; i < stop0; i += 256) {
      const f32 v1 = b0[i];
      const f32 v2 = b1[i];
      const f32 v3 = v2 * 2.0f;
      const f32 v4 = v1 + v3;
      const f32 v5 = hg_max_f32(v1, v4);
      b2[i] = v4;
      b3[i] = v5;
    }
  }
}
