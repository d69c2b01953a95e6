"""Sizes that vary under ``torch.compile``: values and strides beside eager mode's in an order that is not sorted, and how many programs there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from hologram_torch.compile.backend import make_backend
from hologram_torch.compile.program_writer import ProgramWriter
from hologram_torch.compile.symbolic_sizes import SymbolicSizes

pytestmark = pytest.mark.costly(2)

SIZES = (5, 7, 2, 33, 1, 9, 3, 70, 16)
R = torch.randn


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def compiled(f: Any, **options: Any) -> tuple[Any, list[ProgramWriter]]:
    """The compiled function, and the programs that are made for it."""
    found: list[ProgramWriter] = []
    return torch.compile(f, backend=make_backend(lambda stage, module, writer: found.append(writer)), **options), found


def in_symbols(programs: Sequence[ProgramWriter]) -> list[ProgramWriter]:
    return [p for p in programs if isinstance(p.partition.sizes, SymbolicSizes)]


def by_torch(program: ProgramWriter) -> set[str]:
    return {str(n.target) for n in program.partition.reasons if n not in program.assigned}


def assert_alike(found: Any, expected: Any) -> None:
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert_alike(a, b)
    else:
        assert found.dtype == expected.dtype and found.stride() == expected.stride()
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def run_all(f: Any, arguments: Callable[[int], tuple[torch.Tensor, ...]], sizes: Sequence[int] = SIZES, **options: Any) -> list[ProgramWriter]:
    """Compares results, and arguments after the call, with eager mode's. Gives the programs."""
    fast, programs = compiled(f, **options)
    with torch.no_grad():
        for n in sizes:
            given = arguments(n)
            copies = [x.clone() for x in given]
            assert_alike(fast(*given), f(*copies))
            assert_alike(given, copies)
    return programs


EMBEDDING, LINEAR, NORM = nn.Embedding(20, 8), nn.Linear(8, 6), nn.LayerNorm(8)

