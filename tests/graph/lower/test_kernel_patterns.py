"""What matters of the kernels that small programs become: loops and their extents, what is read where and how often, what stands outside of loops."""

from __future__ import annotations

from functools import cache

import pytest

from tests.support.building import Draft, kernels
from tests.support.filecheck import check, matches
from tests.support.graphs.programs import PROGRAMS

PATTERNS = {
    # one loop for both results, each argument read once, the constant found once
    "chain": r"""
        CHECK: = const(
        CHECK: lanes
        CHECK-DAG: load(b0, i)
        CHECK-DAG: load(b1, i)
        CHECK-NOT: load(
        CHECK: b2[i] =
        CHECK-NEXT: b3[i] =
        CHECK-NOT: kernel
    """,
    # a whole step of an optimiser is one loop, which reads each array once
    "adam": r"""
        CHECK: = const(
        CHECK: lanes i from 3072*p count 3072 below 5000
        CHECK-NOT: const(
        CHECK-DAG: load(b0, i)
        CHECK-DAG: load(b1, i)
        CHECK-DAG: load(b2, i)
        CHECK-DAG: load(b3, i)
        CHECK-NOT: load(
        CHECK-DAG: b4[i] =
        CHECK-DAG: b5[i] =
        CHECK-DAG: b6[i] =
        CHECK-NOT: kernel
    """,
    # what costs much is computed for each row, not for each element; what a row has in common is read before its elements
    "broadcasts": r"""
        CHECK: = sqrt(
        CHECK: kernel
        CHECK: parallel p from 0 count 40
        CHECK-NEXT: [[column:v\d+]] = load(b1, p)
        CHECK: lanes i from 0 count 50
        CHECK-NOT: sqrt
        CHECK: = mul({{v\d+}}, [[column]])
        CHECK: load(b2, i)
        CHECK: b3[i+50*p] =
    """,
    # by tiles, so that columns are read from cache lines that are there
    "transposed": r"""
        CHECK: serial q from 0 count 64 below 20
        CHECK-NEXT: lanes t from 0 count 64 below 30
        CHECK-DAG: load(b0, q+20*t)
        CHECK-DAG: load(b1, 30*q+t)
        CHECK: b2[30*q+t] =
        CHECK-NOT: kernel
    """,
    # no part is copied: one loop, in which loads of each part are guarded, and what guards whole rows is found once a row
    "padded": r"""
        CHECK: parallel p from 0 count 21
        CHECK-NEXT: inside(p-1, 20)
        CHECK: lanes i from 0 count 36
        CHECK-NOT: load(b
        CHECK: load({{v\d+}}, b0, i+30*p-30)
        CHECK-NOT: load(b
        CHECK: load({{v\d+}}, b1, i+4*p-32)
        CHECK: b2[i+36*p] =
        CHECK-NOT: kernel
    """,
    # a reshape of a transpose is arithmetic on indices, with one division
    "reshaped": r"""
        CHECK: lanes i from 0 count 21
        CHECK: load(b0, {{.*\(\(i\+3\*p\)%6\).*\(\(i\+3\*p\)//6\)}})
        CHECK-NOT: //
        CHECK: load(b1, i+21*p)
        CHECK: b2[i+21*p] =
        CHECK-NOT: kernel
    """,
    # vectors go across rows of three elements, whose factors are read once
    "narrow": r"""
        CHECK-COUNT-3: = load(b1,
        CHECK: lanes i from 0 count 100
        CHECK-NOT: load(b1
        CHECK-DAG: load(b0, 3*i)
        CHECK-DAG: load(b0, 3*i+1)
        CHECK-DAG: load(b0, 3*i+2)
        CHECK-NOT: load(
        CHECK-COUNT-3: b2[3*i
    """,
    # an index is read once for its row
    "taken": r"""
        CHECK: parallel p from 0 count 20
        CHECK: = load(b0, p)
        CHECK: [[row:taken\d+]] = cast({{.*}}below 50
        CHECK: lanes i from 0 count 8
        CHECK-NOT: load(b0
        CHECK: load(b1, i+8*[[row]])
        CHECK-NOT: kernel
    """,
    # the difference is not stored, and the root is taken once a row
    "row_sum": r"""
        CHECK: parallel p from 0 count 40
        CHECK-NEXT: lanes i from 0 count 500 with [[sum:a\d+]] = reduce_sum
        CHECK: = sub(
        CHECK-NEXT: = square(
        CHECK-NEXT: [[sum]] <-
        CHECK-NEXT: [[root:v\d+]] = sqrt([[sum]])
        CHECK-NEXT: b2[p] = [[root]]
        CHECK-NOT: kernel
    """,
    # vectors hold columns, and a block of columns is subtracted from while it is in the cache
    "column_sum": r"""
        CHECK: lanes t from 128*p count 128 below 500
        CHECK-NEXT: serial q from 0 count 40 with [[sum:a\d+]] = reduce_sum
        CHECK: [[sum]] <-
        CHECK-NEXT: serial q from 0 count 40
        CHECK: = sub({{v\d+}}, [[sum]])
        CHECK-NEXT: b1[500*q+t] =
        CHECK-NOT: kernel
    """,
    # page by page, then the sums of pages; beyond the end stands what a sum does not change by
    "full_sum": r"""
        CHECK: [[zero:v\d+]] = const(float32, 0x80000000)
        CHECK: parallel p from 0 count 4
        CHECK-NEXT: lanes i from 0 count 3072 with [[sum:a\d+]] = reduce_sum
        CHECK: select({{v\d+}}, {{v\d+}}, [[zero]])
        CHECK: b1[p] = [[sum]]
        CHECK: kernel
        CHECK: lanes i from 0 count 4 with {{a\d+}} = reduce_sum
        CHECK: b1[0] =
        CHECK-NOT: kernel
    """,
    # sums of 16-bit floats are float32 and rounded at their end; products are rounded each, as exact wants them
    "halves": r"""
        CHECK: with [[sum:a\d+]] = reduce_sum float32 -> float32
        CHECK: load(b0{{.*}}: float16
        CHECK: = mul({{.*}}: float32
        CHECK-NEXT: cast({{v\d+}}, float16)
        CHECK-NEXT: cast({{v\d+}}, float32)
        CHECK-NEXT: [[sum]] <-
        CHECK-NEXT: cast([[sum]], float16)
    """,
    # along rows by vectors, across them a column in each lane
    "positions": r"""
        CHECK: parallel p from 0 count 8
        CHECK-NEXT: lanes i from 0 count 40 with [[at:a\d+]] = argmax float32 -> int64
        CHECK: index(i)
        CHECK: b1[p] = [[at]]
        CHECK: lanes t from 0 count 40
        CHECK-NEXT: serial q from 0 count 8 with [[row:a\d+]] = argmin float32 -> int64
        CHECK: index(q)
        CHECK: b1[t] = [[row]]
    """,
    # the same of scans; one that runs backwards reads its rows so, without turning them round first
    "scanned_rows": r"""
        CHECK: parallel p from 0 count 8
        CHECK-NEXT: lanes i from 0 count 40 with [[sum:a\d+]] = cumsum
        CHECK: = scan({{v\d+}}, [[sum]])
        CHECK: kernel
        CHECK: lanes t from 0 count 40
        CHECK-NEXT: serial q from 0 count 8 with {{a\d+}} = cumprod
        CHECK-NEXT: load(b0, -40*q+t+280)
    """,
    # sums of all pages but the last, what stands before each page, and the pages again, each from there
    "long_scan": r"""
        CHECK: parallel p from 0 count 3
        CHECK: with [[sum:a\d+]] = cumsum
        CHECK: b1[p] = [[sum]]
        CHECK: kernel
        CHECK: count 3 with {{a\d+}} = cumsum
        CHECK: kernel
        CHECK: parallel p from 0 count 4
        CHECK: load({{v\d+}}, b1, p-1)
        CHECK: lanes i from 0 count 3072 with {{a\d+}} = cumsum
        CHECK: b2[i+3072*p] = {{v\d+ where v\d+}}
        CHECK-NOT: kernel
    """,
    # sizes are found by the call; five neighbours are compared without a loop
    "symbolic": r"""
        CHECK: kernel({{.*}}n0: symbol)
        CHECK: parallel p from 0 count ((5*n0+3071)//3072)
        CHECK-NEXT: lanes i from 3072*p count 3072 below 5*n0
        CHECK: = neg(
        CHECK: kernel
        CHECK: lanes i from 3072*p count 3072 below n0
        CHECK-NOT: = reduce_max
        CHECK-COUNT-5: load(b0, 5*i
        CHECK-NOT: load(
        CHECK: b1[i] =
        CHECK: kernel
        CHECK: parallel p from 0 count ((n0+3071)//3072)
        CHECK: serial q from 0 count 3072 below n0-3072*p
        CHECK-NOT: inside(3072*p+q
        CHECK: b1[5*p+t] =
        CHECK: kernel
        CHECK: count ((n0+3071)//3072) with {{a\d+}} = reduce_sum
        CHECK: b1[t] =
        CHECK-NOT: kernel
    """,
    # divided once a row, multiplied for each element, by a number whose inverse does not overflow
    "loop_invariant_divisor": r"""
        CHECK: load(b0, p)
        CHECK: = unit_scale(
        CHECK: = div(
        CHECK: lanes i from 0 count 40
        CHECK-NOT: div(
        CHECK-COUNT-2: = mul(
        CHECK-NEXT: b2[i+40*p] =
        CHECK-NOT: div(
    """,
    # five rows share each read of the other factor, and the last rows are computed twice rather than guarded
    "product": r"""
        CHECK: row = min(
        CHECK-NEXT: lanes t from 35*(p//4) count 35
        CHECK-NEXT: serial q from 0 count 30 with{{(?:.* reduce_sum){5}.*}}
        CHECK-NEXT: load(b0, 70*q+t)
        CHECK-COUNT-5: load(b1, q+30*row
        CHECK-NOT: load(
        CHECK-COUNT-5: <-
        CHECK-COUNT-5: b2[70*row+t
        CHECK-NOT: kernel
    """,
    # one kernel: exponentials are computed once, and kept for their row alone
    "softmax": r"""
        CHECK: scratch [[row:s\d+]]: float32[128]
        CHECK: with [[most:a\d+]] = reduce_max
        CHECK: with [[sum:a\d+]] = reduce_sum
        CHECK: = sub({{v\d+}}, [[most]])
        CHECK-NEXT: = exp(
        CHECK-NEXT: [[row]][i] =
        CHECK: [[sum]] <-
        CHECK-NEXT: lanes
        CHECK-NEXT: load([[row]], i)
        CHECK-NEXT: = div({{v\d+}}, [[sum]])
        CHECK-NEXT: b1[i+128*p] =
        CHECK-NOT: kernel
    """,
    # one kernel: mean, deviation and the inverse of its root are found before the loop that writes
    "layer_norm": r"""
        CHECK: parallel p from 0 count 64
        CHECK: = reduce_sum
        CHECK: = reduce_sum
        CHECK: = sqrt(
        CHECK: = div(
        CHECK: lanes i from 0 count 128
        CHECK-NOT: {{(div|sqrt)\(}}
        CHECK: b3[i+128*p] =
        CHECK-NOT: kernel
    """,
}


@cache
def text(name: str) -> str:
    program, precision = PROGRAMS[name]
    d = Draft()
    return "\n".join(map(str, kernels(d.schedule(*program(d), precision=precision))))


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_are_as_they_should_be(name: str) -> None:
    check(text(name), PATTERNS[name])


@pytest.mark.parametrize("name", PROGRAMS)
def test_patterns_fit_their_own_program_alone(name: str) -> None:
    assert [other for other in PROGRAMS if matches(text(other), PATTERNS[name])] == [name]
