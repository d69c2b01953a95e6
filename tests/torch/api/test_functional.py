"""The operations beside the functions of torch that they stand for: values, types, derivatives of both modes and two orders, errors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import hologram_torch as ht
from hologram.errors import ArgumentError, ClosedExecutorError, DeviceError, DTypeError, HologramError, ShapeError
from hologram_torch import functional as F
from hologram_torch.api.operation import TABLE
from hologram_torch.autograd.program import MAPPED_BYTES
from tests.support.torch.samples import Call, calls

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # which torch calls where forward mode begins

WEIGHTED = ("binary_cross_entropy", "cross_entropy")  # whose weights, third, torch does not differentiate with respect to
CASES = [(name, i) for name in F.__all__ for i in range(len(calls(name)))]


def call_of(name: str, number: int, dtype: torch.dtype) -> Call:
    return calls(name, dtype)[number]


def with_gradients(name: str, call: Call) -> tuple[list[torch.Tensor], Callable[..., Call]]:
    """The arguments that torch differentiates with respect to, and the call with others in their place."""
    args, options = call
    given = (*args, *options.values())
    fixed = [not isinstance(x, torch.Tensor) or not x.is_floating_point() or (i == 2 and name in WEIGHTED) for i, x in enumerate(given)]
    floats = [x.requires_grad_() for x, f in zip(given, fixed, strict=True) if not f]

    def rebuilt(*values: torch.Tensor) -> Call:
        new = iter(values)
        fresh = [x if f else next(new) for x, f in zip(given, fixed, strict=True)]
        return tuple(fresh[: len(args)]), dict(zip(options, fresh[len(args) :], strict=True))

    return floats, rebuilt


def test_every_function_is_a_row() -> None:
    assert sorted(TABLE) == F.__all__
    assert all(row.function is getattr(F, name) and row.function.__doc__ for name, row in TABLE.items())


@pytest.mark.parametrize(("name", "number"), CASES)
def test_values_and_gradients_are_torchs(name: str, number: int, everything: bool) -> None:
    for dtype in (torch.float32, torch.float64) if everything else (torch.float32 if number == 0 else torch.float64,):
        check_values_and_gradients(name, number, dtype)


def check_values_and_gradients(name: str, number: int, dtype: torch.dtype) -> None:
    values = {}
    for f in (getattr(F, name), TABLE[name].reference):
        call = call_of(name, number, dtype)
        floats, _ = with_gradients(name, call)
        args, options = call
        y = f(*args, **options)
        weights = torch.linspace(-1, 1, y.numel(), dtype=dtype).reshape(y.shape)
        values[f] = y, torch.autograd.grad((y * weights).sum(), floats, allow_unused=True, materialize_grads=True)
    (ours, our_gradients), (theirs, their_gradients) = values.values()
    assert ours.is_contiguous() and ours.dtype == theirs.dtype
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(our_gradients, their_gradients)


@pytest.mark.costly(2)
@pytest.mark.parametrize("name", F.__all__)
def test_gradcheck(name: str, everything: bool) -> None:
    for number in range(len(calls(name)) if everything else 1):
        check_derivatives(name, number)


def check_derivatives(name: str, number: int) -> None:
    floats, rebuilt = with_gradients(name, call_of(name, number, torch.float64))

    def f(*values: torch.Tensor) -> torch.Tensor:
        args, options = rebuilt(*values)
        y: torch.Tensor = getattr(F, name)(*args, **options)
        return y

    assert gradcheck(f, floats, check_forward_ad=True, fast_mode=True)
    assert gradgradcheck(f, floats, fast_mode=True)


@pytest.mark.parametrize("name", F.__all__)
def test_transforms_of_torch_func(name: str, everything: bool) -> None:
    if not everything and name not in ("div", "gelu", "linear", "cross_entropy", "softmax"):
        return
    floats, rebuilt = with_gradients(name, call_of(name, 0, torch.float64))
    floats = [x.detach() for x in floats]

    def first(f: Callable[..., Any]) -> Callable[..., Any]:
        def of_first(x: torch.Tensor) -> torch.Tensor:
            args, options = rebuilt(x, *floats[1:])
            y: torch.Tensor = f(*args, **options)
            return y.sum() if y.ndim > 1 else y**2

        return of_first

    ours, theirs = first(getattr(F, name)), first(TABLE[name].reference)
    x = floats[0]
    stack = torch.stack([x, 2 * x, x - 1]).clamp(0.05, 0.95) if name == "binary_cross_entropy" else torch.stack([x, 2 * x, x - 1])
    for transform in (torch.func.jacrev, torch.func.jacfwd, torch.func.hessian):
        torch.testing.assert_close(transform(ours)(x), transform(theirs)(x))
    torch.testing.assert_close(torch.vmap(ours)(stack), torch.vmap(theirs)(stack))
    torch.testing.assert_close(torch.vmap(torch.func.jacrev(ours))(stack), torch.vmap(torch.func.jacrev(theirs))(stack))


@pytest.mark.parametrize("name", F.__all__)
def test_autocast_gives_torchs_type(name: str, everything: bool) -> None:
    for dtype in (torch.bfloat16, torch.float16) if everything else (torch.bfloat16,):
        for given in (torch.float32, dtype):
            check_autocast(name, given, dtype)


def check_autocast(name: str, given: torch.dtype, dtype: torch.dtype) -> None:
    args, options = call_of(name, 0, given)
    with torch.autocast("cpu", dtype=dtype):
        ours, theirs = getattr(F, name)(*args, **options), TABLE[name].reference(*args, **options)
    assert ours.dtype == theirs.dtype
    torch.testing.assert_close(ours, theirs, rtol=0.03, atol=0.03)


def test_autocast_has_gradients_of_the_parameters_type() -> None:
    layer = ht.nn.Linear(4, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = layer(torch.ones(2, 4))
    assert y.dtype == torch.bfloat16
    y.sum().backward()
    assert layer.weight.grad is not None and layer.weight.grad.dtype == torch.float32
    torch.testing.assert_close(layer.weight.grad, torch.full((3, 4), 2.0))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (torch.int32, torch.float32),
        (torch.uint8, torch.int8),
        (torch.int64, torch.float16),
        (torch.bfloat16, torch.float16),
        (torch.bool, torch.int16),
    ],
    ids=str,
)
def test_types_are_promoted_as_torch_promotes(a: torch.dtype, b: torch.dtype) -> None:
    for shapes in (((3,), (3,)), ((), (3,)), ((3,), ())):
        x, y = torch.ones(shapes[0], dtype=a), torch.ones(shapes[1], dtype=b)
        for name in ("add", "mul", "div"):
            torch.testing.assert_close(getattr(F, name)(x, y), TABLE[name].reference(x, y), rtol=0, atol=0)
    torch.testing.assert_close(F.add(torch.ones(3, dtype=torch.float16), 2.0), torch.full((3,), 3, dtype=torch.float16))


def test_layouts() -> None:
    x = torch.randn(6, 4, dtype=torch.float64)
    for view in (x.T, x[::2], x[:, 1:3], x[0].expand(5, 4), torch.randn(3, dtype=torch.complex128).conj().imag, x[:0], x[0, 0].detach()):
        torch.testing.assert_close(F.gelu(view), torch.nn.functional.gelu(view))
        torch.testing.assert_close(F.add(view, view), view + view)
    z = torch.tensor([1 + 2j]).conj()
    torch.testing.assert_close(F.add(z, z), z + z)
    assert z.imag.is_neg() and F.add(z.imag, z.imag).item() == -4.0
    empty = torch.zeros(0, 3, requires_grad=True)
    F.softmax(empty, 1).sum().backward()
    assert F.matmul(empty, torch.ones(3, 2)).shape == (0, 2) and empty.grad is not None and empty.grad.shape == (0, 3)


def test_large_results_may_be_written_to() -> None:
    """They are in memory of their own that stays mapped."""
    x = torch.ones(MAPPED_BYTES // 4)
    first, second = F.relu(x), F.relu(x)
    assert first.is_contiguous() and first.data_ptr() % 64 == 0
    first.add_(1)
    assert first.min() == 2 and second.max() == 1


def test_out_and_inplace() -> None:
    a, b = torch.randn(5), torch.randn(5)
    out = torch.empty(5, dtype=torch.float64)
    assert F.sub(a, b, out=out) is out
    torch.testing.assert_close(out, (a - b).double())
    x = a.clone()
    assert F.relu(x, inplace=True) is x and bool((x == a.clamp(min=0)).all())
    leaf = torch.randn(5, requires_grad=True)
    F.relu(leaf * 2, True).sum().backward()
    torch.testing.assert_close(leaf.grad, 2.0 * (leaf > 0))
    with pytest.raises(ArgumentError, match="add: a result written to out has no gradient"):
        F.add(leaf, b, out=out)
    with pytest.raises(ShapeError, match=r"add: out has shape \[4\], the result \[5\]"):
        F.add(a, b, out=torch.empty(4))
    with pytest.raises(DTypeError, match="add: out has type torch.int64"):
        F.add(a, b, out=torch.empty(5, dtype=torch.int64))
    with pytest.raises(ArgumentError, match="add: out is a torch.Tensor, not a list"):
        F.add(a, b, out=[])


def test_an_executor_may_come_first() -> None:
    x = torch.randn(3, 4)
    with ht.Executor("cpu") as executor:
        torch.testing.assert_close(F.add(executor, x, x), 2 * x)
        torch.testing.assert_close(F.softmax(executor, x, dim=1), x.softmax(1))
    with pytest.raises(ClosedExecutorError, match="gelu"):
        F.gelu(executor, x)


def test_labels_out_of_range_are_not_silent() -> None:
    loss = F.cross_entropy(torch.randn(3, 4), torch.tensor([0, 4, 1]), reduction="none")
    assert [math.isnan(x) for x in loss.tolist()] == [False, True, False]
    everything_ignored = F.cross_entropy(torch.randn(2, 4), torch.tensor([-100, -100]))
    assert math.isnan(everything_ignored.item())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: F.add(x, torch.ones(4)), ShapeError, "add"),
        (lambda x: F.gelu(x, approximate="erf"), ArgumentError, "gelu: approximate is 'none' or 'tanh', not 'erf'"),
        (lambda x: F.linear(x, torch.ones(2, 5)), ShapeError, "matmul"),
        (lambda x: F.linear(x, torch.ones(2, 3), torch.ones(3)), ShapeError, r"linear: a bias of shape \[3\]"),
        (lambda x: F.layer_norm(x, (2,)), ShapeError, "layer_norm: normalized_shape"),
        (lambda x: F.layer_norm(x, (3,), torch.ones(2)), ShapeError, r"layer_norm: weight has shape \[2\], not \[3\]"),
        (lambda x: F.conv2d(x, x), ShapeError, "conv2d"),
        (lambda x: F.cross_entropy(x, torch.zeros(3, dtype=torch.int64)), ShapeError, "cross_entropy: a target of shape"),
        (lambda x: F.cross_entropy(x, torch.zeros(2, 3, dtype=torch.bool)), DTypeError, "cross_entropy: a target is integers or floats"),
        (lambda x: F.mse_loss(x, x, "average"), ArgumentError, "mse_loss: reduction is one of none, mean, sum, not 'average'"),
        (lambda x: F.binary_cross_entropy(x, x[0]), ShapeError, "binary_cross_entropy: a target of shape"),
        (lambda x: F.tanh(x.to("meta")), DeviceError, r"tanh: argument \[0\] is on meta"),
        (lambda x: F.tanh(x.to_sparse()), ArgumentError, r"tanh: argument \[0\] has layout torch.sparse_coo"),
        (lambda x: F.tanh(x.to(torch.float8_e4m3fnuz)), DTypeError, r"tanh: argument \[0\]: torch.float8_e4m3fnuz has no counterpart"),
    ],
)
def test_errors_name_the_operation(call: Any, error: type[HologramError], message: str) -> None:
    with pytest.raises(error, match=message) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns that sparse tensors are new
        call(torch.randn(2, 3))
    assert __file__ in str(caught.value)  # the user's line


def test_arguments_that_are_no_tensors_are_named():
    x = torch.ones(3)
    for call, message in (
        (lambda: F.softmax(None), "softmax: x is a torch.Tensor, not a NoneType"),
        (lambda: F.linear(x, [1.0]), "linear: weight is a torch.Tensor, not a list"),
        (lambda: F.add(x, "1"), "add: b is a torch.Tensor or a number, not a str"),
        (lambda: F.relu(True, inplace=True), "relu: x is a torch.Tensor, not a bool"),
        (lambda: F.gelu(), "gelu: missing a required argument"),
    ):
        with pytest.raises(ArgumentError, match=message):
            call()
    assert F.mul(x, 2.5).tolist() == [2.5] * 3
