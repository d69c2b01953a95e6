#pragma OPENCL FP_CONTRACT OFF
typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
typedef float f32;
typedef float2 c64;
#define hg_c64(re, im) ((c64)(re, im))
#define hg_bits_f32(x) as_uint(x)
#define hg_f32(x) as_float(x)

__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void kernel0(__global const f32 *b0, const i64 b0_at, __global f32 *b1, const i64 b1_at) {
  b0 += b0_at;
  b1 += b1_at;
  const i64 hg_group = (i64)get_group_id(0), hg_groups = (i64)get_num_groups(0), hg_item = (i64)get_local_id(0);
  for (i64 p = hg_group; p < 4; p += hg_groups) {
    const i64 stop0 = 128 * p + 128 < 500 ? 128 * p + 128 : 500;
    for (i64 t = 128 * p + hg_item; t < stop0; t += 128) {
      f32 a1 = (-0.0f);
      #pragma unroll 8
      for (i64 q = 0; q < 40; ++q) {
        const f32 v2 = b0[500 * q + t];
        a1 = a1 + v2;
      }
      for (i64 q = 0; q < 40; ++q) {
        const f32 v3 = b0[500 * q + t];
        const f32 v4 = v3 - a1;
        b1[500 * q + t] = v4;
      }
    }
  }
}
