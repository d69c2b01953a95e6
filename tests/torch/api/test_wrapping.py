"""``wrap``: pytrees, static arguments, derivatives of every nesting, what is kept for the backward pass, modes of torch, errors, threads."""

from __future__ import annotations

import copy
import gc
import multiprocessing
import os
import pickle
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.flop_counter import FlopCounterMode

import hologram as hg
import hologram.numpy as hnp
from hologram import nn
from hologram.errors import ArgumentError, DeviceError, HologramError, ShapeError, StaticArgumentError
from hologram.settings import override
from hologram_torch import wrap
from hologram_torch.api.wrapping import Wrapped

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # which torch calls where forward mode begins


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


class Layer(NamedTuple):
    w: Any
    b: Any


@wrap
def mlp(layers: Any, x: Any, *, scale: float = 1.0, activation: str = "tanh") -> Any:
    """A perceptron."""
    for w, b in layers:
        x = getattr(hnp, activation)(x @ w + b)
    return {"y": x * scale, "best": hnp.argmax(x, axis=-1), "norm": (hnp.sum(x * x), None)}


def torch_mlp(layers: Any, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    for w, b in layers:
        x = torch.tanh(x @ w + b)
    return x * scale


def layers(dtype: torch.dtype = torch.float64) -> list[Layer]:
    return [Layer(torch.randn(n, m, dtype=dtype, requires_grad=True), torch.randn(m, dtype=dtype, requires_grad=True)) for n, m in ((4, 5), (5, 3))]


def test_pytrees_in_and_out() -> None:
    parameters, x = layers(), torch.randn(2, 4, dtype=torch.float64)
    out = mlp(parameters, x, scale=2.0)
    expected = torch_mlp(parameters, x, 2.0)
    torch.testing.assert_close(out["y"], expected)
    assert out["best"].tolist() == expected.argmax(-1).tolist() and not out["best"].requires_grad
    assert out["norm"][1] is None and out["norm"][0].shape == ()
    for found, wanted in zip(
        torch.autograd.grad(out["y"].sum() + out["norm"][0], [*parameters[0], *parameters[1]]),
        torch.autograd.grad(expected.sum() + (expected / 2).square().sum(), [*parameters[0], *parameters[1]]),
        strict=True,
    ):
        torch.testing.assert_close(found, wanted)
    assert mlp.__name__ == "mlp" and mlp.__doc__ == "A perceptron." and repr(mlp) == "<wrapped mlp>"


def test_static_arguments_select_programs() -> None:
    @wrap
    def power(x: Any, n: Any, flag: Any = False) -> Any:
        return x**n if type(n) is int and not flag else x * 0 + float(n)

    x = torch.arange(3.0)
    assert power(x, 2).tolist() == [0, 1, 4] and power(x, 3).tolist() == [0, 1, 8]
    assert power(x, 2.0).tolist() == [2, 2, 2] and power(x, True).tolist() == [1, 1, 1] and power(x, 1).tolist() == [0, 1, 2]
    assert np.signbit(power(x, -0.0).numpy()).tolist() == [False] * 3 and power(x, 2, flag=True).tolist() == [2, 2, 2]
    for _ in range(2):
        assert power(x, n=2).tolist() == [0, 1, 4]  # the second call is a ready one


def test_methods_and_constants() -> None:
    weights = np.arange(100.0)

    class Model:
        @wrap
        def twice(self, x: Any) -> Any:
            return 2 * x, x, weights, 3

        __hash__ = object.__hash__

    x = torch.ones(3)
    double, same, constant, three = Model().twice(x)
    assert double.tolist() == [2, 2, 2] and constant.tolist() == weights.tolist() and three.item() == 3
    same += 1  # a result is new memory, also where it is an argument
    constant += 1
    assert x.tolist() == [1, 1, 1] and Model().twice(x)[2][0] == 0


def f(x: Any) -> Any:
    return hnp.sum(nn.softmax(x) ** 2 * hnp.exp(0.1 * x))


def f_torch(x: torch.Tensor) -> torch.Tensor:
    return (torch.softmax(x, -1) ** 2 * torch.exp(0.1 * x)).sum()


NESTINGS: dict[str, Callable[[Any, torch.Tensor], Any]] = {
    "grad": lambda g, x: grad(g)(x),
    "hessian": lambda g, x: hessian(g)(x),
    "reverse over reverse": lambda g, x: jacrev(jacrev(g))(x),
    "forward over forward": lambda g, x: jacfwd(jacfwd(g))(x),
    "reverse over forward": lambda g, x: jacrev(jacfwd(g))(x),
    "third order": lambda g, x: grad(lambda x: grad(lambda x: grad(g)(x).pow(2).sum())(x).pow(2).sum())(x),
    "stack of gradients": lambda g, x: vmap(grad(g))(x),
    "gradient of a stack": lambda g, x: grad(lambda x: vmap(g)(x).sum())(x),
    "stack along another axis": lambda g, x: vmap(g, in_dims=1)(x),
    "stack of stacks": lambda g, x: vmap(vmap(lambda v: g(v.reshape(1))))(x),
    "stack of hessians": lambda g, x: vmap(hessian(g))(x),
    "jvp": lambda g, x: jvp(g, (x,), (x,)),
    "vjp": lambda g, x: vjp(g, x)[1](torch.tensor(2.0, dtype=x.dtype)),
    "jvp of a gradient": lambda g, x: jvp(grad(g), (x,), (x,)),
}


@pytest.mark.parametrize("nesting", NESTINGS)
def test_nested_transforms(nesting: str) -> None:
    x = torch.randn(3, 4, dtype=torch.float64)
    torch.testing.assert_close(NESTINGS[nesting](wrap(f), x), NESTINGS[nesting](f_torch, x))


def test_an_outer_gradient_passes_an_inner_transform() -> None:
    """The inner level sees only x move; y, which moves at the outer level, must not be lost."""
    product, x, y = wrap(lambda x, y: hnp.sum(x * x * hnp.sin(y))), torch.randn(3), torch.randn(3)
    found = grad(lambda y: grad(lambda x: product(x, y))(x).sum())(y)
    torch.testing.assert_close(found, 2 * x * torch.cos(y))
    z = y.clone().requires_grad_()
    torch.testing.assert_close(torch.autograd.grad(vmap(grad(product))(x, z).sum(), z)[0], 2 * x * torch.cos(y))


def test_gradcheck_of_many_arguments_and_results() -> None:
    @wrap
    def many(x: Any, n: Any, w: Any) -> Any:
        y = nn.layer_norm(x @ w)
        return y, hnp.exp(y).sum(axis=0), n + 1

    x, w = (torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((3, 4), (4, 2)))
    n = torch.arange(3)
    assert gradcheck(lambda x, w: many(x, n, w)[:2], (x, w), check_forward_ad=True)
    assert gradgradcheck(lambda x, w: many(x, n, w)[:2], (x, w))


def test_complex_gradients_are_torchs() -> None:
    z = torch.randn(3, dtype=torch.complex128, requires_grad=True)
    g = wrap(lambda z: hnp.exp(z) * hnp.conj(z))
    assert gradcheck(g, (z,), check_forward_ad=True) and gradgradcheck(g, (z,))
    torch.testing.assert_close(torch.autograd.grad(g(z).abs().sum(), z), torch.autograd.grad((z.exp() * z.conj()).abs().sum(), z))


def kept_bytes(call: Callable[[], Any]) -> int:
    """Bytes of distinct memory that autograd keeps after ``call()``."""
    sizes: dict[int, int] = {}
    with torch.autograd.graph.saved_tensors_hooks(lambda t: sizes.setdefault(t.data_ptr(), t.nbytes) and t, lambda t: t):
        call()
    return sum(sizes.values())


def test_what_is_kept_is_a_minimum_cut() -> None:
    x = torch.randn(64, 100, requires_grad=True)
    rows = 64 * 4
    chain = wrap(lambda x: hnp.tanh(hnp.exp(hnp.sin(x) * 2)) * x)
    assert kept_bytes(lambda: chain(x)) == x.nbytes  # torch keeps five times as much
    assert kept_bytes(lambda: wrap(lambda x: x + 1)(x)) == 0
    assert kept_bytes(lambda: wrap(nn.softmax)(x)) <= x.nbytes + 2 * rows
    assert kept_bytes(lambda: wrap(nn.layer_norm)(x)) <= x.nbytes + 2 * rows
    w = torch.randn(100, 50, requires_grad=True)
    product = wrap(lambda x, w: nn.relu(x @ w))
    assert kept_bytes(lambda: product(x, w)) <= x.nbytes + w.nbytes + 64 * 50 * 4
    with torch.no_grad():
        assert kept_bytes(lambda: chain(x)) == 0 and not chain(x).requires_grad
    with torch.inference_mode():
        assert chain(x).is_inference()


def test_only_what_requires_a_gradient_is_differentiated() -> None:
    calls: list[str] = []

    @hg.custom_vjp
    def watched(x: Any) -> Any:
        return x * x

    watched.defvjp(lambda x: (x * x, x), lambda x, c: (calls.append("pulled") or 2 * x * c,))
    g = wrap(lambda x, y: watched(x) + y * y)
    x, y = torch.ones(2), torch.ones(2, requires_grad=True)
    g(x, y).sum().backward()
    assert not calls and y.grad is not None and y.grad.tolist() == [2, 2]
    g(x.requires_grad_(), y).sum().backward()
    assert calls and x.grad is not None and x.grad.tolist() == [2, 2]


def test_a_missing_gradient_is_zero() -> None:
    g = wrap(lambda x: (x * 2, hnp.exp(x)))
    x = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    first, second = g(x)
    assert torch.autograd.grad(first.sum(), x, retain_graph=True)[0].tolist() == [2, 2, 2]
    assert torch.autograd.grad(second.sum(), x)[0].tolist() == [1, 1, 1]


def test_autocast_policies() -> None:
    x = torch.randn(3, requires_grad=True)
    half = torch.ones(3, dtype=torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert wrap(lambda x: 2 * x)(x).dtype == torch.float32
        lowered = wrap(lambda x: 2 * x, autocast="lower")(x)
        assert lowered.dtype == torch.bfloat16
        assert wrap(lambda x: 2 * x, autocast="float32")(half).dtype == torch.float32
    lowered.sum().backward()
    assert x.grad is not None and x.grad.dtype == torch.float32 and x.grad.tolist() == [2, 2, 2]
    with pytest.raises(ArgumentError, match="autocast is one of"):
        wrap(f, autocast="higher")


def test_modules_with_functional_call() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.randn(4, 2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return product(x, self.w)

    product = wrap(lambda x, w: hnp.sum(hnp.tanh(x @ w)))
    net, x = Net(), torch.randn(5, 4)
    parameters = {"w": net.w.detach()}
    per_example = vmap(grad(lambda p, x: functional_call(net, p, (x,))), in_dims=(None, 0))(parameters, x)["w"]
    expected = vmap(grad(lambda w, x: torch.tanh(x @ w).sum()), in_dims=(None, 0))(net.w.detach(), x)
    torch.testing.assert_close(per_example, expected)


def test_tensors_without_memory_of_their_own() -> None:
    g = wrap(lambda x: x * 2)
    assert g(torch._efficientzerotensor(3)).tolist() == [0, 0, 0]
    assert g(torch.empty(3, device="meta").new_zeros(3, device="cpu")).tolist() == [0, 0, 0]
    fake = torch._subclasses.FakeTensorMode().from_tensor(torch.ones(3))
    assert g(torch.ones(3)).tolist() == [2, 2, 2]
    with pytest.raises(DeviceError, match=r"<lambda>: argument \[0\] is on meta"):
        g(torch.empty(3, device="meta"))  # a call like one that was made before
    with pytest.raises(ArgumentError, match="that stands for another tensor"):
        torch.autograd.grad(g(x := torch.ones(3, requires_grad=True)), x, torch.eye(3), is_grads_batched=True)
    with pytest.raises(ArgumentError, match="<lambda>: a FakeTensor that stands for another tensor"):
        g(fake)


def test_tracers_of_torch_are_refused() -> None:
    """They would record a result that was computed once."""
    g = wrap(lambda x: x * 2)
    for x in (torch.ones(3), torch.tensor(1.0)):
        g(x)
        g(x)
        with pytest.raises(ArgumentError, match="<lambda>: torch.jit.trace and make_fx do not see"):
            make_fx(g)(x)
        with pytest.raises(ArgumentError, match="<lambda>: torch.jit.trace"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch's, that jit.trace is deprecated
            torch.jit.trace(lambda x: g(x), (x,))
    with FlopCounterMode(display=False):
        assert g(torch.ones(3)).tolist() == [2, 2, 2]


def test_settings_change_programs() -> None:
    g, x = wrap(lambda x: x * 3), torch.ones(3)
    for _ in range(2):
        assert g(x).tolist() == [3, 3, 3]
    with override(disabled_passes=("simplify",)):
        assert g(x).tolist() == [3, 3, 3]
    assert g(x).tolist() == [3, 3, 3]


def test_threads_share_programs() -> None:
    g = wrap(lambda x, y: hnp.exp(x) @ y)
    results: list[torch.Tensor] = []

    def work(seed: int) -> None:
        x = torch.full((16, 16), float(seed % 2), requires_grad=True)
        for _ in range(20):
            g(x, x.detach()).sum().backward()
        results.append(x.grad / 20)  # type: ignore[operator]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 4 and all(torch.isfinite(r).all() for r in results)


def test_nothing_leaks() -> None:
    g = wrap(lambda x, y: (hnp.tanh(x) * y, x.sum()))
    x, y = torch.randn(1000, requires_grad=True), torch.randn(1000)

    def count() -> int:
        gc.collect()
        return sum(issubclass(type(o), torch.Tensor) for o in gc.get_objects())

    def steps(n: int) -> None:
        for _ in range(n):
            a, b = g(x, y)
            (a.sum() + b).backward()
            g(y, y)

    steps(3)
    before = count()
    steps(20)
    assert count() <= before  # fewer, where other tests' tensors went meanwhile


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux says in /proc how much memory a process has")
def test_memory_is_flat(everything: bool) -> None:
    g = wrap(lambda x, y: hnp.tanh(x) * y)
    x, y = torch.randn(50_000, requires_grad=True), torch.randn(50_000)

    def steps(n: int) -> int:
        for _ in range(n):
            torch.autograd.grad(g(x, y).sum(), x)
            g(y, y)
        return resident()

    steps(200)
    before = steps(50)
    assert steps(10_000 if everything else 500) - before < 2_000_000


def test_copies_and_pickles_are_the_function_itself() -> None:
    assert copy.deepcopy({"f": mlp})["f"] is mlp and copy.copy(mlp) is mlp
    assert pickle.loads(pickle.dumps(mlp)) is mlp


class Rows(torch.utils.data.Dataset[torch.Tensor]):
    """Rows that are computed where they are asked for."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, i: int) -> torch.Tensor:
        found: torch.Tensor = mlp(layers(torch.float32), torch.full((4,), float(i)))["y"].detach()
        return found


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")
def test_workers_that_are_forked() -> None:
    mlp(layers(torch.float32), torch.ones(4))  # the threads of this process run
    loader = torch.utils.data.DataLoader(Rows(), batch_size=3, num_workers=1, multiprocessing_context="fork")
    assert [batch.shape for batch in loader] == [(3, 3), (3, 3)]


@hypothesis.given(st.data())
def test_views_of_any_strides(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    base = torch.arange(200.0, dtype=torch.float64) / 7
    steps = [data.draw(st.integers(0, 9)) for _ in sizes]
    x = base.as_strided(sizes, steps, data.draw(st.integers(0, 9))).requires_grad_(data.draw(st.booleans()))
    y = x.detach().movedim(0, -1)[None]
    torch.testing.assert_close(affine(x, y.movedim(-1, 1)[0]), 2 * x + y.movedim(-1, 1)[0])


affine = wrap(lambda x, y: 2 * x + y)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g, x: g(x, torch.ones(4)), ShapeError, "add: shapes"),
        (lambda g, x: g(x, [1, {2}]), StaticArgumentError, "an argument is a set"),
        (lambda g, x: g(x, np.ones(3)), StaticArgumentError, "an argument is a ndarray, which is no torch.Tensor"),
        (lambda g, x: g(x, y=x.to("meta")), DeviceError, "plus: y is on meta"),
        (lambda g, x: g({"a": x.to("meta")}, x), DeviceError, r"plus: argument \[0\]\['a'\] is on meta"),
        (lambda g, x: wrap(3), ArgumentError, "wrap takes a function, not a int"),
        (lambda g, x: wrap(f, device="tpu"), DeviceError, "device 'tpu' is not available"),
    ],
)
def test_errors(call: Any, error: type[HologramError], message: str) -> None:
    def plus(x: Any, y: Any) -> Any:
        return x + y

    with pytest.raises(error, match=message) as caught:
        call(wrap(plus), torch.ones(3))
    assert __file__ in str(caught.value) or "device" in message
    assert isinstance(wrap(plus), Wrapped)
