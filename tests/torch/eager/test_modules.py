"""device="hologram": what becomes of a module's parameters when it moves there is what becomes of them when torch converts it on the CPU."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch.nn.utils.parametrizations import weight_norm

import hologram_torch

DEVICE = hologram_torch.device()
Convert = Callable[[nn.Module], nn.Module]

WAYS: dict[str, tuple[Convert, Convert]] = {
    "to": (lambda m: m.to(DEVICE), lambda m: m.to("cpu")),
    "to, not blocking": (lambda m: m.to("hologram", non_blocking=True), lambda m: m.cpu()),
    "to a type as well": (lambda m: m.to(DEVICE, torch.float64), lambda m: m.to("cpu", torch.float32)),
    "hologram": (lambda m: m.hologram(), lambda m: m.cpu()),
}
CONVERTED: tuple[Convert, Convert] = (lambda m: m.double(), lambda m: m.float())


class Tied(nn.Module):
    """An embedding whose weights are those of the last layer, beside a buffer and a parameter that is not trained."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(6, 4)
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, 6)
        self.head.weight = self.embed.weight
        self.scale = nn.Parameter(torch.tensor(2.0), requires_grad=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.embed(tokens)) * self.scale)


def loss_of(model: nn.Module, like: torch.Tensor) -> torch.Tensor:
    tokens = torch.arange(5, device=like.device)
    return nn.functional.cross_entropy(model(tokens), (tokens + 1) % 6)


def stepped(model: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    optimiser.zero_grad()
    loss_of(model, next(model.parameters())).backward()
    optimiser.step()


def rounded(values: Any) -> list[Any]:
    return [[round(x, 4) for x in v.detach().cpu().double().flatten().tolist()] for v in values]


# Each is a function of a conversion and its inverse, and gives facts, which are the same whatever the conversion is.


def identities(there: Convert, back: Convert) -> Any:
    model = Tied()
    before = dict(model.named_parameters(remove_duplicate=False))
    refs = {name: weakref.ref(p) for name, p in before.items()}
    found = []
    for convert in (there, back):
        convert(model)
        after = dict(model.named_parameters(remove_duplicate=False))
        found.append({name: (after[name] is before[name], refs[name]() is after[name], after[name].requires_grad) for name in before})
        found.append((model.head.weight is model.embed.weight, list(model.state_dict())))
    return found


def optimiser_made_before(there: Convert, back: Convert) -> Any:
    model = Tied()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    there(model)
    for _ in range(2):
        stepped(model, optimiser)
    return rounded(back(model).parameters()), model.head.weight is model.embed.weight


def gradients(there: Convert, back: Convert) -> Any:
    model = Tied()
    loss_of(model, model.head.bias).backward()
    grads = [p.grad for p in model.parameters()]
    there(model)
    same = [p.grad is g for p, g in zip(model.parameters(), grads, strict=True)]
    at = [p.grad is None or (p.grad.device, p.grad.dtype) == (p.device, p.dtype) for p in model.parameters()]
    loss_of(model, model.head.bias).backward()
    return same, at, rounded(p.grad for p in back(model).parameters() if p.grad is not None)


def hooks_and_attributes(there: Convert, back: Convert) -> Any:
    model, calls = Tied(), []
    model.head.bias.register_hook(lambda g: calls.append("grad") or g * 2)
    model.head.bias.register_post_accumulate_grad_hook(lambda p: calls.append("accumulated"))
    model.head.bias.tag = "kept"
    there(model)
    loss_of(model, model.head.bias).backward()
    return calls, model.head.bias.tag, rounded([back(model).head.bias.grad])


def copies(there: Convert, back: Convert) -> Any:
    model = copy.deepcopy(there(Tied()))
    loaded = Tied()
    loaded.load_state_dict(model.state_dict())
    return model.head.weight is model.embed.weight, rounded(back(model).parameters()), rounded(loaded.parameters())


def recurrent_layers(there: Convert, back: Convert) -> Any:
    torch.manual_seed(0)
    model = nn.LSTM(3, 4)
    there(model)
    own = [w is p for w, p in zip(model._flat_weights, model.parameters(), strict=True)]
    like = model.weight_ih_l0
    model(torch.ones(2, 1, 3, device=like.device, dtype=like.dtype))[0].sum().backward()
    return own, rounded(p.grad for p in back(model).parameters())


def parametrizations(there: Convert, back: Convert) -> Any:
    torch.manual_seed(0)
    model = weight_norm(nn.Linear(3, 2))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    there(model)
    model(torch.ones(1, 3, device=model.bias.device, dtype=model.bias.dtype)).sum().backward()
    optimiser.step()
    return rounded([*back(model).parameters(), model.weight])


def lists_of_parameters(there: Convert, back: Convert) -> Any:
    shared = nn.Parameter(torch.ones(2))
    model = nn.ModuleList([nn.ParameterList([shared, shared]), nn.ParameterDict({"a": shared})])
    there(model)
    return model[0][0] is model[0][1] is model[1]["a"] is shared, shared.device == model[0][0].device, len(list(model.parameters()))


def between_forward_and_backward(there: Convert, back: Convert) -> Any:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 1))
    kept = model(torch.ones(1, 2)).sum()
    there(model)
    kept.backward()
    return rounded(p.grad for p in model.parameters())


