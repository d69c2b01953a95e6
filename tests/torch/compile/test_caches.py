"""Caches and other arguments of which compiled code changes a part: what it writes, and values beside eager mode's, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import nn

from hologram.graph.lower.lowered import Lowered
from hologram_torch.compile.backend import make_backend
from hologram_torch.compile.program_writer import ProgramWriter

BATCH, HEADS, LENGTH, WIDTH = 1, 4, 64, 8
K = torch.linspace(-1, 1, HEADS * WIDTH).reshape(BATCH, HEADS, 1, WIDTH)
K3 = torch.linspace(-1, 1, HEADS * 3 * WIDTH).reshape(BATCH, HEADS, 3, WIDTH)
TABLE = (30, 40)
t = torch.tensor


@pytest.fixture(autouse=True)
def reset() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def cache(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.arange(BATCH * HEADS * LENGTH * WIDTH).reshape(BATCH, HEADS, LENGTH, WIDTH).remainder(97).to(dtype)


def table() -> torch.Tensor:
    return torch.arange(TABLE[0] * TABLE[1], dtype=torch.float32).reshape(TABLE)


def programs(writers: Sequence[Any]) -> list[ProgramWriter]:
    assert all(w is not None for w in writers)
    return list(writers)


def written_whole(writer: ProgramWriter) -> list[str]:
    """What changes a whole argument: assignments by PyTorch, copies of arguments that are not left out, kernels that go over all of one."""
    found = [n.name for n in writer.partition.reasons if n not in writer.assigned and n.target is torch.ops.aten.copy_.default]
    for executable in writer.executables:
        plan = executable.execution_plan
        results = {plan.buffer(c) for c in plan.computed}
        for step in plan.steps:
            assert isinstance(step, Lowered)
            if step.is_copy and all(not plan.may_share(plan.buffer(r), o) and plan.buffer(r) is not plan.buffer(o) for r, o in step.shared()):
                found.append(f"copy of {list(step.bindings[0].shape)}")
            givens = {(n.size, n.dtype) for n in plan.inputs}
            for n in step.writes():
                begins = not any(n is m for s in plan.steps[: plan.steps.index(step)] for m in s.writes())
                if (
                    not step.is_copy
                    and begins
                    and plan.buffer(n) in results
                    and (n.size, n.dtype) in givens
                    and isinstance(n.size, int)
                    and n.size >= 512
                ):
                    found.append(f"kernel over {list(n.shape)}")
    return found


def in_both(f: Callable[..., Any], make: Callable[[], Sequence[torch.Tensor]], calls: Sequence[Sequence[Any]], **options: Any) -> list[ProgramWriter]:
    """Runs the calls in eager mode and compiled, which must agree on results and arguments after each; returns the programs."""
    writers: list[Any] = []
    fast = torch.compile(f, backend=make_backend(lambda stage, module, writer: writers.append(writer)), **options)
    wanted, given = make(), make()
    addresses = [x.data_ptr() for x in given]
    for call in calls:
        want, got = f(*wanted, *call), fast(*given, *call)
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(list(given), list(wanted), rtol=1e-5, atol=1e-5)
    assert [x.data_ptr() for x in given] == addresses
    return programs(writers)


# --- forms of updates ------------------------------------------------------------------------------------------------


def index_copy(c: torch.Tensor, i: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    c.index_copy_(2, i, k)
    return k * 2


def read_before(c: torch.Tensor, i: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    total = c.sum()
    c.index_copy_(2, i, k)
    return total


def read_after(c: torch.Tensor, i: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    c.index_copy_(2, i, k)
    return c.sum(2)


def read_old_row(c: torch.Tensor, i: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    old = c[:, :, 5].clone()
    c.index_copy_(2, i, k)
    return old + c[:, :, 5]


def returned(c: torch.Tensor, i: torch.Tensor, k: torch.Tensor) -> Any:
    c.index_copy_(2, i, k)
    return c, c[:, :, :4], c.transpose(1, 2), c[:, :, :4] * 2


def index_put(c: torch.Tensor, i: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    c[:, :, i] = k
    return k * 2


def index_add(c: torch.Tensor, i: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    c.index_add_(2, i, k, alpha=2)
    return k * 2


def index_fill(c: torch.Tensor, i: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    c.index_fill_(2, i, 3.0)
    return k * 2


def in_view(c: torch.Tensor, i: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    c[0].index_copy_(1, i, k[0])
    return k * 2


def in_slice(c: torch.Tensor, i: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    c[:, :, :32].index_copy_(2, i, k)
    return k * 2


def in_transpose(c: torch.Tensor, i: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    c.transpose(1, 2).index_copy_(1, i, k.transpose(1, 2))
    return k * 2


ALONG = [index_copy, read_before, read_after, read_old_row, returned, index_put, index_add, index_fill, in_view, in_slice, in_transpose]


@pytest.mark.parametrize("form", ALONG)
def test_indices_along_an_axis(form: Any) -> None:
    found = in_both(form, lambda: [cache()], [(t([3]), K), (t([5]), K), (t([31]), K)])
    assert [written_whole(w) for w in found] == [[]]


@pytest.mark.parametrize("form", [index_copy, index_put, index_add, read_after])
def test_several_indices(form: Any) -> None:
    found = in_both(form, lambda: [cache()], [(t([3, 9, 4]), K3), (t([63, 0, 4]), K3)])
    assert [written_whole(w) for w in found] == [[]]


def test_repeated_and_negative_indices() -> None:
    for form, i in ((index_put, [3, -2, 9]), (index_add, [3, 3, 3])):
        (found,) = in_both(form, lambda: [cache()], [(t(i), K3)])
        assert not written_whole(found)


def put(c: torch.Tensor, i: torch.Tensor, j: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    c.index_put_((i, j), v)
    return v + 1


def accumulate(c: torch.Tensor, i: torch.Tensor, j: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    c.index_put_((i, j), v, accumulate=True)
    return c[3]


def scatter(c: torch.Tensor, i: torch.Tensor, j: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    c.scatter_(1, j[None], v[None])
    return v + 1


def scatter_number(c: torch.Tensor, i: torch.Tensor, j: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    c.scatter_(1, j[None], 2.0)
    return v + 1


def scatter_add(c: torch.Tensor, i: torch.Tensor, j: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    c.scatter_add_(0, j[None], v[None])
    return c.sum()


def scatter_reduce(c: torch.Tensor, i: torch.Tensor, j: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    c.scatter_reduce_(1, j[None], v[None], "amax")
    return v + 1


@pytest.mark.parametrize("form", [put, accumulate, scatter, scatter_number, scatter_add, scatter_reduce])
def test_points(form: Any) -> None:
    """Where elements are named twice, torch promises no order of what is written."""
    repeats = form in (accumulate, scatter_number, scatter_reduce)
    (found,) = in_both(form, lambda: [table()], [(t([3, 4, 9]), t([7, 2, 2 if repeats else 3]), t([1.0, 2.0, 5.0]))])
    assert not written_whole(found)


def masked_fill(c: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    c[:, 4:6].masked_fill_(mask, -1.0)
    return mask.sum()


def several_views(c: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    c[3].zero_()
    c[4].fill_(2.0)
    c[5:7].mul_(3).add_(1)
    c[9] += 1
    c.diagonal()[2] = 7
    return c[3] + c[9]


@pytest.mark.parametrize("form", [masked_fill, several_views])
def test_views(form: Any) -> None:
    (found,) = in_both(form, lambda: [table()], [(torch.arange(60).reshape(30, 2) % 3 == 0,)])
    assert not written_whole(found)


# --- positions -------------------------------------------------------------------------------------------------------


def slice_copy(c: torch.Tensor, i: int, k: torch.Tensor) -> torch.Tensor:
    c[:, :, i : i + 1].copy_(k)
    return k * 2


def slice_set(c: torch.Tensor, i: int, k: torch.Tensor) -> torch.Tensor:
    c[:, :, i : i + 1] = k
    return c.sum(2)


def narrow(c: torch.Tensor, i: int, k: torch.Tensor) -> torch.Tensor:
    c.narrow(2, i, 1).copy_(k)
    c[:, :, i + 1 : i + 2].mul_(2)
    return c.narrow(2, i, 1) + i


def attention(c: torch.Tensor, i: int, k: torch.Tensor) -> torch.Tensor:
    c[:, :, i : i + 1] = k
    seen = torch.arange(LENGTH) <= i
    return torch.softmax((k @ c.mT).masked_fill(~seen, float("-inf")), -1) @ c


@pytest.mark.parametrize("form", [slice_copy, slice_set, narrow, attention])
def test_a_position_that_moves_compiles_no_program(form: Any) -> None:
    """The first is of the one position; Dynamo makes a symbol of it when it is another one."""
    found = in_both(form, lambda: [cache()], [(i, K) for i in (3, 4, 5, 17, 60)])
    assert len(found) == 2 and not written_whole(found[1])


def test_slices_of_a_length_that_varies() -> None:
    def step(c: torch.Tensor, i: int, k: torch.Tensor) -> torch.Tensor:
        c[:, :, i : i + k.shape[2]].copy_(k)
        return k + 1

    found = in_both(step, lambda: [cache()], [(3, K3), (4, K), (7, K3[:, :, :2]), (9, K)], dynamic=True)
    assert not any(written_whole(w) for w in found)


def test_two_positions() -> None:
    def step(c: torch.Tensor, i: int, j: int, k: torch.Tensor) -> torch.Tensor:
        c[:, :, i : i + 1] = k
        c[:, :, j : j + 1] = k * 2
        return c[:, :, i : i + 1] * c[:, :, j : j + 1]

    found = in_both(step, lambda: [cache()], [(3, 4, K), (5, 9, K), (6, 8, K), (7, 3, K)])
    assert len(found) == 2 and not written_whole(found[1])


def test_positions_from_the_end() -> None:
    def step(c: torch.Tensor, i: int) -> torch.Tensor:
        c[i : i + 2, 3:5] = 1.5
        return c.sum(1)

    in_both(step, lambda: [table()], [(-5,), (-4,), (-7,), (3,)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int8])
def test_a_position_is_a_number(dtype: torch.dtype) -> None:
    def f(x: torch.Tensor, i: int) -> Any:
        return x + i, x * i, x // i, x > i, torch.full((3,), i), torch.where(x > i, x, i), x.clamp(max=i), torch.arange(i, i + 4)

    in_both(f, lambda: [torch.arange(10).to(dtype)], [(3,), (4,), (5,), (7,)])


def test_derivatives_at_a_position() -> None:
    def f(x: torch.Tensor, w: torch.Tensor, i: int) -> torch.Tensor:
        return (x[:, i : i + 2] * (w * i).sum()).sum()

    fast = torch.compile(f, backend="hologram")
    x = torch.linspace(0, 1, 160).reshape(4, 40).requires_grad_()
    w = torch.linspace(1, 2, 3).requires_grad_()
    for i in (3, 4, 5, 9):
        torch.testing.assert_close(torch.autograd.grad(fast(x, w, i), (x, w)), torch.autograd.grad(f(x, w, i), (x, w)))


def test_a_position_on_which_a_size_depends() -> None:
    def step(c: torch.Tensor, i: int, k: torch.Tensor) -> torch.Tensor:
        c[:, :, i : i + 1] = k
        return c[:, :, : i + 1].sum(2)

    in_both(step, lambda: [cache()], [(i, K) for i in (3, 4, 5)])


def test_a_position_that_pytorch_reads() -> None:
    def step(c: torch.Tensor, i: int, k: torch.Tensor) -> Any:
        c[:, :, i : i + 1] = k
        return torch.histc(c[0, 0, i : i + 1], 4), torch.linalg.matrix_power(c[0, :, :4, :4], i - i + 2)

    in_both(step, lambda: [cache()], [(i, K) for i in (3, 4, 5)])


# --- types, layouts, modes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int32, torch.bool])
def test_types(dtype: torch.dtype) -> None:
    found = in_both(index_put if dtype is torch.bool else index_add, lambda: [cache(dtype)], [(t([3]), K.to(dtype))])
    assert not written_whole(found[0])


def test_conversion() -> None:
    found = in_both(slice_copy, lambda: [cache(torch.float16)], [(i, K) for i in (3, 4, 5)])
    assert not written_whole(found[1])


LAYOUTS: dict[str, Callable[[], torch.Tensor]] = {
    "permuted": lambda: cache().transpose(1, 2).contiguous().transpose(1, 2),
    "a part of a larger one": lambda: torch.stack([cache(), cache()])[1],
    "aligned to nothing": lambda: torch.empty(cache().numel() + 1)[1:].view(cache().shape).copy_(cache()),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("form", [index_copy, read_after, in_view])
def test_layouts(form: Any, layout: str) -> None:
    (found,) = in_both(form, lambda: [LAYOUTS[layout]()], [(t([3]), K), (t([7]), K)])
    assert not written_whole(found)


def test_gaps() -> None:
    in_both(index_copy, lambda: [torch.zeros(BATCH, HEADS, LENGTH, 2 * WIDTH)[..., :WIDTH]], [(t([3]), K), (t([7]), K)])


def set_elements(c: torch.Tensor, i: torch.Tensor, v: torch.Tensor) -> None:
    c[i] = v


def double(c: torch.Tensor, i: torch.Tensor, v: torch.Tensor) -> None:
    c.mul_(2)


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("step", [set_elements, double])
def test_large_arguments(step: Any, offset: int) -> None:
    """Beyond the caches results need memory that is aligned, which a part of a tensor may not be."""
    size = 7 << 20

    (found,) = in_both(step, lambda: [torch.ones(size + 1)[offset : size + offset]], [(t([3, 5]), t([1.0, 2.0]))])
    assert not [n for n in found.partition.reasons if n not in found.assigned]


def test_views_of_what_is_in_an_arguments_memory() -> None:
    """PyTorch reads a part of the new value, which begins where the argument does in its storage."""

    def step(c: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        c.mul_(v)
        return torch.histc(c[2:4], 4)

    in_both(step, lambda: [torch.stack([table() * 0, table()])[1]], [(t(1.5),)])


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_modes(mode: Any) -> None:
    with mode():
        (found,) = in_both(index_copy, lambda: [cache()], [(t([3]), K), (t([7]), K)])
    assert not written_whole(found)


class Attention(nn.Module):
    """With the caches of model libraries: buffers of all positions, which a step writes to, and reads under a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(HEADS * WIDTH, 3 * HEADS * WIDTH)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(BATCH, HEADS, LENGTH, WIDTH))

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        q, k, v = self.project(x).view(BATCH, -1, 3, HEADS, WIDTH).permute(2, 0, 3, 1, 4)
        self.keys.index_copy_(2, position, k)
        self.values.index_copy_(2, position, v)
        mask = torch.arange(LENGTH) <= position[:, None]
        seen = nn.functional.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=mask)
        return seen.transpose(1, 2).reshape(x.shape)


def test_decoding() -> None:
    """A prompt, and tokens one by one."""
    torch.manual_seed(0)
    model, fast_model = Attention(), Attention()
    fast_model.load_state_dict(model.state_dict())
    writers: list[Any] = []
    fast = torch.compile(fast_model, backend=make_backend(lambda stage, module, writer: writers.append(writer)))
    with torch.no_grad():
        for position in (torch.arange(5), t([5]), t([6]), t([7])):
            x = torch.randn(BATCH, len(position), HEADS * WIDTH)
            torch.testing.assert_close(fast(x, position), model(x, position), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(dict(fast_model.named_buffers()), dict(model.named_buffers()))
    assert 2 <= len(writers) <= 3 and not any(written_whole(w) for w in programs(writers))
