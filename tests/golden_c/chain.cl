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

__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void kernel0(__global const f32 *b0, const i64 b0_at, __global const f32 *b1, const i64 b1_at, __global f32 *b2, const i64 b2_at, __global f32 *b3, const i64 b3_at) {
  b0 += b0_at;
  b1 += b1_at;
  b2 += b2_at;
  b3 += b3_at;
  const i64 hg_group = (i64)get_group_id(0), hg_groups = (i64)get_num_groups(0), hg_item = (i64)get_local_id(0);
  for (i64 p = hg_group; p < 4; p += hg_groups) {
    const i64 stop0 = 3072 * p + 3072 < 10000 ? 3072 * p + 3072 : 10000;
    #pragma unroll 1
    for (i64 at1 = 3072 * p + hg_item * 4; at1 < stop0; at1 += 3072) {
      hg_f32x4 w2[3];
      hg_f32x4 w3[3];
      #pragma unroll
      for (int hg_turn = 0; hg_turn < 3; ++hg_turn) {
        const i64 hg_first = at1 + hg_turn * 1024;
        if (hg_first < stop0) {
          w2[hg_turn] = *(__global const hg_f32x4 *)(b0 + hg_first);
          w3[hg_turn] = *(__global const hg_f32x4 *)(b1 + hg_first);
        }
      }
      #pragma unroll
      for (int hg_turn = 0; hg_turn < 3; ++hg_turn) {
        const i64 hg_first = at1 + hg_turn * 1024;
        if (hg_first < stop0) {
          hg_f32x4 w4;
          hg_f32x4 w5;
          #pragma unroll
          for (int hg_near = 0; hg_near < 4; ++hg_near) {
            const i64 i = hg_first + hg_near;
            const f32 v6 = w2[hg_turn].v[hg_near];
            const f32 v7 = w3[hg_turn].v[hg_near];
            const f32 v8 = v7 * 2.0f;
            const f32 v9 = v6 + v8;
            const f32 v10 = hg_max_f32(v6, v9);
            w4.v[hg_near] = v9;
            w5.v[hg_near] = v10;
          }
          *(__global hg_f32x4 *)(b2 + hg_first) = w4;
          *(__global hg_f32x4 *)(b3 + hg_first) = w5;
        }
      }
    }
  }
}
