"""Attention written by hand in compiled models: forward and backward without scores in memory."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from hologram_torch.compile.backend import make_backend  # noqa: E402

HEADS, ROWS, DEPTH = 4, 520, 16  # 4.3 MB of scores
SCORES = HEADS * ROWS * ROWS


def _causal(q, k, v):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    return torch.softmax(scores.masked_fill(~seen, float("-inf")), -1) @ v


def _by_einsum(q, k, v):
    return torch.einsum("hrt,htd->hrd", torch.softmax(torch.einsum("hre,hte->hrt", q * 0.3, k), -1), v)


def _by_hand(q, k, v):
    scores = q @ k.mT
    exponentials = torch.exp(scores - scores.amax(-1, keepdim=True))
    return exponentials / exponentials.sum(-1, keepdim=True) @ v


def _weights_too(q, k, v):
    weights = torch.softmax(q @ k.mT, -1)
    return weights @ v, weights


def _gradients(f, precision="standard"):
    """Those of compiled code and of torch, and the number of elements of what the backward pass is given."""
    saved = []

    def observe(stage, module, _):
        if stage == "backward":
            saved.extend(x.meta["val"].numel() for x in module.graph.find_nodes(op="placeholder"))

    torch.manual_seed(0)
    args = [torch.randn(HEADS, ROWS, DEPTH, requires_grad=True) for _ in range(3)]

    def gradients(f):
        results = f(*args)
        first = results[0] if isinstance(results, tuple) else results
        return torch.autograd.grad(first.sin().sum(), args)

    return gradients(torch.compile(f, backend=make_backend(observe, precision))), gradients(f), saved


@pytest.mark.parametrize("f", [_causal, _by_einsum, _by_hand])
def test_scores_are_not_saved(f):
    found, wanted, saved = _gradients(f)
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)
    assert max(saved) == HEADS * ROWS * DEPTH


def test_scores_that_a_model_gives_are():
    found, wanted, saved = _gradients(_weights_too)
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)
    assert max(saved) == SCORES


def test_exact_computes_nothing_again():
    found, wanted, saved = _gradients(_causal, "exact")
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)
    assert max(saved) == SCORES


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # of torch's own, while Dynamo looks at an argument
@pytest.mark.parametrize("differentiated", [False, True])
def test_an_argument_of_the_scores_that_is_overwritten(differentiated):
    """The backward pass must not make the scores again of the new value."""

    def f(q, k, v, bias):
        scores = q @ k.mT + bias
        bias.mul_(2.0)
        return torch.softmax(scores, -1) @ v

    def gradients(f):
        torch.manual_seed(0)
        args = [torch.randn(HEADS, ROWS, DEPTH, requires_grad=True) for _ in range(3)]
        return torch.autograd.grad(f(*args, torch.randn(ROWS, ROWS, requires_grad=differentiated).clone()).sin().sum(), args)

    torch.testing.assert_close(gradients(torch.compile(f, backend=make_backend())), gradients(f), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("additive", [True, False])
def test_queries_that_see_no_key_give_zeros(additive: bool, grad: bool) -> None:
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 2, 16, 8, requires_grad=grad) for _ in range(3))
    mask = torch.tril(torch.ones(16, 16, dtype=torch.bool), -1)
    if additive:
        mask = torch.zeros(16, 16).masked_fill(~mask, -torch.inf)
    f = lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # noqa: E731
    want, got = f(q, k, v), torch.compile(f, backend="hologram")(q, k, v)
    assert not want[..., 0, :].any()
    torch.testing.assert_close(got, want)
    if grad:
        for a, b in zip(*(torch.autograd.grad(x.sin().sum(), (q, k, v)) for x in (got, want)), strict=True):
            torch.testing.assert_close(a, b)
