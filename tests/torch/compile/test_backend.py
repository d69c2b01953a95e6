"""``torch.compile(backend="hologram")``: models, training, views, mutation, randomness, fallbacks and changing sizes, beside eager PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import pytest
import torch
from torch import nn

import hologram_torch


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(f, **options):
    return torch.compile(f, backend="hologram", **options)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(24, 40), nn.GELU(), nn.LayerNorm(40), nn.Linear(40, 7))


def gradients(model, x):
    model.zero_grad()
    out = model(x)
    out.square().mean().backward()
    return [out.detach(), *[p.grad.clone() for p in model.parameters()]]


def assert_all_close(found, expected):
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_inference():
    model, x = mlp(), torch.randn(5, 24)
    with torch.no_grad():
        torch.testing.assert_close(compiled(model)(x), model(x))


def test_training():
    model, x = mlp(), torch.randn(5, 24)
    assert_all_close(gradients(compiled(model), x), gradients(model, x))


def test_dropout_draws_the_numbers_of_eager_mode():
    model, x = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.3)), torch.randn(64, 8)
    fast = compiled(model)
    torch.manual_seed(3)
    expected = gradients(model, x)
    torch.manual_seed(3)
    assert_all_close(gradients(fast, x), expected)


def test_dropout_draws_in_the_order_of_memory():
    """As after attention, whose result is transposed."""
    x = torch.randn(6, 2, 5).transpose(0, 1)
    compiled = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.4), backend="hologram")
    torch.manual_seed(3)
    found = compiled(x)
    torch.manual_seed(3)
    torch.testing.assert_close(found, torch.nn.functional.dropout(x, 0.4))


def test_random_numbers_keep_their_order():
    def f(x):
        a = torch.rand(4)
        b = torch.randn(4) * torch.histc(x, 1)[:1]
        return a, b, torch.rand(3)

    x, fast = torch.randn(3, 2), compiled(f)
    torch.manual_seed(5)
    expected = f(x)
    torch.manual_seed(5)
    assert_all_close(fast(x), expected)


def test_mutation_and_views_of_arguments():
    def f(x, y):
        x.add_(1)
        v = x[1:]
        v.mul_(y)
        return x.t(), v, y.view(-1)

    x, y = torch.randn(4, 3), torch.randn(3)
    x2 = x.clone()
    found, expected = compiled(f)(x2, y), f(x, y)
    torch.testing.assert_close(x2, x)
    assert_all_close(found, expected)
    found[0][0, 0] = 7.0  # a view of the argument
    assert x2[0, 0] == 7.0
    assert found[2].data_ptr() == y.data_ptr()


@pytest.mark.parametrize("make", [lambda x: x.t(), lambda x: x.expand(2, 3, 4), lambda x: x[:, ::2], lambda x: x + 0, lambda x: x.clone().t()])
def test_results_have_the_strides_of_eager_mode(make):
    x = torch.randn(3, 4)
    found, expected = compiled(lambda x: make(x * 2))(x), make(x * 2)
    assert found.stride() == expected.stride()
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    "make", [lambda x: x.t(), lambda x: x[:, 1:3], lambda x: x[::2], lambda x: x[:, ::2], lambda x: x[0].expand(5, 6), lambda x: x[1:1]]
)
def test_arguments_of_every_layout(make):
    x = make(torch.randn(4, 6))
    torch.testing.assert_close(compiled(lambda x: x.sin() + 1)(x), x.sin() + 1)


def test_channels_last():
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)).to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 8, 8).contiguous(memory_format=torch.channels_last)
    found, expected = compiled(model)(x), model(x)
    assert found.stride() == expected.stride()
    model.eval()
    torch.testing.assert_close(compiled(model)(x), model(x), rtol=1e-4, atol=1e-5)


def test_fallbacks_are_named():
    def f(x):
        return torch.histc(x + 1, 4).exp() * 2

    x = torch.randn(3, 2)
    found = hologram_torch.explain(f)(x)
    assert list(found.fallbacks) == ["aten.histc.default"]
    assert found.programs[0].segments == 2
    assert "has no row" in str(found)
    torch.testing.assert_close(compiled(f)(x), f(x))


def test_sizes_change():
    f = compiled(lambda x: (x @ x.t()).softmax(-1).sum(0))
    for n in (3, 5, 8, 1, 5):
        x = torch.randn(n, 4)
        torch.testing.assert_close(f(x), (x @ x.t()).softmax(-1).sum(0))


def test_dynamic_sizes_in_training():
    model = mlp()
    fast = compiled(model, dynamic=True)
    for n in (3, 6, 2):
        x = torch.randn(n, 24)
        assert_all_close(gradients(fast, x), gradients(model, x))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64, torch.int32])
def test_element_types(dtype):
    x = torch.randn(4, 5).mul(3).to(dtype)
    f = lambda x: (x * x + x, x.sum(0))  # noqa: E731
    for a, b in zip(compiled(f)(x), f(x), strict=True):
        assert a.dtype == b.dtype
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_casts_to_8_bits(dtype):
    """Beyond the range too, where PyTorch's float8_e4m3fn saturates and Hologram's own is NaN."""
    f = torch.compile(lambda x: (x.to(dtype), x.to(dtype).float() * 2), backend="hologram")
    for of in (torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.uint8):
        x = torch.cat([torch.linspace(0, 600, 1201), torch.linspace(0, 7e4, 300)])
        x = torch.cat([x, -x, torch.tensor([torch.inf, -torch.inf])]).to(of) if of is not torch.uint8 else torch.arange(256).to(of)
        narrow, wide = f(x)
        assert narrow.dtype is dtype and torch.equal(narrow.view(torch.uint8), x.to(dtype).view(torch.uint8))
        assert torch.equal(wide, x.to(dtype).float() * 2)
    assert f(torch.tensor([torch.nan]))[1].isnan().all()


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.uint16, torch.int16, torch.uint32], ids=str)
def test_floats_wrap_around_in_narrow_integers(dtype: torch.dtype) -> None:
    for of in (torch.float32, torch.float64, torch.bfloat16):
        x = torch.tensor([-4.75, -1.0, -0.5, 3.5, 255.0, 256.0, 300.0, -129.0, -300.0, 40000.0, -40000.0, 1e6] * 3).to(of)
        torch.testing.assert_close(compiled(lambda x: (x + 0).to(dtype))(x), x.to(dtype), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_arithmetic_of_8_bits(dtype):
    """Which PyTorch has no kernels for: that of float32, rounded."""
    x, y = torch.randn(2, 7, 5).to(dtype)
    found = compiled(lambda x, y: (x + y, x * 2, -x, torch.cat([x, y])[3:, ::2].t(), torch.isnan(x)))(x, y)
    wide = x.float(), y.float()
    for a, b in zip(found, (wide[0] + wide[1], wide[0] * 2, -wide[0], torch.cat(wide)[3:, ::2].t(), torch.isnan(wide[0])), strict=True):
        assert a.dtype == (dtype if b.dtype is not torch.bool else torch.bool)
        assert torch.equal(a.float(), b.to(a.dtype).float())


def test_a_layer_with_8_bit_weights():
    """Weights and rows are scaled, rounded, and multiplied in bfloat16."""
    weights = torch.randn(16, 24) / 24**0.5
    scale = weights.abs().amax(1, keepdim=True) / 448
    stored = (weights / scale).to(torch.float8_e4m3fn)

    def layer(x, stored):
        rows = (x * 64).to(torch.float8_e4m3fn)
        return rows.to(torch.bfloat16) @ stored.to(torch.bfloat16).t() * (scale.t() / 64)

    x = torch.randn(5, 24)
    torch.testing.assert_close(compiled(layer)(x, stored), layer(x, stored), rtol=0.01, atol=0.01)


def test_autocast():
    model, x = mlp(), torch.randn(5, 24)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        found, expected = compiled(model)(x), model(x)
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected, rtol=0.02, atol=0.02)


def test_results_do_not_share_memory():
    f = compiled(lambda x: (x + 1, 1 + x, x.clone(), torch.zeros(3)))
    x = torch.zeros(3)
    results = f(x)
    for r in results:
        r.add_(1)
    assert [r[0].item() for r in results] == [2.0, 2.0, 1.0, 1.0]
    assert [r[0].item() for r in f(x)] == [1.0, 1.0, 0.0, 0.0]


@pytest.mark.crossed
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("length", [5, 128, 192])
def test_attention(is_causal, length):
    q, k, v = (torch.randn(2, 3, length, 16, requires_grad=True) for _ in range(3))
    f = lambda q, k, v: nn.functional.scaled_dot_product_attention(q, k, v, is_causal=is_causal)  # noqa: E731
    seed = torch.randn(2, 3, length, 16)
    found = torch.autograd.grad(compiled(f)(q, k, v), (q, k, v), seed)
    assert_all_close(found, torch.autograd.grad(f(q, k, v), (q, k, v), seed))
    with torch.no_grad():
        torch.testing.assert_close(compiled(f)(q, k, v), f(q, k, v))


@pytest.mark.parametrize(
    "f",
    [
        lambda w, i: nn.functional.embedding(i, w),
        lambda w, i: w[i] * 2,
        lambda w, i: w.index_select(0, i),
        lambda w, i: w.gather(0, i[:, None]),
        lambda w, i: w.index_put((i,), torch.zeros(3, 4)),
    ],
)
def test_indices_out_of_range_are_errors(f):
    w, fast = torch.randn(5, 4), compiled(f)
    torch.testing.assert_close(fast(w, torch.tensor([0, 4, 2])), f(w, torch.tensor([0, 4, 2])))
    with pytest.raises(IndexError, match="out of range"):
        fast(w, torch.tensor([0, 5, 2]))
    torch.testing.assert_close(fast(w, torch.tensor([3, 3, 3])), f(w, torch.tensor([3, 3, 3])))


def test_precision_is_an_option():
    x = torch.randn(1000)
    exact = compiled(lambda x: x * 3 + x / 7, options={"precision": "exact"})
    assert torch.equal(exact(x), x * 3 + x / 7)
    with pytest.raises(Exception, match="precision"):
        compiled(lambda x: x + 1, options={"speed": "high"})(x)


MODES = {"default": 0, "reduce-overhead": 0, "max-autotune": 1, "max-autotune-no-cudagraphs": 1}  # and how often each is told of


@pytest.mark.parametrize("mode", MODES)
def test_modes_of_torch_are_taken_and_those_without_effect_are_told_of_once(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    backend = import_module("hologram_torch.compile.backend")
    backend._check_mode.cache_clear()
    for f in (lambda x: x * 2 + 1, lambda x: x * 3):
        torch.testing.assert_close(compiled(f, mode=mode)(torch.ones(3)), f(torch.ones(3)))
    told = [r.message for r in caplog.records if r.name == backend.__name__]
    assert len(told) == MODES[mode] and all(repr(mode) in line for line in told)


@pytest.mark.parametrize("mode", ["lite", "fastest", "max_autotune"])
def test_other_modes_are_refused_and_the_known_are_named(mode: str) -> None:
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=rf"default, reduce-overhead, max-autotune, .*not '{mode}'"):
        compiled(lambda x: x + 1, mode=mode)(torch.ones(3))


def test_explain_is_not_deceived_by_a_module_that_dynamo_skipped():
    skipped = hologram_torch.explain(torch.nn.LSTM(4, 4))(torch.randn(3, 2, 4))
    assert "recurrent layers" in str(skipped)
    assert hologram_torch.explain(torch.nn.Linear(3, 3))(torch.randn(3, 3)).programs
    compiled = torch.compile(torch.nn.Linear(3, 3), backend="hologram")
    assert torch.equal(compiled(torch.ones(2, 3)), compiled(torch.ones(2, 3)))


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_slope_of_gelu(approximate: str) -> None:
    torch._dynamo.reset()
    x = torch.linspace(-30, 30, 2001, requires_grad=True)
    exact = torch.linspace(-30, 30, 2001).double().requires_grad_()
    compiled = torch.compile(lambda x: nn.functional.gelu(x, approximate=approximate), backend="hologram")
    compiled(x).sum().backward()
    nn.functional.gelu(exact, approximate=approximate).sum().backward()
    torch.testing.assert_close(x.grad, exact.grad.float(), rtol=0, atol=5e-7)


def test_results_of_pytorchs_kernels_may_have_other_types_than_it_says() -> None:
    """In autocast its group norm of 16-bit floats gives statistics of float32."""
    norm, x = nn.GroupNorm(4, 32), torch.randn(4, 32, 4, 4)

    def gradients(call):
        given = x.bfloat16().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16):
            y = call(given)
        return torch.autograd.grad(y.float().square().mean(), (given, *norm.parameters()))

    torch.testing.assert_close(gradients(torch.compile(norm, backend="hologram")), gradients(norm), rtol=2e-2, atol=1e-3)


@pytest.mark.parametrize("put_off", [torch.conj, torch._neg_view], ids=["conjugation", "negation"])
def test_arguments_with_a_pending_operation_change_in_place(put_off: Callable[[torch.Tensor], torch.Tensor]) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        x.mul_(2j)
        return x + 1

    def run(g: Callable[[torch.Tensor], torch.Tensor]) -> list[torch.Tensor]:
        base = torch.tensor([1 + 2j, 3 - 1j])
        changed = put_off(base)
        return [g(changed), changed.resolve_conj().resolve_neg(), base]

    for got, want in zip(run(torch.compile(f, backend="hologram")), run(f), strict=True):
        torch.testing.assert_close(got, want)


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "rows": lambda x: x[2:],
    "gaps": lambda x: x[:, ::2],
    "transposed": lambda x: x[2:, :, 1:].mT,
    "repeats": lambda x: x[1:2].expand(4, 7, 6),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("put_off", [torch.conj, torch._neg_view], ids=["conjugation", "negation"])
@pytest.mark.parametrize("part", LAYOUTS.values(), ids=LAYOUTS)
def test_arguments_with_a_pending_operation_of_every_layout(part, put_off, dynamic: bool) -> None:
    x = put_off(part(torch.randn(9, 7, 6, dtype=torch.complex64)))

    def f(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x * 2, x[x.shape[0] - 2], x[1:], *x.split(2)

    for got, want in zip(compiled(f, dynamic=dynamic)(x), f(x), strict=True):
        assert (got.shape, got.stride(), got.storage_offset()) == (want.shape, want.stride(), want.storage_offset())
        assert torch.equal(got.resolve_conj().resolve_neg(), want.resolve_conj().resolve_neg())


@pytest.mark.parametrize("dtype", [torch.float32, torch.complex64])
@pytest.mark.parametrize("f", [lambda x: x * (2 + 1j), lambda x: x / 3j, lambda x: (x * 1j).conj(), lambda x: torch.fft.fft(1j * x)])
def test_slopes_of_complex_numbers_are_conjugated(f, dtype: torch.dtype) -> None:
    x = torch.randn(5, dtype=dtype, requires_grad=True)
    weights = torch.randn(5, dtype=torch.complex64)
    wanted, found = (torch.autograd.grad(g(x), x, weights)[0] for g in (f, compiled(f)))
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("ends", [(4.3, 0), (-2.7, 9.9)])
def test_integers_between_two_ends_begin_at_truncated_ones(ends: tuple[float, float]) -> None:
    for f in (
        lambda: torch.linspace(*ends, 50, dtype=torch.int64),
        lambda: torch.linspace(torch.tensor(ends[0]), ends[1], 7, dtype=torch.int32),
    ):
        assert torch.equal(compiled(f)(), f())


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_multilabel_margin_loss_ends_labels_at_the_first_minus_one(reduction: str) -> None:
    labels = torch.tensor([[2, 0, -1, 3], [-1, 1, 1, 1], [3, 2, 1, 0], [3, 3, -1, 0]])
    scores = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))

    def both(f, x: torch.Tensor, t: torch.Tensor) -> list[torch.Tensor]:
        x = x.clone().requires_grad_()
        loss = f(x, t)
        return [loss, *torch.autograd.grad(loss.sum(), x)]

    def by_name(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.multilabel_margin_loss(input=x, target=t, reduction=reduction)

    for f in (by_name, torch.nn.MultiLabelMarginLoss(reduction=reduction)):
        for args in ((scores, labels), (scores[3], labels[3])):
            torch.testing.assert_close(both(compiled(f), *args), both(f, *args))
