"""Modules and ``convert``: torch's parameters, state dicts and results; and the SDK's converters between tensors and buffers."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch

import hologram_torch as ht
from hologram.errors import ArgumentError, DeviceError, DTypeError, ShapeError
from hologram_torch import nn


def pairs() -> list[tuple[str, tuple[Any, ...], dict[str, Any], tuple[torch.Tensor, ...]]]:
    """A module's name, the arguments it is made with, and those it is called with."""
    x, image = torch.randn(4, 6), torch.randn(2, 3, 6, 6)
    return [
        ("ReLU", (), {}, (x,)),
        ("Sigmoid", (), {}, (x,)),
        ("Tanh", (), {}, (x,)),
        ("GELU", (), {}, (x,)),
        ("GELU", ("tanh",), {}, (x,)),
        ("Softmax", (1,), {}, (x,)),
        ("Linear", (6, 3), {}, (x,)),
        ("Linear", (6, 3, False), {"dtype": torch.float64}, (x.double(),)),
        ("LayerNorm", (6,), {"eps": 1e-3}, (x,)),
        ("LayerNorm", ((4, 6),), {"elementwise_affine": False}, (x,)),
        ("Conv2d", (3, 4, 3), {"padding": "same"}, (image,)),
        ("Conv2d", (3, 6, (3, 2)), {"groups": 3, "stride": 2, "padding": 1, "padding_mode": "circular"}, (image,)),
        ("MSELoss", (), {"reduction": "sum"}, (x, x.flip(0))),
        ("BCELoss", (torch.rand(6),), {}, (torch.rand(4, 6), torch.rand(4, 6))),
        ("CrossEntropyLoss", (torch.rand(6),), {"label_smoothing": 0.1, "ignore_index": 1}, (x, torch.tensor([0, 1, 5, 2]))),
    ]


@pytest.mark.parametrize("number", range(len(pairs())))
def test_modules_are_torchs(number: int) -> None:
    torch.manual_seed(number)
    name, args, options, inputs = pairs()[number]
    theirs = getattr(torch.nn, name)(*args, **options)
    ours = getattr(nn, name)(*args, **options)
    assert isinstance(ours, type(theirs)) and repr(ours) == repr(theirs)
    assert ours.load_state_dict(theirs.state_dict()) and list(ours.state_dict()) == list(theirs.state_dict())
    found, expected = ours(*inputs), theirs(*inputs)
    torch.testing.assert_close(found, expected)
    if parameters := list(ours.parameters()):
        torch.testing.assert_close(torch.autograd.grad(found.sum(), parameters), torch.autograd.grad(expected.sum(), list(theirs.parameters())))


def test_every_module_is_tested_and_derives_from_torchs() -> None:
    assert {name for name, *_ in pairs()} == set(nn.__all__)
    for name in nn.__all__:
        assert getattr(torch.nn, name) in getattr(nn, name).__bases__


def test_an_executor_may_come_first() -> None:
    with ht.Executor("cpu") as executor:
        layer = nn.Linear(executor, 5, 3, bias=False)
        assert layer(torch.randn(2, 5)).shape == (2, 3) and list(layer.state_dict()) == ["weight"]
        assert nn.ReLU(executor, inplace=True).inplace


def test_copies_and_pickles() -> None:
    layer, x = nn.Linear(4, 2), torch.randn(3, 4)
    for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert type(again) is nn.Linear
        torch.testing.assert_close(again(x), layer(x))


