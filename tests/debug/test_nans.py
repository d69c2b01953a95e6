"""``hg.debug.nans``: the op that made the first NaN or Inf, its operands, the step, and the user's line."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import NonFiniteError


def of_scan(xs: Any) -> Any:
    return hg.scan(lambda c, x: (c - x, hnp.sqrt(c - x)), 2.0, xs)


def of_while(x: Any) -> Any:
    return hg.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] / (3 - c[0])), (0, x))


# function, argument, what made it
CASES: dict[str, Any] = {
    "an op": (lambda x: hnp.log(x - 2) * 3, 1.0, "log of -1.0 made the first NaN"),
    "an element": (lambda x: hnp.sqrt(x) + 1, np.float32([4, -1]), r"sqrt of -1.0 made the first NaN in element [1] of [2]"),
    "an inf before": (lambda x: hnp.exp(x) - hnp.exp(x) * 2, 1000.0, "sub of inf, inf made the first NaN"),
    "an inf": (lambda x: 1 / x, 0.0, "div of 1.0, 0.0 made the first Inf"),
    "a scan": (of_scan, np.ones(4, np.float32), "sqrt of -1.0 made the first NaN, in step 2 of a loop"),
    "a while loop": (of_while, 6.0, "made the first Inf, in step 3 of a loop"),
    "a branch": (lambda x: hg.cond(x > 0, hnp.log, lambda y: hnp.log(y) * 2, x), -1.0, "log of -1.0 made the first NaN"),
    "a gradient": (hg.grad(lambda x: hnp.sqrt(x * x)), 0.0, "mul of inf, 0.0 made the first NaN"),
    "a stack": (hg.vmap(lambda x: hnp.log(x)), np.float32([1, -2]), "log of -2.0 made the first NaN in element [1] of [2]"),
    "an op with several results": (lambda x: hnp.linalg.inv(hnp.eye(2) * x), 0.0, "lu_solve of 0.0"),
    "a transform": (lambda x: hg.fft.ifft(x, norm="forward"), np.full(3, 3e38, np.float32), "made the first Inf in element [0] of [3]"),
    "loops in loops": (lambda x: hg.scan(lambda c, _: (of_while(c)[1], None), x, None, 2)[0], 6.0, "in step 0 of a loop, in step 3 of a loop"),
}


@pytest.mark.parametrize("jitted", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_what_made_it_and_where(name: str, jitted: bool) -> None:
    f, x, text = CASES[name]
    run = hg.jit(f) if jitted else f
    for _ in range(2):
        with hg.debug.nans(), pytest.raises(NonFiniteError, match=re.escape(text) + r".* \(at .*test_nans\.py:\d+\)"):
            hg.block_until_ready(run(hg.tensor(x)))
    assert not np.isfinite(np.concatenate([np.ravel(v) for v in hg.tree.leaves(run(hg.tensor(x)))])).all()  # and nothing is raised


def test_the_line_is_that_of_the_op() -> None:
    def f(x: Any) -> Any:
        y = x - 2
        z = hnp.log(y)
        return z + 1

    line = f.__code__.co_firstlineno + 2
    for run in (f, hg.jit(f), hg.jit(hg.vmap(f)), hg.value_and_grad(lambda x: hg.jit(f)(x).sum())):
        with hg.debug.nans(), pytest.raises(NonFiniteError, match=rf"test_nans\.py:{line}\)"):
            hg.block_until_ready(run(hg.tensor(np.float32([1, 4]))))


def test_where_an_inf_came_from() -> None:
    with hg.debug.nans(), pytest.raises(NonFiniteError, match=r"sub of inf, inf made the first NaN .*; exp of 1000.0 made the first Inf \(at"):
        hg.jit(CASES["an inf before"][0])(1000.0)


def test_what_is_not_made_or_not_seen_stops_nothing() -> None:
    with hg.debug.nans():
        assert np.isnan(hg.jit(lambda x: x * 2)(np.float32(np.nan)).item())
        assert np.asarray(hg.jit(lambda x: hnp.where(x > 0, hnp.log(x), 0))(np.float32([-1, 1]))).tolist() == [0, 0]
        assert np.isinf(hg.jit(lambda x: hnp.where(x > 0, x, -np.inf))(-1.0).item())
    with hg.debug.nans(infs=False):
        assert np.isinf(hg.jit(lambda x: 1 / x)(0.0).item())


def test_effects_are_not_called_again() -> None:
    seen: list[Any] = []

    def step(c: Any, x: Any) -> Any:
        hg.debug.callback(lambda v: seen.append(float(v)), c)
        return hnp.log(c - x), None

    with hg.debug.nans(), pytest.raises(NonFiniteError, match="in step 1"):
        hg.jit(lambda xs: hg.scan(step, 2.0, xs)[0])(np.ones(2, np.float32))
    assert seen == [2, 0]
    with hg.debug.nans(), pytest.raises(NonFiniteError, match="io_callback cannot be called again"):
        hg.jit(lambda: hnp.log(hg.io_callback(lambda: np.float32(-1), hg.ShapeDtypeStruct((), "float32"))))()


def test_calls_that_were_native_before_are_looked_at_and_native_again() -> None:
    f = hg.jit(hnp.log)
    for _ in range(3):
        f(-1.0)
    with hg.debug.nans(), pytest.raises(NonFiniteError):
        f(-1.0)
    assert np.isnan(f(-1.0).item())


def test_the_setting() -> None:
    for given, found in ((True, "on"), ("1", "on"), ("nan", "nan"), (False, ""), (None, "")):
        with hg.settings.override(nans=given):
            assert hg.settings.nans == found
    with pytest.raises(ValueError, match="nans is on, nan or off"):
        hg.settings.nans = "some"


def test_ranks_run_no_collective_once_more() -> None:
    P = hg.distributed.PartitionSpec

    def main() -> Any:
        mesh = hg.make_mesh((2,), "x")
        f = hg.shard_map(lambda x: (hnp.log(x), hg.lax.psum(hnp.abs(x).sum(), "x")), mesh=mesh, in_specs=P("x"), out_specs=(P("x"), P()))
        total = hg.shard_map(lambda x: hg.lax.psum(x.sum(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
        try:
            f(np.float32([1, -1]))
            text = ""
        except NonFiniteError as e:
            text = str(e)
        return text, float(total(np.float32([1, 2])))

    with hg.debug.nans():
        first, second = hg.distributed.simulate(2, timeout=10).run(main)
    assert first == ("", 3.0) and second[1] == 3.0
    assert "log of -1.0 made the first NaN" in second[0]
