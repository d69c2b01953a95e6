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
    #pragma unroll 1
    for (i64 at1 = hg_item * 4; at1 < 8; at1 += 128) {
      hg_f32x4 w2[1];
      #pragma unroll
      for (int hg_turn = 0; hg_turn < 1; ++hg_turn) {
        const i64 hg_first = at1 + hg_turn * 128;
        {
          w2[hg_turn] = *(__global const hg_f32x4 *)(b1 + hg_first + 8 * taken1);
        }
      }
      #pragma unroll
      for (int hg_turn = 0; hg_turn < 1; ++hg_turn) {
        const i64 hg_first = at1 + hg_turn * 128;
        {
          hg_f32x4 w3;
          #pragma unroll
          for (int hg_near = 0; hg_near < 4; ++hg_near) {
            const i64 i = hg_first + hg_near;
            const f32 v4 = w2[hg_turn].v[hg_near];
            const f32 v5 = hgf_square_f32(v4);
            w3.v[hg_near] = v5;
          }
          *(__global hg_f32x4 *)(b2 + hg_first + 8 * p) = w3;
        }
      }
    }
  }
}
