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
