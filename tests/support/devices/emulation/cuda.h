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
#define __builtin_assume(x)
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
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
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
template <class T> static inline T __shfl_up_sync(unsigned, T x, unsigned by) {
  hg_shuffle(&x, sizeof x, (int)(hg_item_now % HG_TEAM) - (int)by);
  return x;
}
template <class T> static inline T __shfl_xor_sync(unsigned, T x, unsigned by) {
  hg_shuffle(&x, sizeof x, (int)(hg_item_now % HG_TEAM ^ by));
  return x;
}
template <class T> static inline T __shfl_sync(unsigned, T x, int from) {
  hg_shuffle(&x, sizeof x, from);
  return x;
}

#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 900
#endif

/* Instructions that kernels write as such: the harness makes calls of hg_ptx of them, the text and then the operands. */

static inline void hg_ptx(const char *text, float &r, float a, float b) {
  const bool most = strstr(text, "max.NaN.f32") != 0;
  if (!most && !strstr(text, "min.NaN.f32")) __builtin_trap();
  r = a != a || b != b ? NAN : a == b ? ((hg_as<int>(a) < 0) == most ? b : a) : (a > b) == most ? a : b;
}
static inline void hg_ptx(const char *text, float &r, float x) {
  if (!strstr(text, "ex2.approx.ftz.f32")) __builtin_trap();
  r = exp2f(x);
  if (fabsf(r) < 0x1p-126f) r = 0;
}
static inline void hg_ptx(const char *text, unsigned short &r, float x) {
  if (strstr(text, "cvt.rn.f16.f32")) {
    const _Float16 h = (_Float16)x;
    memcpy(&r, &h, 2);
  } else if (strstr(text, "cvt.rn.bf16.f32")) {
    const unsigned bits = hg_as<unsigned>(x);
    r = x != x ? 0x7FFF : (unsigned short)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
  } else {
    __builtin_trap();
  }
}
static inline float hg_half(bool is_brain, unsigned short h) {
  _Float16 x;
  memcpy(&x, &h, 2);
  return is_brain ? hg_as<float>((unsigned)h << 16) : (float)x;
}
static inline void hg_ptx(const char *text, unsigned short &r, unsigned short a, unsigned short b) {
  const bool is_brain = strstr(text, ".rn.bf16 ") != 0;
  if (!is_brain && !strstr(text, ".rn.f16 ")) __builtin_trap();
  const double x = hg_half(is_brain, a), y = hg_half(is_brain, b);
  const double exact = strstr(text, "add") ? x + y : strstr(text, "sub") ? x - y : strstr(text, "mul") ? x * y : (__builtin_trap(), 0.0);
  hg_ptx(is_brain ? "cvt.rn.bf16.f32" : "cvt.rn.f16.f32", r, (float)exact);
}
static inline void hg_ptx(const char *text, unsigned short &r, unsigned short a, unsigned short b, unsigned short c) {
  if (!strstr(text, "fma.rn.bf16 %0, ")) __builtin_trap();
  const unsigned short of[3] = {a, b, c}; /* the text says in which order they are multiplied and added */
  const char *at = strstr(text, "%0, ") + 4;
  const double x = hg_half(true, of[at[1] - '1']), y = hg_half(true, of[at[5] - '1']), z = hg_half(true, of[at[9] - '1']);
  hg_ptx("cvt.rn.bf16.f32", r, (float)(x * y + z));
}
static inline void hg_ptx(const char *text, float &r, unsigned short h) {
  _Float16 x;
  if (!strstr(text, "cvt.f32.f16")) __builtin_trap();
  memcpy(&x, &h, 2);
  r = (float)x;
}

/* Fragments as the PTX ISA has them, of terms k in two halves of 8, or 4 of TF32: element (r, k) of A is in lane r % 8 * 4 and register
   r / 8 + 2 * (which half), element (k, n) of B in lane n * 4 and register 4 + which half; in these, of 16-bit floats, in lane + k % 8 / 2 and half k % 2
   of the register, of TF32 in lane + k % 4. */
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
static inline void hg_ptx(const char *text, float &c0, float &c1, float &c2, float &c3, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                          unsigned b1) {
  const char *kinds[] = {"bf16", "f16", "tf32"}, *kind = 0;
  const char *names[] = {"m16n8k16.row.col.f32.bf16.bf16.f32 ", "m16n8k16.row.col.f32.f16.f16.f32 ", "m16n8k8.row.col.f32.tf32.tf32.f32 "};
  for (int i = 0; i < 3; ++i)
    if (strstr(text, names[i])) kind = kinds[i];
  if (!kind) __builtin_trap();
  const hg_fragment mine = {{a0, a1, a2, a3, b0, b1}};
  const hg_fragment *all = (const hg_fragment *)hg_gather(&mine, sizeof mine);
  const int lane = (int)(hg_item_now % HG_TEAM), half = strcmp(kind, "tf32") ? 8 : 4;
  float *c[4] = {&c0, &c1, &c2, &c3};
  for (int e = 0; e < 4; ++e) {
    const int r = lane / 4 + e / 2 * 8, n = lane % 4 * 2 + e % 2;
    float sum = 0;
    for (int k = 0; k < 2 * half; ++k)
      sum += hg_term(kind, all, r % 8 * 4, r / 8 + k / half * 2, k) * hg_term(kind, all, n * 4, 4 + k / half, k);
    *c[e] += sum;
  }
}

