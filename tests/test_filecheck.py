"""``tests/support/filecheck.py``: what patterns match, what they do not, and which are none."""

from __future__ import annotations

import re

import pytest

from tests.support.filecheck import Mismatch, check, matches

TEXT = """\
kernel(b0, b1)
  parallel p count 4
    v1 = load(b0, i)
    v2 = load(b1, i)
    v3 = mul(v2, v2)
    v14 = add(v1, v3)
    b2[i] = v14
  done
"""


@pytest.mark.parametrize(
    "pattern",
    [
        "CHECK: kernel",
        "CHECK:kernel(b0,   b1)\nCHECK-NEXT:   parallel  p",
        "CHECK: load(b0\nCHECK: mul\nCHECK: done",
        "CHECK: count {{[0-9]+}}",
        "CHECK: [[x:v\\d+]] = load(b0\nCHECK: add([[x]], ",
        "CHECK: mul([[x:v\\d+]], [[x]])",
        "CHECK-COUNT-2: = load(\nCHECK-NOT: = load(",
        "CHECK: parallel\nCHECK-NOT: add\nCHECK: mul\nCHECK: add",
        "CHECK-DAG: load(b1\nCHECK-DAG: load(b0\nCHECK-NEXT: mul",
        "CHECK-NOT: serial",
        "# words\n\nCHECK: done",
    ],
)
def test_what_is_there_is_found(pattern: str) -> None:
    check(TEXT, pattern)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("CHECK: serial", "CHECK: serial\nis not there, from line 1 on"),
        ("CHECK: mul\nCHECK: load", "is not there, from line 6 on"),
        ("CHECK: parallel\nCHECK: parallel", "is not there"),  # a line is found once
        ("CHECK: parallel\nCHECK-NEXT: mul", "CHECK-NEXT: mul\nis not there"),
        ("CHECK: done\nCHECK-NEXT: done", "is not there"),
        ("CHECK-COUNT-3: load(", "CHECK-COUNT-3: load("),
        ("CHECK-NOT: mul", "CHECK-NOT: mul\nis there: 'v3 = mul(v2, v2)'"),
        ("CHECK: mul\nCHECK-NOT: add", "is there"),
        ("CHECK: load(b0\nCHECK-NOT: load(b1\nCHECK: mul", "is there"),
        ("CHECK-NOT: kernel\nCHECK-DAG: load\nCHECK-DAG: add", "is there"),
        ("CHECK: mul\nCHECK-DAG: add\nCHECK-DAG: load", "is not there"),
        ("CHECK-DAG: v1 = load\nCHECK-DAG: = load(b0", "is not there"),  # a line for each
        ("CHECK: [[x:v\\d+]] = load(b0\nCHECK: mul([[x]],", "x is 'v1'"),
        ("CHECK: b{{[3-9]}}", "is not there"),
        ("CHECK: count {{\\d}}5", "is not there"),
        ("CHECK: kernel(b0.*", "is not there"),  # literal
        ("CHECK: parallelp", "is not there"),
        ("CHECK: [[x:v\\d]] = load(b0\nCHECK: [[x]]4 = add", "is not there"),  # a name is a word
    ],
)
def test_what_is_not_there_is_told(pattern: str, words: str) -> None:
    with pytest.raises(Mismatch) as caught:
        check(TEXT, pattern)
    assert words in str(caught.value)
    assert not matches(TEXT, pattern)


@pytest.mark.parametrize("pattern", ["", "# words", "CHEK: load", "CHECK-NXT: load", "CHECK:", "CHECK-NOT:", "load", "CHECK: [[x]]", "CHECK: {{(}}"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises((ValueError, re.error)):
        check(TEXT, pattern)
