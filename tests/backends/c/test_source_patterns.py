"""What matters of kernels in dialects of C: widths of loads and stores, groups, what they share, where they wait, in whose order they add."""

from __future__ import annotations

from functools import cache

import pytest

from hologram.backends.c.analysis.gemm import MATRIX_UNIT_TILE
from hologram.backends.c.source import Program
from hologram.graph.pipeline import compile_to_plan
from hologram.graph.schedule import tiles
from tests.support.building import Draft, kernels
from tests.support.filecheck import check, matches
from tests.support.graphs.products import MATRIX_UNITS, PRODUCTS
from tests.support.graphs.programs import PROGRAMS

OPENCL = {
    # 16 bytes a load and a store, several in flight; the helper that is needed and no other; nobody waits
    "chain": r"""
        CHECK: #pragma OPENCL FP_CONTRACT OFF
        CHECK: static f32 hg_max_f32(
        CHECK-NOT: static
        CHECK: reqd_work_group_size(256, 1, 1)
        CHECK-NOT: {{barrier|fma}}
        CHECK: if (hg_first < stop
        CHECK-DAG: = *(__global const hg_f32x4 *)(b0 + hg_first)
        CHECK-DAG: = *(__global const hg_f32x4 *)(b1 + hg_first)
        CHECK: [[product:v\d+]] = {{v\d+}} * 2.0f;
        CHECK: = {{v\d+}} + [[product]];
        CHECK: = hg_max_f32(
        CHECK-DAG: *(__global hg_f32x4 *)(b2 + hg_first) =
        CHECK-DAG: *(__global hg_f32x4 *)(b3 + hg_first) =
        CHECK-NOT: {{barrier|fma}}
    """,
    # guarded loads go one by one, the store is whole
    "padded": r"""
        CHECK: for (i64 p = hg_group; p < 21; p += hg_groups)
        CHECK: const bool [[row:v\d+]] = (u32)(p - 1) < (u32)(20);
        CHECK-NOT: {{const hg_f32x4|barrier}}
        CHECK: for (i64 at{{\d+}} = hg_item * 4; {{.*}} < 36;
        CHECK: ? b0[i + 30 * p - 30] : 0.0f;
        CHECK: ? b1[i + 4 * p - 32] : 0.0f;
        CHECK: *(__global hg_f32x4 *)(b2 + hg_first + 36 * p) =
    """,
    # a row that an index names is read by vectors
    "taken": r"""
        CHECK: = b0[p];
        CHECK-NEXT: const i64 [[row:taken\d+]] =
        CHECK: = *(__global const hg_f32x4 *)(b1 + hg_first + 8 * [[row]]);
        CHECK: *(__global hg_f32x4 *)(b2 + hg_first + 8 * p) =
    """,
    # neighbours read neighbouring columns; each item adds its own from the first row to the last
    "column_sum": r"""
        CHECK: reqd_work_group_size(128, 1, 1)
        CHECK-NOT: {{__local|barrier}}
        CHECK: for (i64 t = 128 * p + hg_item; t < {{.*}}; t += 128) {
        CHECK-NEXT: f32 [[sum:a\d+]] = (-0.0f);
        CHECK: #pragma unroll 8
        CHECK-NEXT: for (i64 q = 0; q < 40; ++q) {
        CHECK-NEXT: = b0[500 * q + t];
        CHECK-NEXT: [[sum]] = [[sum]] + {{v\d+}};
        CHECK: for (i64 q = 0; q < 40; ++q) {
        CHECK: = {{v\d+}} - [[sum]];
        CHECK-NEXT: b1[500 * q + t] =
        CHECK-NOT: {{__local|barrier}}
    """,
    # parts of 32 items, added in a tree with a barrier at each level; one item writes
    "full_sum": r"""
        CHECK: reqd_work_group_size(32, 1, 1)
        CHECK: __local f32 [[parts:hg_part\w+]][32];
        CHECK: for (i64 p = hg_group; p < 4; p += hg_groups)
        CHECK: #pragma unroll 8
        CHECK-NEXT: for (i64 i = hg_item; i < 3072; i += 32) {
        CHECK: [[parts]][hg_item] = [[part:part\d+]];
        CHECK-NEXT: barrier(
        CHECK-NEXT: for (int hg_half = 16; hg_half > 0; hg_half >>= 1) {
        CHECK: [[part]] = [[part]] + [[parts]][hg_item + hg_half];
        CHECK: barrier(
        CHECK: if (hg_item == 0) b1[p] =
        CHECK: for (i64 p = hg_group; p < 1; p += hg_groups)
        CHECK: for (i64 i = hg_item; i < 4; i += 32)
        CHECK: if (hg_item == 0) b1[0] =
    """,
    # float16 is 16 bits that helpers convert; sums are float32
    "halves": r"""
        CHECK: static f32 hg_f16_to_f32(const u16
        CHECK: static u16 hg_f32_to_f16(const f32
        CHECK: void kernel0(__global const u16 *b0,
        CHECK: f32 [[sum:part\d+]] = (-0.0f);
        CHECK: = hg_f16_to_f32(
        CHECK-NEXT: const f32 [[product:v\d+]] = {{v\d+ \* v\d+}};
        CHECK-NEXT: = hg_f32_to_f16([[product]]);
        CHECK-NEXT: const f32 [[rounded:v\d+]] = hg_f16_to_f32(
        CHECK-NEXT: [[sum]] = [[sum]] + [[rounded]];
        CHECK: barrier(
        CHECK: = hg_f32_to_f16(a{{\d+}});
        CHECK-NEXT: if (hg_item == 0) b1[p] =
    """,
    # values travel with their positions, and of equal ones the first stays; columns need nobody else
    "positions": r"""
        CHECK: __local f32 hg_part0_f32[32];
        CHECK: __local i64 hg_part0_at_i64[32];
        CHECK: hg_j < hg_i
        CHECK: hg_part0_at_i64[hg_item] =
        CHECK-NEXT: barrier(
        CHECK: hg_j < hg_i
        CHECK: if (hg_item == 0) b1[p] = a0_at;
        CHECK: kernel1(
        CHECK-NOT: {{__local|barrier}}
        CHECK: for (i64 q = 0; q < 8; ++q) {
        CHECK: b1[t] = a0_at;
        CHECK-NOT: {{__local|barrier}}
    """,
    # 16 items scan together, one adds up what stands before each 16; columns are scanned by one item each
    "scanned_rows": r"""
        CHECK: __local f32 [[scan:hg_scan\w+]][64];
        CHECK: [[scan]][hg_item] = [[mine:group\d+]];
        CHECK-NEXT: barrier(
        CHECK-NEXT: for (int hg_step = 1; hg_step < 16; hg_step <<= 1) {
        CHECK: = [[scan]][hg_item - hg_step];
        CHECK-NEXT: barrier(
        CHECK-NEXT: [[mine]] = {{before\d+}} + [[mine]];
        CHECK-NEXT: [[scan]][hg_item] = [[mine]];
        CHECK-NEXT: barrier(
        CHECK: if (hg_item == 0) {
        CHECK: barrier(
        CHECK: = hg_before_f32[hg_item / 16] + [[mine]];
        CHECK: kernel1(
        CHECK-NOT: {{__local|barrier}}
        CHECK: for (i64 q = 0; q < 8; ++q) {
        CHECK-NEXT: = b0[-40 * q + t + 280];
    """,
    # a row is one group's: it lies in local memory, written before and read after a barrier
    "softmax": r"""
        CHECK: static f32 hgf_exp_f32(
        CHECK-COUNT-6: = fma(
        CHECK: reqd_work_group_size(32, 1, 1)
        CHECK: __local f32 *[[row:s\d+]] = (__local f32 *)
        CHECK: for (i64 p = hg_group; p < 64; p += hg_groups) {
        CHECK-NEXT: barrier(
        CHECK: = hg_max_f32(
        CHECK: barrier(
        CHECK: = hgf_exp_f32(
        CHECK-NEXT: [[row]][i] =
        CHECK: barrier(
        CHECK: = *(__local const hg_f32x4 *)([[row]] + hg_first);
        CHECK-NOT: hgf_exp_f32
        CHECK: *(__global hg_f32x4 *)(b1 + hg_first + 128 * p) =
    """,
}

