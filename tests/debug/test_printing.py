"""``hg.debug.print``, ``hg.debug.callback`` and ``hg.debug.check``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.control import effects
from hologram.errors import ArgumentError, CheckError


@pytest.mark.parametrize("transform", [lambda f: f, hg.jit])
def test_values_are_printed_when_the_program_runs(transform: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: Any, flag: str) -> Any:
        hg.debug.print("{flag}: {} of {x:.1f}, {tree[a]}", x.shape[0], x=x[0], tree={"a": x}, flag=flag)
        return x

    f_of = transform(lambda x: f(x, "here"))
    for _ in range(3):
        f_of(np.float32([1, 2]))
    assert capsys.readouterr().out == "here: 2 of 1.0, [1. 2.]\n" * 3


def test_a_line_for_each_example(capsys: pytest.CaptureFixture[str]) -> None:
    hg.jit(hg.vmap(lambda x: hg.debug.print("{}", x)))(np.arange(3))
    assert capsys.readouterr().out == "0\n1\n2\n"


@pytest.mark.parametrize("text", ["{x}", "{}", "{", 3])
def test_texts_that_do_not_fit_are_refused_where_they_stand(text: Any) -> None:
    with pytest.raises(ArgumentError, match=r"debug\.print.*test_printing\.py"):
        hg.debug.print(text, y=1)
    with pytest.raises(ArgumentError, match=r"debug\.check"):
        hg.debug.check(True, text, y=1)
    with pytest.raises(ArgumentError, match=r"debug\.callback takes a function"):
        hg.debug.callback(text)


def root(x: Any) -> Any:
    hg.debug.check(x >= 0, "{x} has no root", x=x)
    return hnp.sqrt(x)


PROGRAMS: dict[str, Any] = {
    "plain": (root, 4.0, -4.0, "-4.0"),
    "jit": (hg.jit(root), 4.0, -4.0, "-4.0"),
    "elements": (hg.jit(root), np.float32([1, 2]), np.float32([1, -2]), r"\[ 1. -2.\]"),
    "grad": (hg.jit(hg.grad(root)), 4.0, -4.0, "-4.0"),
    "vmap": (hg.jit(hg.vmap(root)), np.float32([1, 2]), np.float32([1, -2]), "-2.0"),
    "scan": (hg.jit(lambda xs: hg.scan(lambda c, x: (c + root(x), None), 0.0, xs)[0]), np.float32([1, 2]), np.float32([1, -2]), "-2.0"),
    "a branch": (hg.jit(lambda x: hg.cond(x < -3, lambda: root(x), lambda: x)), 4.0, -4.0, "-4.0"),
    "vmap of a branch": (hg.jit(hg.vmap(lambda x: hg.cond(x < -3, lambda: root(x), lambda: x))), np.float32([1, -2]), np.float32([1, -4]), "-4.0"),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_checks(name: str) -> None:
    f, good, bad, shown = PROGRAMS[name]
    for _ in range(3):
        hg.block_until_ready(f(good))
        with pytest.raises(CheckError, match=rf"{shown} has no root \(at .*test_printing\.py:\d+, in root\)"):
            f(bad)


def test_a_check_that_holds_calls_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def step(c: Any, x: Any) -> Any:
        hg.debug.check(x >= 0, "negative")
        return c + x, None

    f = hg.jit(lambda xs: hg.scan(step, 0.0, xs)[0])
    f(np.float32([1, 2]))

    def never(*_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(effects._Effect, "run", never)
    assert float(f(np.float32([1, 3]))) == 4
    with pytest.raises(AssertionError):
        f(np.float32([1, -3]))