/* Addresses in shared memory are bytes from hg_base, whose banks repeat every 128 bytes. */
static char *hg_base;
static inline unsigned __cvta_generic_to_shared(const void *at) {
  hg_base = (char *)at;
  return 0;
}

/* ldmatrix: lane 8 m + i names row i of matrix m, whose columns 2 j and 2 j + 1 go to lane 4 i + j; or, turned, rows 2 j and 2 j + 1 of column i. */
static inline void hg_matrices(const char *text, unsigned *r, int count, unsigned at) {
  const bool turned = strstr(text, ".trans") != 0;
  const unsigned *all = (const unsigned *)hg_gather(&at, sizeof at);
  const int lane = (int)(hg_item_now % HG_TEAM), i = lane / 4, j = lane % 4;
  if (!strstr(text, count == 4 ? ".m8n8.x4" : ".m8n8.x2")) __builtin_trap();
  for (int m = 0; m < count; ++m) {
    unsigned banks = 0;
    for (int row = 0; row < 8; ++row) banks |= 1u << all[m * 8 + row] / 16 % 8;
    if (banks != 255u) __builtin_trap(); /* some of the rows would be read one after the other */
    unsigned short both[2];
    for (int e = 0; e < 2; ++e) memcpy(both + e, hg_base + all[m * 8 + (turned ? 2 * j + e : i)] + 2 * (turned ? i : 2 * j + e), 2);
    r[m] = both[0] | (unsigned)both[1] << 16;
  }
}
static inline void hg_ptx(const char *text, unsigned &r0, unsigned &r1, unsigned &r2, unsigned &r3, unsigned at) {
  unsigned r[4];
  hg_matrices(text, r, 4, at);
  r0 = r[0], r1 = r[1], r2 = r[2], r3 = r[3];
}
static inline void hg_ptx(const char *text, unsigned &r0, unsigned &r1, unsigned at) {
  unsigned r[2];
  hg_matrices(text, r, 2, at);
  r0 = r[0], r1 = r[1];
}

/* cp.async: an item's copies are done as late as they may be, when it waits for their group, and spoil what was there as early as they may, at once. */
struct hg_copy { unsigned to; const void *from; int nbytes, group; };
enum { HG_COPIES = 64 };
static hg_copy hg_copies[HG_MAX_ITEMS][HG_COPIES];
static int hg_copied[HG_MAX_ITEMS], hg_group_of[HG_MAX_ITEMS];
static inline void hg_ptx(const char *text, unsigned to, const void *from, int nbytes) {
  if (!strstr(text, "cp.async.cg.shared.global") || to % 16 || (uintptr_t)from % 16) __builtin_trap();
  const int64_t me = hg_item_now;
  if (hg_copied[me] == HG_COPIES) __builtin_trap();
  hg_copies[me][hg_copied[me]++] = {to, from, nbytes, hg_group_of[me]};
  memset(hg_base + to, 0xFF, 16);
}
static inline void hg_ptx(const char *text) {
  const int64_t me = hg_item_now;
  if (strstr(text, "cp.async.commit_group")) {
    ++hg_group_of[me];
    return;
  }
  const char *wait = strstr(text, "cp.async.wait_group ");
  if (!wait) __builtin_trap();
  const int last = hg_group_of[me] - (wait[20] - '0');
  int kept = 0;
  for (int i = 0; i < hg_copied[me]; ++i) {
    const hg_copy c = hg_copies[me][i];
    if (c.group >= last) {
      hg_copies[me][kept++] = c;
      continue;
    }
    memset(hg_base + c.to, 0, 16);
    memcpy(hg_base + c.to, c.from, (size_t)c.nbytes);
  }
  hg_copied[me] = kept;
}
