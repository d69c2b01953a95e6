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

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void kernel0(__global const f32 *b0, const i64 b0_at, __global const f32 *b1, const i64 b1_at, __global f32 *b2, const i64 b2_at) {
  b0 += b0_at;
  b1 += b1_at;
  b2 += b2_at;
  const i64 hg_group = (i64)get_group_id(0), hg_groups = (i64)get_num_groups(0), hg_item = (i64)get_local_id(0);
  for (i64 p = hg_group; p < 21; p += hg_groups) {
    const bool v0 = (u32)(p - 1) < (u32)(20);
    #pragma unroll 1
    for (i64 at1 = hg_item * 4; at1 < 36; at1 += 128) {
      #pragma unroll
      for (int hg_turn = 0; hg_turn < 1; ++hg_turn) {
        const i64 hg_first = at1 + hg_turn * 128;
        {
        }
      }
      #pragma unroll
      for (int hg_turn = 0; hg_turn < 1; ++hg_turn) {
        const i64 hg_first = at1 + hg_turn * 128;
        {
          hg_f32x4 w2;
          #pragma unroll
          for (int hg_near = 0; hg_near < 4; ++hg_near) {
            const i64 i = hg_first + hg_near;
            const bool v3 = (u32)(i) < (u32)(32);
            const bool v4 = (u32)(i) < (u32)(30);
            const bool v5 = (bool)(v0 & v4);
            const bool v6 = (bool)(v3 & v0);
            const bool v7 = (bool)(v4 & v6);
            const f32 v8 = v7 ? b0[i + 30 * p - 30] : 0.0f;
            const f32 v9 = v5 ? v8 : 7.0f;
            const bool v10 = (u32)(i - 32) < (u32)(4);
            const f32 v11 = v10 ? b1[i + 4 * p - 32] : 0.0f;
            const f32 v12 = v3 ? v9 : v11;
            w2.v[hg_near] = v12;
          }
          *(__global hg_f32x4 *)(b2 + hg_first + 36 * p) = w2;
        }
      }
    }
  }
}
