"""``checkify``: failures as results, in loops, branches, batches and derivatives."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, CheckError
from hologram.experimental import checkify


def root(x: Any) -> Any:
    checkify.check(x >= 0, "{x} has no root", x=x)
    return hnp.sqrt(x)


def test_errors_are_results() -> None:
    for checked in (checkify.checkify(root), hg.jit(checkify.checkify(root))):
        error, y = checked(4.0)
        assert float(y) == 2.0
        assert error.get() is None
        assert error.get_exception() is None
        error.throw()
        error, y = checked(-4.0)
        assert "-4.0 has no root" in error.get()
        assert "test_checkify.py" in error.get()
        assert np.isnan(float(y))
        with pytest.raises(CheckError, match="has no root"):
            error.throw()
        assert type(error.get_exception()) is CheckError
        assert checked(9.0)[0].get() is None
    assert checkify.init_error().get() is None
    with pytest.raises(ArgumentError, match="ErrorCategory"):
        checkify.checkify(root, errors=frozenset({"nan"}))  # type: ignore[arg-type]


def test_checks_raise_outside() -> None:
    with pytest.raises(CheckError, match="has no root"):
        hg.jit(root)(-1.0).block_until_ready()
    hg.jit(lambda x: checkify.debug_check(x > 0, "not positive") or x)(-1.0).block_until_ready()
    error, _ = checkify.checkify(lambda x: checkify.debug_check(x > 0, "not positive") or x)(-1.0)
    assert "not positive" in error.get()
    with pytest.raises(CheckError, match="has no root"):  # no category of theirs is asked for
        checkify.checkify(root, errors=checkify.div_checks)(-1.0)[1].block_until_ready()


def test_the_first_failure_counts() -> None:
    def steps(x: Any) -> Any:
        def step(total: Any, i: Any) -> Any:
            checkify.check(i < 3, "step {i}", i=i)
            return total + i, total

        return hg.lax.scan(step, x, hnp.arange(6))

    assert "step 3" in checkify.checkify(steps)(0)[0].get()

    def branches(x: Any) -> Any:
        return hg.lax.cond(x > 0, lambda v: root(v - 10.0), lambda v: v, x)

    assert checkify.checkify(branches)(-1.0)[0].get() is None
    assert "-9.0 has no root" in checkify.checkify(branches)(1.0)[0].get()
    whole = checkify.checkify(lambda x: hg.lax.while_loop(lambda c: c > -3, lambda c: hg.debug.check(c > 0, "at {c}", c=c) or c - 1, x))
    assert "at 0" in whole(4)[0].get()


def test_batches_and_derivatives() -> None:
    x = np.array([1.0, -2.0, -3.0], np.float32)
    for checked in (checkify.checkify(hg.vmap(root)), hg.vmap(checkify.checkify(root))):
        error, y = checked(x)
        assert "-2.0 has no root" in error.get()
        assert float(y[0]) == 1.0
        assert checked(np.abs(x))[0].get() is None
    assert float(hg.grad(lambda x: checkify.checkify(root)(x)[1])(4.0)) == 0.25
    error, slope = checkify.checkify(hg.grad(root))(-1.0)
    assert "has no root" in error.get()
    codes = hg.lax.scan(lambda c, v: (c, checkify.checkify(root)(v)[0]), 0, x)[1]
    assert codes.get().count("has no root") == 2


AUTOMATIC: dict[str, tuple[Any, Any, tuple[Any, ...], tuple[Any, ...], str]] = {
    "nan": (checkify.nan_checks, lambda x: hnp.log(x) + 1, (2.0,), (-2.0,), "NaN made by log"),
    "nan in a loop": (
        checkify.nan_checks,
        lambda x: hg.lax.scan(lambda c, _: (hnp.log(c), c), x, None, length=3)[0],
        (1e9,),
        (2.0,),
        "NaN made by log",
    ),
    "division": (checkify.div_checks, lambda x: 1 / x, (2.0,), (0.0,), "division by zero"),
    "whole division": (checkify.float_checks, lambda x: 7 // x, (2,), (0,), "division by zero"),
    "read": (checkify.index_checks, lambda x, i: x[i], (np.arange(4.0), -4), (np.arange(4.0), 4), "4 of 4"),
    "read of two axes": (checkify.index_checks, lambda x, i: x[1, i], (np.ones((2, 3)), 2), (np.ones((2, 3)), 5), "5 of 3"),
    "write": (checkify.index_checks, lambda x, i: x.at[i].add(1), (np.arange(4.0), [0, 3]), (np.arange(4.0), [0, 9]), "9 of 4"),
    "write to two axes": (checkify.index_checks, lambda x, i: x.at[i, 0].set(1), (np.ones((2, 3)), [1]), (np.ones((2, 3)), [7]), "7 of 2"),
    "batch": (checkify.nan_checks, lambda x: hg.vmap(hnp.sqrt)(x), (np.ones(3),), (np.array([1.0, -1.0, 1.0]),), "NaN made by sqrt"),
    "all": (checkify.all_checks, lambda x: hnp.sum(root(x) / x), (1.0,), (0.0,), "division by zero"),
    "derivative": (checkify.nan_checks, hg.grad(lambda x: hnp.sqrt(x) * 0), (1.0,), (0.0,), "NaN made by"),
}


@pytest.mark.parametrize("name", AUTOMATIC)
def test_automatic_checks(name: str) -> None:
    errors, f, good, bad, text = AUTOMATIC[name]
    good, bad = (tuple(np.asarray(x) if isinstance(x, list) else x for x in args) for args in (good, bad))
    checked = checkify.checkify(f, errors=errors)
    assert checked(*good)[0].get() is None
    assert text in checked(*bad)[0].get()
    np.testing.assert_array_equal(checked(*good)[1], hg.jit(f)(*good))


def test_nan_checks_look_into_branches_that_run() -> None:
    f = checkify.checkify(lambda x: hg.lax.cond(x > 0, hnp.log, lambda v: v, x), errors=checkify.nan_checks)
    assert f(-1.0)[0].get() is None


def test_errors_of_checked_functions_within_others() -> None:
    def outer(x: Any) -> Any:
        error, y = checkify.checkify(root)(x)
        checkify.check_error(error)
        return y

    assert "has no root" in checkify.checkify(outer)(-1.0)[0].get()
    assert checkify.checkify(outer)(1.0)[0].get() is None
    with pytest.raises(CheckError, match="has no root"):
        hg.jit(outer)(-1.0).block_until_ready()
    error, _ = hg.jit(lambda x: checkify.checkify(root)(x))(-1.0)
    with pytest.raises(CheckError, match="has no root"):
        checkify.check_error(error)


def test_threads_have_errors_of_their_own() -> None:
    checked = hg.jit(checkify.checkify(root))
    checked(1.0)
    wrong: list[Any] = []

    def work(sign: float) -> None:
        for i in range(1, 100):
            text = checked(sign * i)[0].get()
            if (text is None) != (sign > 0) or text is not None and f"-{float(i)} has" not in text:
                wrong.append(text)

    threads = [threading.Thread(target=work, args=(s,)) for s in (1.0, -1.0, 1.0, -1.0)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