class Twice(torch.nn.Linear):
    """A derived layer, which computes something else."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(input)


def model() -> torch.nn.Sequential:
    inner = torch.nn.Sequential(torch.nn.Linear(18, 8), torch.nn.GELU(), torch.nn.Dropout(0.0), Twice(8, 4))
    return torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.ReLU(inplace=True), torch.nn.Flatten(), inner)


def test_convert_swaps_what_it_can_and_says_what_it_left() -> None:
    torch.manual_seed(0)
    net, x = model(), torch.randn(3, 1, 5, 5)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    seen: list[str] = []
    net[0].register_forward_hook(lambda module, args, result: seen.append(type(module).__module__))
    before, state, parameters = net(x), net.state_dict(), list(net.parameters())
    report = ht.convert(net)
    assert report.converted == ("0", "1", "3.0", "3.1")
    assert report.left == {"2": "Flatten", "3.2": "Dropout", "3.3": "Twice"}
    assert "4 modules compute with Hologram\nleft: 2, a Flatten" in str(report)
    torch.testing.assert_close(net(x), before)
    assert all(a is b for a, b in zip(net.parameters(), parameters, strict=True)) and list(net.state_dict()) == list(state)
    net(x).square().mean().backward()
    optimizer.step()
    assert not torch.equal(net(x), before) and seen[-1].startswith("hologram_torch")
    assert ht.convert(net).converted == () and ht.convert(net).left == report.left
    alone = torch.nn.Linear(2, 2)
    assert ht.convert(alone).converted == ("",) and type(alone) is nn.Linear
    with pytest.raises(ArgumentError, match="convert takes a torch.nn.Module, not a function"):
        ht.convert(lambda x: x)  # type: ignore[arg-type]


def test_training_follows_torch() -> None:
    torch.manual_seed(0)
    theirs = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 3))
    ours = copy.deepcopy(theirs)
    ht.convert(ours)
    x, labels = torch.randn(32, 6), torch.randint(0, 3, (32,))
    for net, loss in ((theirs, torch.nn.CrossEntropyLoss()), (ours, nn.CrossEntropyLoss())):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)
        for _ in range(20):
            optimizer.zero_grad()
            loss(net(x), labels).backward()
            optimizer.step()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


# --- tensors and buffers ---------------------------------------------------------------------------------------------


def test_tensors_to_buffers_and_back() -> None:
    x = torch.randn(3, 4)
    with ht.create_executor_for_tensor(x) as executor:
        buffer, flat = ht.tensor_to_buffer(executor, x.T)
        assert flat.shape == (12,) and buffer.size == 12
        np.testing.assert_array_equal(buffer.to_numpy(), x.T.flatten().numpy())
        again, _ = ht.tensor_to_buffer(executor, x, buffer)
        assert again is buffer
        view = ht.buffer_to_tensor(buffer, (4, 3), requires_grad=False)
        assert view.data_ptr() == buffer.ptr
        view[0, 0] = 5.0
        assert buffer.to_numpy()[0] == 5.0 and ht.buffer_to_tensor(buffer, [12], "cpu", True).requires_grad
        with pytest.raises(ShapeError, match=r"buffer_to_tensor: shape \[5\] for a buffer of 12 elements"):
            ht.buffer_to_tensor(buffer, (5,))
        with pytest.raises(ShapeError, match="tensor_to_buffer: a buffer of 12 elements for a tensor of 3"):
            ht.tensor_to_buffer(executor, x[:, 0], buffer)
        with pytest.raises(DTypeError, match="tensor_to_buffer: a buffer of float32 for a tensor of torch.float64"):
            ht.tensor_to_buffer(executor, x.double(), buffer)
        with pytest.raises(DeviceError, match="buffer_to_tensor"):
            ht.buffer_to_tensor(buffer, (12,), device="cuda")
    assert view[0, 0] == 5.0  # the memory stays while a tensor has it


def test_which_backend_fits_a_tensor() -> None:
    x = torch.ones(2)
    assert ht.match_device(x) == "cpu" and ht.match_device(x, "opencl") == "opencl"
    with pytest.raises(DeviceError, match="match_device: no backend computes on meta"):
        ht.match_device(x.to("meta"))
    ht.validate_tensor_compatible(x)
    with pytest.raises(ArgumentError, match="torch.Tensor"):
        ht.validate_tensor_compatible([1.0])
    with pytest.raises(DeviceError, match="meta"):
        ht.validate_tensor_compatible(x.to("meta"))


def test_the_example_follows_torch(capsys: pytest.CaptureFixture[str]) -> None:
    from examples import torch_training_loop

    found = torch_training_loop.run(steps=12, points=200)
    np.testing.assert_allclose(found["hologram"].losses, found["torch"].losses, rtol=1e-3)
    assert "4 modules compute with Hologram" in capsys.readouterr().out and found["hologram"].losses[-1] < found["hologram"].losses[0]
