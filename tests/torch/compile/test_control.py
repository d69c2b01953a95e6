"""``torch.cond``, ``while_loop`` and ``scan`` in compiled graphs beside eager mode, with gradients; what they leave to PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from hologram_torch.compile.backend import make_backend
from hologram_torch.compile.report import Explanation, recorder

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch warns of what it does itself


def branch(x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda x: (x @ a).sin(), lambda x: x.cos(), (x,))


def nested(x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    inner = lambda x: torch.cond(x.max() > 5, lambda x: x * 2, lambda x: x * 3, (x,))  # noqa: E731
    return torch.cond(x.sum() > 0, inner, lambda x: x.cos(), (x * 3,)).exp()


def recurrent(x: torch.Tensor, a: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return scan(lambda carry, row: (torch.tanh(carry @ a + row), (carry * row).sum()), torch.zeros(4), x)


def loop(x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    return while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, y @ a * 0.1 + 1), (torch.tensor(0), x))[1] * 2


def run(f: Callable[..., Any], args: tuple[torch.Tensor, ...], differentiated: bool) -> list[torch.Tensor]:
    torch.manual_seed(0)
    given = [x.clone().requires_grad_(differentiated) for x in args]
    found = f(*given)
    results = list(found) if isinstance(found, tuple) else [found]
    gradients = torch.autograd.grad(sum(x.sum() for x in results), given, allow_unused=True) if differentiated else ()
    return [x.detach() for x in results] + [torch.zeros(()) if g is None else g for g in gradients]


def assert_as_eager(f: Callable[..., Any], args: tuple[torch.Tensor, ...], differentiated: bool) -> Explanation:
    told = Explanation()
    torch._dynamo.reset()
    compiled = torch.compile(f, backend=make_backend(recorder(told)), dynamic=False, fullgraph=True)
    torch.testing.assert_close(run(compiled, args, differentiated), run(f, args, differentiated), rtol=1e-4, atol=1e-5)
    return told


@pytest.mark.crossed
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("f", [branch, nested, recurrent, loop], ids=lambda f: f.__name__)
def test_branches_and_loops_are_a_part_of_the_program(f, sign):
    torch.manual_seed(0)
    told = assert_as_eager(f, (torch.full((3, 4), sign), torch.randn(4, 4)), differentiated=f is not loop)
    assert told.programs and not told.fallbacks, str(told)


def filled(x: torch.Tensor, a: torch.Tensor) -> Any:
    """A table whose rows are made one after the other, each of the one before."""
    step = lambda i, table: (i + 1, table.index_copy(0, i[None], torch.tanh(table[i[None] - 1] @ a)))  # noqa: E731
    return while_loop(lambda i, table: i < table.shape[0], step, (torch.tensor(1), x.repeat(20, 1)))


def decoded(x: torch.Tensor, a: torch.Tensor) -> Any:
    """A cache that a step writes to, and reads."""

    def step(cache: torch.Tensor, at: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        q = torch.cos(cache[at[None] - 1] @ a)
        cache = cache.index_put((at[None],), q)
        return cache, torch.softmax(q @ cache.T, -1) @ cache

    return scan(step, x.repeat(20, 1), torch.arange(1, 9))


def counted(x: torch.Tensor, a: torch.Tensor) -> Any:
    """With a constant inside, and places that are named twice."""
    step = lambda i, sums: (i + 1, sums.scatter_add(0, torch.tensor([3, 3, 9, 0]), a[i[None] % 4][0]))  # noqa: E731
    return while_loop(lambda i, sums: i < 9, step, (torch.tensor(0), x.flatten().repeat(200)))


@pytest.mark.parametrize("f", [filled, decoded, counted], ids=lambda f: f.__name__)
def test_loops_change_a_part_of_a_carry_where_it_is(f):
    torch.manual_seed(0)
    x, a, writers = torch.randn(3, 4), torch.randn(4, 4), []
    torch._dynamo.reset()
    fast = torch.compile(f, backend=make_backend(lambda stage, module, writer: writers.append(writer)), fullgraph=True)
    with torch.no_grad():
        torch.testing.assert_close(fast(x, a), f(x, a), rtol=1e-4, atol=1e-5)
    (writer,) = writers
    assert not writer.partition.reasons
    assert not [c for e in writer.executables for c in e.execution_plan.copies if c.of.size >= 240]


def test_indices_out_of_range_inside():
    def branched(x, i):
        return torch.cond(x.sum() > 0, lambda x, i: x[i], lambda x, i: x[i] + x.gather(0, i), (x, i))

    def looped(x, i):
        return while_loop(lambda n, y: n < 3, lambda n, y: (n + 1, y.index_add(0, i + n, x[:2])), (torch.tensor(0), x * 1))[1]

    def scanned(x, i):
        return scan(lambda c, n: (c.index_put((i + n,), x[:2]), c[i].sum()), x * 1, torch.arange(3))[0]

    for f in (branched, looped, scanned):
        torch._dynamo.reset()
        told = Explanation()
        fast = torch.compile(f, backend=make_backend(recorder(told)), fullgraph=True)
        with torch.no_grad():
            for x in (torch.arange(8.0), -torch.arange(8.0)):
                torch.testing.assert_close(fast(x, torch.tensor([0, 3])), f(x, torch.tensor([0, 3])))
                with pytest.raises(IndexError, match="out of range"):
                    fast(x, torch.tensor([0, 8]))
        assert not told.fallbacks, str(told)


@pytest.mark.parametrize(
    ("op", "f"),
    {
        "aten.rand.default": lambda x: torch.cond(x.sum() > 0, lambda x: x + torch.rand(4), lambda x: x.cos(), (x,)),
    }.items(),
    ids=["random"],
)
def test_what_has_random_numbers_inside_is_left_to_pytorch(op, f):
    told = assert_as_eager(f, (torch.ones(4),), differentiated=False)
    assert any(op in fallback.reason for program in told.programs for fallback in program.fallbacks), str(told)
