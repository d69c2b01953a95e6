"""Programs and their kernels in traces of ``torch.profiler``."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch.profiler import ProfilerActivity

import hologram as hg
import hologram_torch
from hologram.profiling import ranges, switch
from hologram_torch.compile.user_lines import UNKNOWN


def model(x: Any, w: Any) -> Any:
    return torch.softmax(torch.tanh(x @ w), dim=1).sum(dim=0)


X, W = torch.linspace(-1, 1, 40 * 30).reshape(40, 30), torch.ones(30, 20)


def named(profile: Any) -> Counter[str]:
    """The ranges of Hologram in a trace."""
    return Counter(e.name for e in profile.events() if e.name.startswith("hologram"))


def profiled() -> Any:
    return torch.profiler.profile(activities=[ProfilerActivity.CPU])


def test_compiled_models_are_ranges_with_their_kernels() -> None:
    f = torch.compile(model, backend="hologram")
    want = f(X, W)
    with profiled() as profile:
        for _ in range(3):
            got = f(X, W)
    assert torch.equal(got, want)
    found = named(profile)
    programs = [name for name in found if name.count(":") == 1]
    kernels = [name for name in found if name.count(":") == 2]
    assert programs and set(found.values()) == {3} and any("matmul" in name for name in kernels)
    (inner,) = {e.name for e in profile.events() if "matmul" in e.name}
    events = {e.name: e for e in profile.events() if e.name in (inner, programs[0])}
    inside, around = (events[name].time_range for name in (inner, programs[0]))
    assert around.start <= inside.start and inside.end <= around.end
    f(X, W)
    assert not switch.is_on() and not ranges._users, "the first call after it is as before"


def test_compiled_models_are_in_profiles() -> None:
    f = torch.compile(model, backend="hologram")
    want = f(X, W)
    with hg.profile() as p:
        got = [f(X, W) for _ in range(2)]
    assert all(torch.equal(y, want) for y in got) and sum(program.calls for program in p.programs) == 2
    assert any("matmul" in k.name and k.calls == 2 for k in p.kernels) and [program.name for program in p.programs] == ["inference"]


def test_kernels_of_compiled_models_have_the_lines_of_the_model_and_those_backward_of_what_they_derive() -> None:
    def loss(x: torch.Tensor) -> torch.Tensor:
        y = torch.softmax(x @ W, -1)
        return (y * y).sum()

    f, x = torch.compile(loss, backend="hologram"), X.clone().requires_grad_()
    f(x).backward()
    with hg.profile() as p:
        f(x).backward()
    first = loss.__code__.co_firstlineno
    found = {line for k in p.kernels for line in k.lines}
    assert found - {UNKNOWN} == {(__file__, first + 1), (__file__, first + 2)}
    products = [k for k in p.kernels if "matmul" in k.name]
    assert len(products) == 2 and all((__file__, first + 1) in k.lines for k in products)


def test_wrapped_functions_are_ranges() -> None:
    f = hologram_torch.wrap(lambda x: x * 2 + 1)
    f(X)
    with profiled() as profile:
        f(X)
    assert named(profile)
    f(X)
    assert not switch.is_on()


def test_jitted_functions_are_ranges_where_both_profile() -> None:
    f = hg.jit(lambda x: x * 2 + 1)
    f(X.numpy())
    with profiled() as profile, hg.profile() as p:
        f(X.numpy())
    assert set(named(profile).values()) == {1} and p.programs[0].calls == 1


def test_ranges_of_calls_that_fail_are_closed() -> None:
    def fails(x: Any) -> Any:
        raise ZeroDivisionError

    @hg.jit
    def inner(x: Any) -> Any:
        return hg.pure_callback(fails, hg.ShapeDtypeStruct((2,), "float32"), x) + 1

    def outer(x: Any) -> Any:
        try:
            inner(x)
        except ZeroDivisionError:
            pass
        return x

    f = hg.jit(lambda x: hg.pure_callback(outer, hg.ShapeDtypeStruct((2,), "float32"), x) * 2)
    with profiled() as profile, hg.profile():
        f(torch.ones(2).numpy())
        assert not ranges._open.ranges
    found = named(profile)
    assert max(found.values()) == 1 and "hologram: inner" in found and "hologram: <lambda>" in found
