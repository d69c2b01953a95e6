#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
typedef int8_t i8; typedef int16_t i16; typedef int32_t i32; typedef int64_t i64;
typedef uint8_t u8; typedef uint16_t u16; typedef uint32_t u32; typedef uint64_t u64;
typedef float f32;
typedef struct { f32 x, y; } c64;
void hg_barrier(void);
void hg_team_barrier(void);
void hg_shuffle(void *value, i64 nbytes, int from); /* the value of that item of the team */
static inline c64 hg_c64(f32 re, f32 im) { c64 z; z.x = re; z.y = im; return z; }
static inline u32 hg_bits_f32(f32 x) { u32 b; memcpy(&b, &x, 4); return b; }
static inline f32 hg_f32(u32 b) { f32 x; memcpy(&x, &b, 4); return x; }
#define hg_from(x, item) ({ __typeof__(x) hg_moved = x; hg_shuffle(&hg_moved, sizeof hg_moved, item); hg_moved; })
#define hg_down(x, by) hg_from(x, (int)(hg_item % 32) + (by))
#define hg_up(x, by) hg_from(x, (int)(hg_item % 32) - (by))
#define hg_first(x) hg_from(x, 0)
#define hg_swap(x, by) hg_from(x, (int)(hg_item % 32) ^ (by))

static inline f32 hg_max_f32(const f32 a, const f32 b) { /* NaN if either is; -0 below +0 */
  if (a != a || b != b) return a + b;
  if (a == b) return hg_f32(hg_bits_f32(a) & hg_bits_f32(b));
  return a > b ? a : b;
}

struct __attribute__((aligned(16))) hg_f32x4 { f32 v[4]; };
typedef struct hg_f32x4 hg_f32x4;

struct __attribute__((aligned(16))) hg_u64x2 { u64 v[2]; };
typedef struct hg_u64x2 hg_u64x2;

static inline f32 hgf_exp_f32(const f32 x0) {
  const bool v1 = x0 > 89.0f;
  const f32 v3 = v1 ? 89.0f : x0;
  const bool v4 = v3 < (-104.0f);
  const f32 v6 = v4 ? (-104.0f) : v3;
  const f32 v7 = fmaf(v6, 1.442695f, 1.2583166e+07f);
  const f32 v10 = v7 - 1.2583166e+07f;
  const f32 v11 = fmaf(v10, (-0.69314575f), v6);
  const f32 v13 = v10 * 1.4286068e-06f;
  const f32 v15 = v11 - v13;
  const f32 v16 = v15 * v15;
  const f32 v17 = fmaf(v15, 0.0013920806f, 0.008369495f);
  const f32 v20 = fmaf(v17, v15, 0.041666586f);
  const f32 v22 = fmaf(v20, v15, 0.16666514f);
  const f32 v24 = fmaf(v22, v15, 0.5f);
  const f32 v26 = fmaf(v16, v24, v15);
  const f32 v27 = v26 + 1.0f;
  const u32 v29 = hg_bits_f32(v7);
  const u32 v30 = (u32)((u32)v29 << 23u);
  const u32 v32 = (u32)(v30 >> 1u);
  const u32 v34 = (u32)(v32 & 4286578688u);
  const f32 v36 = hg_f32((u32)v34);
  const f32 v37 = v27 * v36;
  const u32 v38 = (u32)((u32)v30 - (u32)v34);
  const f32 v39 = hg_f32((u32)v38);
  const f32 v40 = v37 * v39;
  return v40;
}

void kernel0(const f32 *b0, f32 *b1, const i64 hg_group_id, const i64 hg_group_count, const i64 hg_item_id) {
  const i64 hg_team = hg_item_id / 32, hg_item = hg_item_id % 32, hg_group = hg_group_id * 8 + hg_team, hg_groups = hg_group_count * 8;
  static hg_u64x2 hg_s3[256];
  f32 *s3 = (f32 *)hg_s3 + hg_team * 128;
  for (i64 p = hg_group; p < 64; p += hg_groups) {
    hg_team_barrier();
    f32 a0 = hg_f32((u32)0xFF800000);
    {
      f32 part1 = hg_f32((u32)0xFF800000);
      for (i64 i = hg_item; i < 128; i += 32) {
        const f32 v2 = b0[i + 128 * p];
        part1 = hg_max_f32(part1, v2);
      }
      for (int hg_half = 16; hg_half > 0; hg_half >>= 1) {
        const f32 other3 = hg_down(part1, hg_half);
        part1 = hg_max_f32(part1, other3);
      }
      a0 = hg_first(part1);
    }
    hg_team_barrier();
    f32 a4 = (-0.0f);
    {
      f32 part5 = (-0.0f);
      for (i64 i = hg_item; i < 128; i += 32) {
        const f32 v6 = b0[i + 128 * p];
        const f32 v7 = v6 - a0;
        const f32 v8 = hgf_exp_f32(v7);
        s3[i] = v8;
        part5 = part5 + v8;
      }
      for (int hg_half = 16; hg_half > 0; hg_half >>= 1) {
        const f32 other9 = hg_down(part5, hg_half);
        part5 = part5 + other9;
      }
      a4 = hg_first(part5);
    }
    hg_team_barrier();
    for (i64 at10 = hg_item * 4; at10 < 128; at10 += 128) {
      hg_f32x4 w11[1];
      for (int hg_turn = 0; hg_turn < 1; ++hg_turn) {
        const i64 hg_first = at10 + hg_turn * 128;
        {
          w11[hg_turn] = *(const hg_f32x4 *)(s3 + hg_first);
        }
      }
      for (int hg_turn = 0; hg_turn < 1; ++hg_turn) {
        const i64 hg_first = at10 + hg_turn * 128;
        {
          hg_f32x4 w12;
          for (int hg_near = 0; hg_near < 4; ++hg_near) {
            const i64 i = hg_first + hg_near;
            const f32 v13 = w11[hg_turn].v[hg_near];
            const f32 v14 = v13 / a4;
            w12.v[hg_near] = v14;
          }
          *(hg_f32x4 *)(b1 + hg_first + 128 * p) = w12;
        }
      }
    }
  }
}
