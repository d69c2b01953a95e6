#pragma OPENCL FP_CONTRACT OFF
typedef char i8; typedef short i16; typedef int i32; typedef long i64;
typedef uchar u8; typedef ushort u16; typedef uint u32; typedef ulong u64;
typedef float f32;
typedef float2 c64;
#define hg_c64(re, im) ((c64)(re, im))
#define hg_bits_f32(x) as_uint(x)
#define hg_f32(x) as_float(x)

static f32 hg_f16_to_f32(const u16 h) {
  const u32 body = h & 0x7FFFu, sign = (u32)(h & 0x8000u) << 16;
  if (body >= 0x7C00u) return hg_f32(sign | 0x7F800000u | body << 13);
  if (body >= 0x400u) return hg_f32(sign | ((body << 13) + 0x38000000u));
  return hg_f32(sign | hg_bits_f32((f32)body * 5.9604644775390625e-08f)); /* 2^-24 */
}

static u16 hg_f32_to_f16(const f32 x) {
  const u32 bits = hg_bits_f32(x), body = bits & 0x7FFFFFFFu, sign = bits >> 16 & 0x8000u;
  if (body > 0x7F800000u) return (u16)(sign | 0x7E00u);
  if (body >= 0x477FF000u) return (u16)(sign | 0x7C00u);
  if (body >= 0x38800000u) return (u16)(sign | (body + 0xC8000FFFu + (body >> 13 & 1u)) >> 13);
  return (u16)(sign | (hg_bits_f32(hg_f32(body) + 0.5f) - 0x3F000000u)); /* the sum's last bit is the least of a float16 */
}

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void kernel0(__global const u16 *b0, const i64 b0_at, __global u16 *b1, const i64 b1_at) {
  b0 += b0_at;
  b1 += b1_at;
  const i64 hg_group = (i64)get_group_id(0), hg_groups = (i64)get_num_groups(0), hg_item = (i64)get_local_id(0);
  __local f32 hg_part0_f32[32];
  __local f32 hg_whole0_f32[1];
  for (i64 p = hg_group; p < 8; p += hg_groups) {
    f32 a0 = (-0.0f);
    {
      f32 part1 = (-0.0f);
      #pragma unroll 4
      for (i64 i = hg_item; i < 40; i += 32) {
        const u16 v2 = b0[i + 40 * p];
        const f32 v3 = hg_f16_to_f32(v2);
        const f32 v4 = v3 * v3;
        const u16 v5 = hg_f32_to_f16(v4);
        const f32 v6 = hg_f16_to_f32(v5);
        part1 = part1 + v6;
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
    const u16 v7 = hg_f32_to_f16(a0);
    if (hg_item == 0) b1[p] = v7;
  }
}
