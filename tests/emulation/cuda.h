/* The names of CUDA C++ that kernels use, for the host's compiler. */
#pragma once
#include "items.h"
#include <math.h>
#include <string.h>

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __restrict__
#define __launch_bounds__(items, resident)
#define __align__(n) __attribute__((aligned(n)))

struct float2 { float x, y; };
struct double2 { double x, y; };
struct dim3 { unsigned x; };
static inline float2 make_float2(float x, float y) { return {x, y}; }
static inline double2 make_double2(double x, double y) { return {x, y}; }
template <class To, class From> static inline To hg_as(From x) {
  static_assert(sizeof(To) == sizeof(From), "");
  To to;
  memcpy(&to, &x, sizeof to);
  return to;
}
static inline unsigned __float_as_uint(float x) { return hg_as<unsigned>(x); }
static inline float __uint_as_float(unsigned x) { return hg_as<float>(x); }
static inline long long __double_as_longlong(double x) { return hg_as<long long>(x); }
static inline double __longlong_as_double(long long x) { return hg_as<double>(x); }

#define blockIdx (dim3{(unsigned)hg_group_now})
#define gridDim (dim3{(unsigned)hg_groups_now})
#define threadIdx (dim3{(unsigned)hg_item_now})
static inline void __syncthreads() { hg_barrier(); }
static inline void __syncwarp() { hg_team_barrier(); }
template <class T> static inline T __shfl_down_sync(unsigned, T x, unsigned by) {
  hg_shuffle(&x, sizeof x, (int)(hg_item_now % HG_TEAM + by));
  return x;
}
template <class T> static inline T __shfl_sync(unsigned, T x, int from) {
  hg_shuffle(&x, sizeof x, from);
  return x;
}

/* The one instruction that kernels write as such. Fragments as the PTX ISA has them, of terms k in two halves of 8, or 4 of TF32: element (r, k) of A is
   in lane r % 8 * 4 and register r / 8 + 2 * (which half), element (k, n) of B in lane n * 4 and register 4 + which half; in these, of 16-bit floats,
   in lane + k % 8 / 2 and half k % 2 of the register, of TF32 in lane + k % 4. */
struct hg_fragment { unsigned r[6]; };
static inline float hg_term(const char *kind, const hg_fragment *all, int lane, int reg, int k) {
  if (!strcmp(kind, "tf32")) {
    const unsigned bits = all[lane + k % 4].r[reg];
    if (bits & 0x1FFFu && (bits & 0x7F800000u) != 0x7F800000u) __builtin_trap(); /* the hardware would drop these bits */
    return hg_as<float>(bits);
  }
  const unsigned short h = (unsigned short)(all[lane + k % 8 / 2].r[reg] >> 16 * (k % 2));
  if (!strcmp(kind, "bf16")) return hg_as<float>((unsigned)h << 16);
  _Float16 x;
  memcpy(&x, &h, 2);
  return (float)x;
}
static inline void hg_mma(const char *text, float *c[4], const unsigned (&own)[6]) {
  const char *kinds[] = {"bf16", "f16", "tf32"}, *kind = 0;
  const char *names[] = {"m16n8k16.row.col.f32.bf16.bf16.f32 ", "m16n8k16.row.col.f32.f16.f16.f32 ", "m16n8k8.row.col.f32.tf32.tf32.f32 "};
  for (int i = 0; i < 3; ++i)
    if (strstr(text, names[i])) kind = kinds[i];
  if (!kind) __builtin_trap();
  hg_fragment mine;
  memcpy(&mine, own, sizeof mine);
  const hg_fragment *all = (const hg_fragment *)hg_gather(&mine, sizeof mine);
  const int lane = (int)(hg_item_now % HG_TEAM), half = strcmp(kind, "tf32") ? 8 : 4;
  for (int e = 0; e < 4; ++e) {
    const int r = lane / 4 + e / 2 * 8, n = lane % 4 * 2 + e % 2;
    float sum = 0;
    for (int k = 0; k < 2 * half; ++k)
      sum += hg_term(kind, all, r % 8 * 4, r / 8 + k / half * 2, k) * hg_term(kind, all, n * 4, 4 + k / half, k);
    *c[e] += sum;
  }
}
#define asm(...) float *hg_c[4] = {&c0, &c1, &c2, &c3}; hg_mma(#__VA_ARGS__, hg_c, {a0, a1, a2, a3, b0, b1})
