"""torch.linalg, torch.fft and complex numbers through ``torch.compile(backend="hologram")``, forward and backward, beside eager mode. ``--all``
runs every function in every type, without it a seeded sample does."""

from __future__ import annotations

import random

import pytest
import torch
from torch import linalg
from torch._higher_order_ops.effects import _EffectType, _register_effectful_op

from hologram_torch.compile.backend import make_backend
from hologram_torch.compile.report import Explanation, recorder
from tests.support.torch.linalg_cases import CASES, matrices, run

SAMPLED = 20
TEST = "aten._linalg_check_errors.default"
BY_TORCH = {"eigh", "eigvalsh", "svd", "full svd", "svdvals"}  # whose vectors, or derivatives, have signs that a routine chooses


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        every = [(name, dtype) for name in CASES for dtype in (torch.float64, torch.complex128)]
        chosen = every if metafunc.config.getoption("--all") else random.Random(0).sample(every, SAMPLED)
        metafunc.parametrize("case", chosen, ids=[f"{name}-{dtype}" for name, dtype in chosen])


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()


def compiled(f, told: Explanation):
    return torch.compile(f, backend=make_backend(recorder(told)), dynamic=False)


@pytest.mark.costly(3)
def test_values_and_gradients_are_those_of_eager_mode(case: tuple[str, torch.dtype]) -> None:
    (name, dtype), told = case, Explanation()
    torch.testing.assert_close(run(compiled(CASES[name], told), matrices(dtype)), run(CASES[name], matrices(dtype)), rtol=1e-8, atol=1e-8)
    assert name in BY_TORCH or set(told.fallbacks) <= {TEST}, str(told)


def test_matrices_that_do_not_fit_raise() -> None:
    for f in (linalg.inv, linalg.cholesky, lambda a: linalg.solve(a, a)):
        with pytest.raises(linalg.LinAlgError, match="singular|positive-definite"):
            compiled(f, Explanation())(torch.tensor([[0.0, 2.0], [0.0, 4.0]]))


def test_singular_values_alone_are_hologram_s() -> None:
    told, a = Explanation(), torch.randn(4, 3, 5)
    torch.testing.assert_close(compiled(linalg.svdvals, told)(a), linalg.svdvals(a))
    assert not told.fallbacks


def test_determinants_of_matrices_in_any_order() -> None:
    for a in (matrices(torch.float64), matrices(torch.float64).mT):
        torch.testing.assert_close(run(compiled(linalg.det, Explanation()), a), run(linalg.det, a))


def test_lapack_runs_on_no_thread_of_torch(capfd) -> None:
    a = torch.randn(64, 48, 48) + 8 * torch.eye(48)  # a call that is long and parallel
    torch.testing.assert_close(compiled(lambda x: linalg.inv_ex(x)[0], Explanation())(a), linalg.inv(a), rtol=1e-3, atol=1e-4)
    assert "OpenMP" not in capfd.readouterr().err


def test_parts_of_conjugates() -> None:
    def f(x):
        negative = x.conj().imag
        return negative[1], negative * 2, torch.view_as_real(x.conj().resolve_conj()), torch.complex(x.real, -0.0 * x.imag)

    x = torch.randn(3, 4, dtype=torch.complex64)
    told = Explanation()
    torch.testing.assert_close(compiled(f, told)(x), f(x))
    assert not told.fallbacks


def test_saved_conjugates_of_conjugates() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return linalg.cholesky(x, upper=True)

    x = torch.zeros(2, 0, 0, dtype=torch.complex64, requires_grad=True)
    found = compiled(f, Explanation())(x)
    assert found.shape == f(x).shape
    torch.testing.assert_close(torch.autograd.grad(found, x, f(x).detach()), torch.autograd.grad(f(x), x, f(x).detach()))


def test_pseudoinverses_read_the_real_part_of_a_hermitian_diagonal() -> None:
    a = torch.randn(2, 4, 4, dtype=torch.complex128)

    def f(x: torch.Tensor) -> torch.Tensor:
        return linalg.pinv(x, hermitian=True)

    told = Explanation()
    torch.testing.assert_close(compiled(f, told)(a), f(a))
    assert not told.fallbacks


def test_matrices_whose_size_varies() -> None:
    torch._dynamo.reset()
    fast = torch.compile(linalg.inv, backend="hologram", dynamic=True)
    for n in (2, 3, 5):
        x = (torch.eye(n) + torch.ones(n, n)).requires_grad_()
        torch.testing.assert_close(fast(x), linalg.inv(x))
        torch.testing.assert_close(torch.autograd.grad(fast(x).sum(), x), torch.autograd.grad(linalg.inv(x).sum(), x))
        with pytest.raises(linalg.LinAlgError):
            fast(torch.zeros(n, n))


def test_effects_in_the_backward_pass_run_once() -> None:
    seen: list[float] = []

    @torch.library.custom_op("hologram_tests::note", mutates_args=())
    def note(x: torch.Tensor) -> torch.Tensor:
        seen.append(float(x.sum()))
        return x.clone()

    note.register_fake(torch.empty_like)
    note.register_autograd(lambda ctx, g: note(g))
    _register_effectful_op(torch.ops.hologram_tests.note.default, _EffectType.ORDERED)
    x = torch.ones(4, requires_grad=True)
    compiled(lambda x: note(x * 2) + 1, Explanation())(x).sum().backward()
    assert seen == [8.0, 4.0]
    assert x.grad is not None and x.grad.tolist() == [2.0] * 4