# a function, its arguments for a size, and the ops that PyTorch computes of it in programs with symbolic sizes
SDPA = "aten.scaled_dot_product_attention.default"
CASES: dict[str, tuple[Any, Any, set[str]]] = {
    "views": (lambda x: (x.transpose(0, 1).reshape(-1).exp(), x[1:] + 1, x[:-1] * 2, x[-2:].sin(), x[..., ::2] + 0), lambda n: (R(n + 1, 8),), set()),
    "lengths": (lambda x, m: x[:, : m.shape[0]] * m, lambda n: (R(3, 2 * n + 1), R(n)), set()),
    "joined": (lambda x, y: (torch.cat([x, y, x]), torch.stack([x, x], 1).sum(0), F.pad(x, (1, 2, 3, 0))), lambda n: (R(n, 8), R(n + 3, 8)), set()),
    "rows": (lambda x: NORM(x) + F.softmax(x, 0) + x.var(0, correction=0) + x.cumsum(0), lambda n: (R(n, 8),), set()),
    "products": (lambda x: F.gelu(LINEAR(x)), lambda n: (R(n, 8),), set()),
    "loss": (lambda x, t: F.cross_entropy(x, t), lambda n: (R(n, 8), torch.arange(n) % 8), set()),
    "gathers": (lambda x, i: (x.gather(0, i), x[i[:, 0]], EMBEDDING(i % 20)), lambda n: (R(n, 8), torch.randint(0, n, (n, 8))), set()),
    "scatters": (lambda x, i: (x.scatter_add(0, i, x), x.index_add(0, i[:, 0], x)), lambda n: (R(n, 8), torch.randint(0, n, (n, 8))), set()),
    "masks": (lambda x: (x.masked_fill(x > 0, 0.0), torch.where(torch.arange(len(x))[:, None] < 3, x, 0.0)), lambda n: (R(n, 8),), set()),
    "sorted": (lambda x: (x.sort(0).values, x.argsort(1), x.max(0).values), lambda n: (R(n, 8),), set()),
    "sizes as numbers": (lambda x, i: (x * x.shape[0] + x.numel() / 3.5, i // i.shape[0]), lambda n: (R(n, 8), torch.arange(n)), set()),
    "caches": (lambda k, q: (c := torch.cat([k, q], 2)) + F.scaled_dot_product_attention(q, c, c), lambda n: (R(1, 2, n, 4), R(1, 2, 1, 4)), {SDPA}),
    "attention": (lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True).exp(), lambda n: (R(1, 2, n, 8),), {SDPA}),
    "sums over sizes": (lambda x: (x @ x.T, x.T @ x), lambda n: (R(n, 8),), {"aten.mm.default"}),
    "in place": (lambda x: x[1:].mul_(2).sum() + x.add_(1).sum(), lambda n: (R(n + 1, 8),), {"aten.copy_.default"}),
}  # fmt: skip


@pytest.mark.costly(2)
@pytest.mark.parametrize("name", CASES)
def test_one_program_serves_all_sizes(name: str) -> None:
    f, arguments, expected = CASES[name]
    programs = run_all(f, arguments, dynamic=True)
    assert in_symbols(programs)[0].partition.sizes and by_torch(in_symbols(programs)[0]) <= expected
    assert len(programs) <= 4


@settings(max_examples=3)
@given(st.lists(st.tuples(st.integers(2, 40), st.integers(2, 40)), min_size=3, max_size=6))
def test_two_sizes_that_become_equal_and_different(sizes: list[tuple[int, int]]) -> None:
    torch._dynamo.reset()
    fast, programs = compiled(f := lambda x, y: (x @ LINEAR.weight.T + y.sum(0)[:6], y * x.shape[0], x.sum(1)), dynamic=True)
    with torch.no_grad():
        for n, m in sizes:
            x, y = R(n, 8), R(m, 8)
            assert_alike(fast(x, y), f(x, y))
    large = [(n, m) for n, m in sizes if n > 1 and m > 1]
    assert len(in_symbols(programs)) <= len({n == m for n, m in large}) + len({(n, m) for n, m in sizes if (n, m) not in large})


def test_every_second_size_is_automatically_symbolic() -> None:
    programs = run_all(lambda x: F.relu(LINEAR(x)), lambda n: (R(n, 8),), sizes=(5, 9, 6, 30, 7, 2))
    assert len(programs) == 2 and len(in_symbols(programs)) == 1


def test_marked_axes() -> None:
    fast, programs = compiled(f := lambda x: x.softmax(0) * 2)
    for n in (4, 9, 3):
        x = R(n, 6)
        torch._dynamo.mark_dynamic(x, 0)
        assert_alike(fast(x), f(x))
    assert len(programs) == 1


def test_a_cache_that_grows_has_one_program() -> None:
    """Each layer's axes are symbols of their own for Dynamo; that they are equal is found in the call."""

    def step(x: torch.Tensor, *caches: torch.Tensor) -> tuple[torch.Tensor, ...]:
        grown = [torch.cat([c, x], 2) for c in caches]
        for c in grown:
            x = F.scaled_dot_product_attention(x, c, c)
        return (x, *grown)

    fast, programs = compiled(step)
    caches, made = [R(1, 2, 3, 4) for _ in range(3)], []
    with torch.no_grad():
        for _ in range(12):
            x = R(1, 2, 1, 4)
            expected = step(x, *caches)
            _, *caches = found = fast(x, *caches)
            assert_alike(found, expected)
            made.append(len(programs))
    assert made[-1] == made[2] <= 3 and not by_torch(programs[-1])


@pytest.mark.costly(3)
@pytest.mark.parametrize("build", [
    lambda: (nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4)), lambda n: R(n, 8)),
    lambda: (nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), lambda n: R(2, n, 8)),
    lambda: (nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 4)), lambda n: torch.randint(0, 20, (2, n))),
    lambda: (nn.Sequential(nn.Conv1d(8, 8, 3, padding=1), nn.ReLU(), nn.BatchNorm1d(8)), lambda n: R(2, 8, n)),
], ids=["mlp", "encoder", "embedding", "convolution"])  # fmt: skip
def test_training(build: Any) -> None:
    model, argument = build()
    model.double()  # the gradients of normalised values are small differences
    fast, programs = compiled(model, dynamic=True)
    for n in SIZES:
        x = argument(n).double() if not isinstance(model[0] if isinstance(model, nn.Sequential) else model, nn.Embedding) else argument(n)
        gradients = []
        for f in (fast, model):
            model.zero_grad()
            f(x).square().sum().backward()
            gradients.append([p.grad.clone() for p in model.parameters()])  # type: ignore[union-attr]
        assert_alike(*gradients)
    assert len(in_symbols(programs)) >= 2 and len(programs) <= 4


