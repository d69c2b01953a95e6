"""``torch.ops.hologram.*``: every op passes torch's own checks, and stays whole in compiled graphs."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.library import opcheck

import hologram_torch.library
from hologram_torch import functional as F
from hologram_torch.api.operation import TABLE
from tests.support.torch.samples import calls

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's about itself, where it makes graphs


def positional(name: str, number: int) -> tuple[object, ...]:
    """The arguments of the operation's op, in order, its tensors of floats requiring gradients."""
    args, options = calls(name)[number]
    signature = TABLE[name].function.__signature__.bind(*args, **options)
    signature.apply_defaults()
    found = [(1, 1) if n in ("stride", "dilation") and x == 1 else x for n, x in signature.arguments.items() if n not in ("out", "inplace")]
    return tuple([x.requires_grad_() if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in found])


def test_every_operation_has_its_two_ops() -> None:
    assert hologram_torch.library.NAMESPACE == "hologram"
    for name in F.__all__:
        op, backward = (getattr(torch.ops.hologram, n).default for n in (name, name + "_backward"))
        assert str(op._schema).endswith("-> Tensor") and str(backward._schema).endswith("-> Tensor[]")
    assert str(torch.ops.hologram.gelu.default._schema) == 'hologram::gelu(Tensor x, str approximate="none") -> Tensor'


@pytest.mark.parametrize("name", F.__all__)
def test_opcheck(name: str, everything: bool) -> None:
    sample = 1 if name in ("add", "cross_entropy", "gelu", "layer_norm", "linear") else 0
    for number in range(len(calls(name)) if everything else sample):
        arguments = positional(name, number)
        if "same" not in arguments:  # a schema has no such padding
            results = opcheck(getattr(torch.ops.hologram, name).default, arguments)
            assert set(results.values()) == {"SUCCESS"}


@pytest.mark.parametrize("name", ["gelu", "linear", "cross_entropy", "mse_loss"])
def test_values_and_gradients_are_those_of_the_operation(name: str) -> None:
    arguments = positional(name, 0)
    floats = [x for x in arguments if isinstance(x, torch.Tensor) and x.requires_grad]
    found, expected = getattr(torch.ops.hologram, name)(*arguments), getattr(F, name)(*arguments)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    torch.testing.assert_close(torch.autograd.grad(found.sum(), floats), torch.autograd.grad(expected.sum(), floats))


@pytest.mark.parametrize(("reduction", "shape"), [("none", (4,)), ("sum", ())])
def test_losses_of_varying_sizes_have_their_shapes(reduction: str, shape: tuple[int, ...]) -> None:
    mode = FakeTensorMode(shape_env=ShapeEnv())
    x, y = mode.from_tensor(torch.randn(4, 5)), mode.from_tensor(torch.arange(4))
    with mode:
        found = torch.ops.hologram.cross_entropy(x, y, reduction=reduction)
    assert any(isinstance(n, torch.SymInt) for n in x.shape) and tuple(int(n) for n in found.shape) == shape


def test_ops_stay_whole_in_compiled_graphs() -> None:
    graphs: list[torch.fx.GraphModule] = []

    def keep(graph: torch.fx.GraphModule, inputs: object) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    x = torch.randn(3, 4)
    compiled = torch.compile(lambda x: torch.ops.hologram.gelu(x * 2) + 1, backend=keep, fullgraph=True)
    torch.testing.assert_close(compiled(x), torch.nn.functional.gelu(x * 2) + 1)
    assert [n.target for n in graphs[0].graph.nodes if n.op == "call_function"][1] in (torch.ops.hologram.gelu, torch.ops.hologram.gelu.default)


def test_eager_functions_work_beside_compiled_code() -> None:
    """A call of an operation breaks the graph around it, and computes what it computes elsewhere."""
    compiled = torch.compile(lambda x: F.gelu(x * 2) + 1, backend="eager")
    for requires_grad in (False, True):
        x = torch.randn(3, 4, requires_grad=requires_grad)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of Dynamo, which asks a result of the graph's first part for its gradient
            y = compiled(x)
        torch.testing.assert_close(y, torch.nn.functional.gelu(x * 2) + 1)
        assert y.requires_grad is requires_grad