BEHAVIOURS = {
    f.__name__: f for f in (
        identities, optimiser_made_before, gradients, hooks_and_attributes, copies, recurrent_layers, parametrizations, lists_of_parameters,
        between_forward_and_backward,
    )
}  # fmt: skip


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_a_module_that_moves_keeps_what_one_that_is_converted_keeps(behaviour: str) -> None:
    assert BEHAVIOURS[behaviour](*WAYS["to"]) == BEHAVIOURS[behaviour](*CONVERTED)


@pytest.mark.parametrize("way", WAYS)
def test_parameters_are_kept_whichever_way_a_module_moves(way: str) -> None:
    assert identities(*WAYS[way]) == identities(*CONVERTED)


@pytest.mark.parametrize("flag", ["overwrite", "swap"])
def test_moving_heeds_the_flags_by_which_torch_is_told_how(flag: str) -> None:
    choose = getattr(torch.__future__, f"set_{flag}_module_params_on_conversion")
    found = []
    for convert in (lambda m: m.double(), lambda m: m.to(DEVICE)):
        model = nn.Linear(2, 1)
        weight = model.weight
        choose(True)
        try:
            convert(model)
        finally:
            choose(False)
        found.append((model.weight is weight, weight.device.type if flag == "overwrite" else None))
    assert found[0] == found[1]


def test_values_are_those_that_are_assigned() -> None:
    for source in (torch.arange(4.0), torch.arange(4.0, device=DEVICE)):
        for target in (torch.zeros(2), torch.zeros(2, 3, device=DEVICE), nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2, device=DEVICE))):
            version = target._version
            target.data = source
            assert target.device == source.device and target.tolist() == [0, 1, 2, 3] and target._version == version
            with torch.no_grad():
                target.mul_(2)
            assert source.tolist() == [0, 2, 4, 6], "memory is shared"
            with torch.no_grad():
                target.div_(2)


def test_parameters_become_parts_of_one_tensor() -> None:
    model = nn.Linear(2, 3)
    weight = model.weight
    flat = parameters_to_vector(model.parameters()).detach().to(DEVICE)
    model.to(DEVICE)
    vector_to_parameters(flat, model.parameters())
    flat.zero_()
    assert model.weight is weight and not weight.any() and not model.bias.any()


@pytest.mark.parametrize("other", [torch.ones(2, device="meta"), torch.ones(2).to_sparse()], ids=["meta", "sparse"])
def test_what_torch_lets_nobody_assign_is_refused(other: torch.Tensor) -> None:
    for device in ("cpu", DEVICE):
        plain = torch.ones(2, device=device)
        for target, source in ((plain, other), (other, plain)):
            with pytest.raises(RuntimeError, match="incompatible tensor type"):
                target.data = source


def test_torch_still_makes_new_parameters_of_those_without_memory() -> None:
    for device in ("cpu", DEVICE):
        model = nn.Linear(2, 2, device="meta")
        weight = model.weight
        assert model.to_empty(device=device).weight is not weight and model.weight.device.type == torch.device(device).type
        assert nn.Linear(2, 2, device=device).to("meta").weight.device.type == "meta"