# A softmax where 32 items are a team: eight rows a group, exchanged in registers, and no barrier of the group.
TEAMS = r"""
    CHECK: {head}
    CHECK: hg_group = {group} * 8 + hg_team
    CHECK: {shared} hg_u64x2 {{{{\w+}}}}[256];
    CHECK: *[[row:s\d+]] = {{{{.*}}}} + hg_team * 128;
    CHECK: for (i64 p = hg_group; p < 64; p += hg_groups) {{
    CHECK-NEXT: {wait}
    CHECK: for (i64 i = hg_item; i < 128; i += 32) {{
    CHECK: for (int hg_half = 16; hg_half > 0; hg_half >>= 1) {{
    CHECK-NEXT: [[other:other\d+]] = hg_down([[most:part\d+]], hg_half);
    CHECK-NEXT: [[most]] = hg_max_f32([[most]], [[other]]);
    CHECK: = hg_first([[most]]);
    CHECK-NOT: {barrier}
    CHECK: {wait}
    CHECK: = hgf_exp_f32(
    CHECK-NEXT: [[row]][i] =
    CHECK: [[others:other\d+]] = hg_down([[sum:part\d+]], hg_half);
    CHECK-NEXT: [[sum]] = [[sum]] + [[others]];
    CHECK-NOT: {barrier}
    CHECK: {wait}
    CHECK: hg_f32x4 *)([[row]] + hg_first);
    CHECK-NOT: hgf_exp_f32
    CHECK: hg_f32x4 *)(b1 + hg_first + 128 * p) =
    CHECK-NOT: {barrier}
"""
# CUDA stages the row: it comes from memory by vectors once, and the exponentials are computed before lanes add them.
STAGED = r"""
    CHECK: extern "C" __global__ void __launch_bounds__(256, 1) kernel0(
    CHECK: hg_group = (i64)blockIdx.x * 8 + hg_team
    CHECK: f32 *[[row:s\d+]] = {{.*}} + hg_team * 128;
    CHECK: f32 *[[copy:row\d+]] = {{.*}} + hg_team * 128;
    CHECK: for (i64 p = hg_group; p < 64; p += hg_groups) {
    CHECK-NEXT: __syncwarp();
    CHECK: = *(const hg_f32x4 *)(b0 + hg_first + 128 * p);
    CHECK: *(hg_f32x4 *)([[copy]] + hg_first) =
    CHECK-NOT: __syncthreads
    CHECK: __syncwarp();
    CHECK: = [[copy]][i];
    CHECK-NEXT: = hg_max_f32(
    CHECK: = hg_first(
    CHECK: = *(const hg_f32x4 *)([[copy]] + hg_first);
    CHECK: = hgf_exp_f32(
    CHECK: *(hg_f32x4 *)([[row]] + hg_first) =
    CHECK-NOT: __syncthreads
    CHECK: __syncwarp();
    CHECK: = [[row]][i];
    CHECK: = hg_down(
    CHECK: = *(const hg_f32x4 *)([[row]] + hg_first);
    CHECK-NOT: hgf_exp_f32
    CHECK: *(hg_f32x4 *)(b1 + hg_first + 128 * p) =
    CHECK-NOT: __syncthreads
"""
SOFTMAX = {
    "cuda": STAGED,
    "metal": TEAMS.format(
        head="[[max_total_threads_per_threadgroup(256)]] kernel void kernel0(",
        group="(i64)hg_group_id",
        shared="threadgroup",
        wait="simdgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);",
        barrier="threadgroup_barrier",
    ),
    "c": TEAMS.format(head="void kernel0(", group="hg_group_id", shared="static", wait="hg_team_barrier();", barrier="hg_barrier"),
}
# Products of CUDA, for more columns than one panel has.
PRODUCT = {
    # by panels in shared memory, of which one is read by vectors while the next is on its way; what goes before and after is in the kernel
    "dense": r"""
        CHECK: __launch_bounds__(256, 2)
        CHECK: __shared__
        CHECK: f32 [[sums:hg_sum\w+]][4][8];
        CHECK: for (i64 hg_at = -16; hg_at < 45; hg_at += 16) {
        CHECK: = hgf_square_f32(
        CHECK-NOT: __syncthreads
        CHECK-COUNT-2: = *(const hg_f32x4 *)(hg_{{row|column}}
        CHECK: [[sums]][hg_m][hg_n] = fmaf({{.*}}, [[sums]][hg_m][hg_n]);
        CHECK-NOT: __syncthreads
        CHECK: (hg_now ^ 1)
        CHECK: __syncthreads();
        CHECK-NEXT: hg_now ^= 1;
        CHECK-NOT: __syncthreads
        CHECK: = hg_max_f32(
        CHECK: b3[70 * hg_r + hg_c] =
    """,
    # on tensor cores: three panels of 16 bytes a copy under way while one is multiplied, and one barrier a panel
    "wide": r"""
        CHECK-DAG: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
        CHECK-DAG: cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;
        CHECK-DAG: cp.async.wait_group 2;
        CHECK-DAG: ldmatrix.sync.aligned.m8n8.x4.shared.b16
        CHECK-DAG: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
        CHECK: __launch_bounds__(256, 1)
        CHECK: f32 [[sums:hg_sum\w+]][8][16];
        CHECK: for (i64 hg_next = 0; hg_next < 96; hg_next += 32) {
        CHECK-COUNT-2: hg_bring(
        CHECK-NOT: __syncthreads
        CHECK: for (i64 hg_at = 0; hg_at < 40; hg_at += 32) {
        CHECK: hg_await();
        CHECK-NEXT: __syncthreads();
        CHECK-COUNT-2: hg_bring(
        CHECK: hg_mma_bf16([[sums]][
        CHECK-NOT: __syncthreads
        CHECK: hg_stage = (hg_stage + 1) % 4;
        CHECK: __syncthreads();
        CHECK-NOT: __syncthreads
        CHECK: = hg_max_f32([[sums]][
        CHECK: b2[264 * hg_r + hg_c] =
    """,
}
CASES = [("opencl", name) for name in OPENCL] + [(dialect, "softmax") for dialect in SOFTMAX] + [("cuda", name) for name in PRODUCT]


@cache
def text(dialect: str, name: str) -> str:
    d = Draft()
    if name in PRODUCT:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tiles, "MIN_DEVICE_PANELS", 1)
            schedule = compile_to_plan(d.graph(*(PRODUCTS | MATRIX_UNITS)[name](d)), "standard", MATRIX_UNIT_TILE)
            return Program(kernels(schedule), dialect, "standard").text
    make, precision = PROGRAMS[name]
    return Program(kernels(d.schedule(*make(d), precision=precision)), dialect, precision).text


def pattern(dialect: str, name: str) -> str:
    if name in PRODUCT:
        return PRODUCT[name]
    return OPENCL[name] if dialect == "opencl" else SOFTMAX[dialect]


@pytest.mark.parametrize(("dialect", "name"), CASES)
def test_sources_are_as_they_should_be(dialect: str, name: str) -> None:
    check(text(dialect, name), pattern(dialect, name))


@pytest.mark.parametrize(("dialect", "name"), CASES)
def test_patterns_fit_their_own_program_alone(dialect: str, name: str) -> None:
    assert [case for case in CASES if matches(text(*case), pattern(dialect, name))] == [(dialect, name)]
