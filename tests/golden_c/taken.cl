#pragma OPENCL FP_CONTRACT OFF
typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
typedef float f32; typedef float2 c64;
#define hg_c64(re, im) ((c64)(re, im))
#define hg_bits_f32(x) as_uint(x)
#define hg_f32(x) as_float(x)

static f32 hgf_square_f32(const f32 x0) {
  const f32 v1 = x0 * x0;
  return v1;
}

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void kernel0(__global const i32 *b0, const i64 b0_at, __global const f32 *b1, const i64 b1_at, __global f32 *b2, const i64 b2_at) {
  b0 += b0_at;
  b1 += b1_at;
  b2 += b2_at;
  const i64 hg_group = (i64)get_group_id(0), hg_groups = (i64)get_num_groups(0), hg_item = (i64)get_local_id(0);
  for (i64 p = hg_group; p < 20; p += hg_groups) {
    const i32 v0 = b0[p];
    const i64 taken1 = (i64)v0;
    for (i64 i = hg_item; i < 8; i += 32) {
      const f32 v1 = b1[i + 8 * taken1];
      const f32 v2 = hgf_square_f32(v1);
      b2[i + 8 * p] = v2;
    }
  }
}
