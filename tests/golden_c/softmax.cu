typedef signed char i8; typedef short i16; typedef int i32; typedef long long i64;
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long long u64;
typedef float f32;
typedef float2 c64;
#define hg_c64(re, im) make_float2(re, im)
#define hg_bits_f32(x) __float_as_uint(x)
#define hg_f32(x) __uint_as_float(x)
#define hg_down(x, by) __shfl_down_sync(0xFFFFFFFFu, x, by)
#define hg_up(x, by) __shfl_up_sync(0xFFFFFFFFu, x, by)
#define hg_first(x) __shfl_sync(0xFFFFFFFFu, x, 0)
#define hg_swap(x, by) __shfl_xor_sync(0xFFFFFFFFu, x, by)
#define hg_in_slot(x) (hg_table[(u64)(x) >> 48] + ((u64)(x) & 0xFFFFFFFFFFFFu))

static __device__ __forceinline__ f32 hg_max_f32(const f32 a, const f32 b) {
  f32 r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}

struct __align__(16) hg_f32x4 { f32 v[4]; };
typedef struct hg_f32x4 hg_f32x4;

struct __align__(16) hg_u64x2 { u64 v[2]; };
typedef struct hg_u64x2 hg_u64x2;

static __device__ __forceinline__ f32 hgf_exp_f32(const f32 x0) {
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

extern "C" __global__ void __launch_bounds__(256, 1) kernel0(const u64 *hg_table, const f32 *b0, f32 *b1) {
  if (hg_table) {
    b0 = (const f32 *)hg_in_slot(b0);
    b1 = (f32 *)hg_in_slot(b1);
  }
  __builtin_assume(__isGlobal(b0));
  __builtin_assume(__isGlobal(b1));
  const i64 hg_team = (i64)threadIdx.x / 32, hg_item = (i64)threadIdx.x % 32, hg_group = (i64)blockIdx.x * 8 + hg_team, hg_groups = (i64)gridDim.x * 8;
  __shared__ hg_u64x2 hg_s3[256];
  f32 *s3 = (f32 *)hg_s3 + hg_team * 128;
  for (i64 p = hg_group; p < 64; p += hg_groups) {
    __syncwarp();
    f32 a0 = hg_f32((u32)0xFF800000);
    {
      f32 part1 = hg_f32((u32)0xFF800000);
      #pragma unroll 8
      for (i64 i = hg_item; i < 128; i += 32) {
        const f32 v2 = b0[i + 128 * p];
        part1 = hg_max_f32(part1, v2);
      }
      #pragma unroll
      for (int hg_half = 16; hg_half > 0; hg_half >>= 1) {
        const f32 other3 = hg_down(part1, hg_half);
        part1 = hg_max_f32(part1, other3);
      }
      a0 = hg_first(part1);
    }
    __syncwarp();
    f32 a4 = (-0.0f);
    {
      f32 part5 = (-0.0f);
      #pragma unroll 4
      for (i64 i = hg_item; i < 128; i += 32) {
        const f32 v6 = b0[i + 128 * p];
        const f32 v7 = v6 - a0;
        const f32 v8 = hgf_exp_f32(v7);
        s3[i] = v8;
        part5 = part5 + v8;
      }
      #pragma unroll
      for (int hg_half = 16; hg_half > 0; hg_half >>= 1) {
        const f32 other9 = hg_down(part5, hg_half);
        part5 = part5 + other9;
      }
      a4 = hg_first(part5);
    }
    __syncwarp();
    #pragma unroll 1
    for (i64 at10 = hg_item * 4; at10 < 128; at10 += 128) {
      hg_f32x4 w11[1];
      #pragma unroll
      for (int hg_turn = 0; hg_turn < 1; ++hg_turn) {
        const i64 hg_first = at10 + hg_turn * 128;
        {
          w11[hg_turn] = *(const hg_f32x4 *)(s3 + hg_first);
        }
      }
      #pragma unroll
      for (int hg_turn = 0; hg_turn < 1; ++hg_turn) {
        const i64 hg_first = at10 + hg_turn * 128;
        {
          hg_f32x4 w12;
          #pragma unroll
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
