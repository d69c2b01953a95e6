"""Formulas of SymPy as functions of Tensors."""

from __future__ import annotations

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from tests.support.runner.libraries import library

sympy = library("sympy")
x, y = sympy.symbols("x y")
A, B = np.random.default_rng(0).normal(size=(2, 20))
FORMULAS = {
    "elementary": sympy.sin(x) * sympy.exp(-(y**2)) + sympy.log(1 + x**2) ** 3 + sympy.atan2(y, x) + sympy.sqrt(y**2 + 1) + sympy.tanh(x) / 3,
    "pieces": sympy.Piecewise((x, x > 0), (y**2, y > 1), (0, True)) + sympy.Max(x, y) - sympy.Min(x, 2 * y) + sympy.Abs(x) * sympy.sign(y),
    "rounding": sympy.floor(x) + sympy.ceiling(y) + sympy.Mod(x, 1) + sympy.Heaviside(x, 0.5),
    "polynomial": sympy.expand((x + 2 * y) ** 6) + sympy.horner(x**5 - 3 * x**2 + 1),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas(name: str) -> None:
    wanted = sympy.lambdify((x, y), FORMULAS[name], "numpy")(A, B)
    for modules in ("numpy", [hnp, "numpy"]):
        f = sympy.lambdify((x, y), FORMULAS[name], modules)
        for found in (f(hg.tensor(A), hg.tensor(B)), hg.jit(f)(A, B)):
            assert type(found) is hg.Tensor
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_derivatives() -> None:
    for by in (x, y):
        wanted = sympy.lambdify((x, y), FORMULAS["elementary"].diff(by), "numpy")(A, B)
        f = sympy.lambdify((x, y), FORMULAS["elementary"], [hnp, "numpy"])
        np.testing.assert_allclose(hg.vmap(hg.grad(f, 0 if by is x else 1))(A, B), wanted, rtol=1e-10)


def test_matrices_and_systems() -> None:
    matrix = sympy.Matrix([[sympy.cos(x), -sympy.sin(x)], [y, 1]])
    f = sympy.lambdify((x, y), matrix, [hnp, "numpy"])
    want = sympy.lambdify((x, y), matrix, "numpy")(0.3, 2.0)
    np.testing.assert_allclose(hg.jit(f)(np.float64(0.3), np.float64(2.0)), want, rtol=1e-14)
    several = hg.jit(sympy.lambdify((x, y), [x**2 + y, sympy.sin(x**2 + y)], [hnp, "numpy"], cse=True))(A, B)
    np.testing.assert_allclose(several[1], np.sin(A**2 + B), rtol=1e-12)


def test_special_functions() -> None:
    library("scipy")
    formula = sympy.erf(x) + sympy.gamma(y**2 + 1) + sympy.loggamma(y**2 + 1)
    wanted = sympy.lambdify((x, y), formula, "scipy")(A, B)
    for modules in ([hnp, hg.special, "scipy"], "scipy"):
        found = hg.jit(sympy.lambdify((x, y), formula, modules))(A, B)
        np.testing.assert_allclose(found, wanted, rtol=1e-10)