def test_dropout_draws_what_eager_mode_draws() -> None:
    f = lambda x: F.dropout(x.exp(), 0.5)  # noqa: E731
    fast, programs = compiled(f, dynamic=True)
    for n in (6, 9, 2, 40):
        x = R(n, 8)
        torch.manual_seed(n)
        found = fast(x)
        torch.manual_seed(n)
        torch.testing.assert_close(found, f(x))
    assert len(programs) == 1


def test_freezing() -> None:
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()
    fast = torch.compile(model, backend="hologram", dynamic=True, options={"freeze": True})
    with torch.no_grad():
        for n in SIZES:
            x = R(n, 8)
            torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)


# --- sizes that depend on values -----------------------------------------------------------------------------------------


@pytest.fixture
def captured() -> Iterator[None]:
    """Dynamo captures sizes that depend on values, and does not break the graph there."""
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        yield


def _chosen(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    z = torch.exp(x) * 2
    chosen = z[torch.nonzero(z.sum(1) > 14)[:, 0]]
    return torch.relu(chosen) + 1, y.sin().sum(), chosen.sum(0)


def _prefix(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    n = int(y.sum().item())
    torch._check(n >= 0)
    torch._check(n <= x.shape[0])
    return torch.exp(x)[:n] * 2 + n, torch.arange(n)


def _distinct(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    found = torch.unique(x.round())
    return found * 2 + found.shape[0], x + y.sum()


@pytest.mark.usefixtures("captured")
@pytest.mark.parametrize(("f", "arguments", "cut"), [
    (_chosen, lambda n: (R(6, 4), R(3)), "aten.nonzero.default"),
    (_prefix, lambda n: (R(40, 4), torch.tensor([n % 40, 0])), "aten._local_scalar_dense.default"),
    (_distinct, lambda n: (R(10) * 2, R(3)), "aten._unique2.default"),
])  # fmt: skip
def test_the_graph_is_cut_at_sizes_that_depend_on_values(f: Any, arguments: Any, cut: str) -> None:
    programs = run_all(f, arguments, (*SIZES, 0), fullgraph=True)
    assert by_torch(programs[0]) - {"<built-in function getitem>"} == {cut} and programs[0].executables
    assert len(in_symbols(programs)) == 1 and in_symbols(programs)[0].executables
    assert all(by_torch(p) <= {"aten._assert_scalar.default", "<built-in function ge>", "<built-in function le>"} for p in programs[1:])


@pytest.mark.usefixtures("captured")
def test_assignments_and_random_numbers_keep_their_order_around_a_cut() -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        first = F.dropout(x, 0.5)
        kept = x[torch.nonzero(first.sum(1) > 0)[:, 0]]
        x.add_(1)
        return kept * 2, F.dropout(kept, 0.5), F.dropout(x, 0.5)

    fast, _ = compiled(f, fullgraph=True)
    for n in (8, 8, 8):
        x = R(n, 4)
        same = x.clone()
        torch.manual_seed(n)
        found = fast(x)
        torch.manual_seed(n)
        assert_alike(found, f(same))
        assert torch.equal(x, same)


def _changed_twice(x: torch.Tensor) -> Any:
    y = x.clone()
    w = y.view(2, 10).unsqueeze(0)[..., ::3]
    w.zero_()
    y.view(2, 10).add_(1)
    return y, w


def _view_of_a_view(x: torch.Tensor) -> Any:
    y = (x * 2).view(2, 10)
    z = y + 1
    return z.view(4, 5)[1:].t(), z.view(5, 4)[:, ::2], y[:, 1:]


@pytest.mark.parametrize("f", [_changed_twice, _view_of_a_view])
def test_views_are_made_of_tensors_that_are_stored(f: Callable[[torch.Tensor], Any]) -> None:
    """PyTorch makes the views whose sizes are known numbers, so that programs are cut there: what is before the cut may be stored as a view alone."""
    x = torch.randn(4, 5)
    torch._dynamo.reset()
    for found, wanted in zip(torch.compile(f, backend="hologram", dynamic=True)(x), f(x), strict=True):
        torch.testing.assert_close(found, wanted)


VIEWS_OF_ARGUMENTS: dict[str, tuple[Callable[[torch.Tensor], Any], torch.dtype]] = {
    "parts of complex numbers": (lambda x: torch.dsplit(x, [1, 3]), torch.complex64),
    "a row of complex numbers": (lambda x: x[x.shape[0] - 2], torch.complex64),
    "conjugates": (lambda x: x.conj()[x.shape[0] - 2], torch.complex64),
    "pairs of floats": (lambda x: torch.view_as_real(x)[x.shape[0] - 2], torch.complex64),
    "imaginary parts": (lambda x: x.imag[x.shape[0] - 2], torch.complex64),
    "negatives": (lambda x: torch._neg_view(x)[x.shape[0] - 2], torch.float32),
    "pairs as complex numbers": (lambda x: torch.view_as_complex(x.unflatten(2, (-1, 2)))[x.shape[0] - 2], torch.float32),
}


@pytest.mark.parametrize("name", VIEWS_OF_ARGUMENTS)
def test_views_of_arguments_begin_where_eager_modes_do(name: str) -> None:
    f, dtype = VIEWS_OF_ARGUMENTS[name]
    x = R(9, 7, 6, dtype=dtype)[2:]
    found, wanted = (y if isinstance(y, tuple) else (y,) for y in (torch.compile(f, backend="hologram", dynamic=True)(x), f(x)))
    for a, b in zip(found, wanted, strict=True):
        assert (a.data_ptr(), a.stride(), a.is_conj(), a.is_neg()) == (b.data_ptr(), b.stride(), b.is_conj(), b.is_neg())
        assert torch.equal(a.resolve_conj().resolve_neg(), b.resolve_conj().resolve_neg())


def test_a_view_of_a_result_of_another_type_shares_its_memory() -> None:
    def f(x: torch.Tensor) -> Any:
        y = x * 2
        return y, torch.view_as_real(y)[x.shape[0] - 2]

    y, part = torch.compile(f, backend="hologram", dynamic=True)(R(5, 3, dtype=torch.complex64))
    assert part.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
    assert torch.equal(part, torch.view_as_real(y)[3])


@pytest.mark.parametrize("rows", [2, 5])
def test_sizes_are_those_of_shapes_where_tangents_have_other_strides(rows: int) -> None:
    def f(x: torch.Tensor) -> list[torch.Tensor]:
        return [x.t(), x.t().clone()]

    x = R(1, rows, requires_grad=True)
    fast, _ = compiled(f, dynamic=True)
    tangents = [R(rows, 1), R(rows, 1)]  # strides (1, 1), where the graph has (1, rows)
    torch.testing.assert_close(torch.autograd.grad(fast(x), x, tangents), torch.autograd.grad(f(x), x, tangents))
