"""SciPy's optimisers, root finders, integrators and iterative solvers on jitted functions and their derivatives."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp

pytest.importorskip("scipy", minversion="1.15", reason="SciPy from 1.15 on is not installed: pip install hologram-compute[clients]")
so, si, sl = (importlib.import_module(f"scipy.{part}") for part in ("optimize", "integrate", "sparse.linalg"))

Jit = Callable[[Callable[..., Any]], Any]
CASES: dict[str, tuple[Callable[[Jit], Any], Any]] = {}  # what is computed with functions that are jitted so, and what comes out
WRITERS = {"tanhsinh", "nsum", "gmres", "fixed_point"}  # which write into what a function gives, or call its methods in NumPy's way: output="numpy"
X0 = np.array([1.3, 0.7, 0.8, 1.1])
TIMES = np.linspace(0.0, 3.0, 20)
DATA = 2.5 * np.exp(-1.3 * TIMES) + 0.5
A = np.diag(np.arange(1.0, 9.0)) + 0.1
ONES = np.ones(4)


def rosenbrock(x: Any) -> Any:
    return hnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def hessian_product(x: Any, p: Any) -> Any:
    return hg.jvp(hg.grad(rosenbrock), (x,), (hnp.astype(p, x.dtype),))[1]


def residuals(p: Any) -> Any:
    return p[0] * hnp.exp(-p[1] * TIMES) + p[2] - DATA


def decay(t: Any, a: Any, b: Any, c: Any) -> Any:
    return a * hnp.exp(-b * t) + c


def decay_slopes(t: Any, a: Any, b: Any, c: Any) -> Any:
    return hg.jacfwd(lambda p: decay(t, p[0], p[1], p[2]))(hnp.stack([a, b, c]))


def pair(x: Any) -> Any:
    return hnp.stack([0.3 * hnp.cos(x[1]) - x[0], 0.3 * hnp.sin(x[0]) - x[1]])


def cubic(x: Any) -> Any:
    return x**3 - x - 2.0


def oscillator(t: Any, y: Any) -> Any:
    return hnp.stack([y[1], 2 * (1 - y[0] ** 2) * y[1] - y[0]])


def oscillator_slopes(t: Any, y: Any) -> Any:
    return hg.jacfwd(lambda y: oscillator(t, y))(y)


def case(name: str, want: Any) -> Callable[[Any], Any]:
    def add(run: Any) -> Any:
        CASES[name] = run, want
        return run

    return add


GRADIENTS = ("CG", "BFGS", "Newton-CG", "L-BFGS-B", "TNC", "SLSQP", "trust-constr", "dogleg", "trust-ncg", "trust-exact", "trust-krylov")
HESSIANS = ("Newton-CG", "trust-constr", "dogleg", "trust-ncg", "trust-exact", "trust-krylov")
LOOSE = {"TNC": 1e-2, "Powell": 1e-2, "Nelder-Mead": 1e-2}


def _minimize(method: str, how: str) -> Callable[[Jit], Any]:
    def run(jit: Jit) -> Any:
        options: dict[str, Any] = {"jac": jit(hg.grad(rosenbrock))} if method in GRADIENTS else {}
        if how == "hess":
            options["hess"] = jit(hg.hessian(rosenbrock))
        if how == "hessp":
            options["hessp"] = jit(hessian_product)
        if how == "jac=True":
            return so.minimize(jit(hg.value_and_grad(rosenbrock)), X0, method=method, jac=True).x
        start = X0 if method != "dogleg" else ONES + 0.001  # where the Hessian is positive definite
        return so.minimize(jit(rosenbrock), start, method=method, **options).x

    return run


for _method in ("Nelder-Mead", "Powell", "COBYQA", *GRADIENTS):
    case(f"minimize {_method}", ONES)(_minimize(_method, "hess" if _method in HESSIANS else ""))
for _method in ("BFGS", "L-BFGS-B", "TNC", "SLSQP"):
    case(f"minimize {_method} with jac=True", ONES)(_minimize(_method, "jac=True"))
for _method in ("Newton-CG", "trust-constr", "trust-ncg", "trust-krylov"):
    case(f"minimize {_method} with hessp", ONES)(_minimize(_method, "hessp"))


@case("fmin_l_bfgs_b", ONES)
def _fmin(jit: Jit) -> Any:
    return so.fmin_l_bfgs_b(jit(hg.value_and_grad(rosenbrock)), X0)[0]


@case("basinhopping", ONES)
def _basins(jit: Jit) -> Any:
    return so.basinhopping(jit(rosenbrock), X0, niter=2, minimizer_kwargs={"method": "L-BFGS-B", "jac": jit(hg.grad(rosenbrock))}).x


def _constrained(method: str) -> Callable[[Jit], Any]:
    def bounded(x: Any) -> Any:
        return hnp.stack([x[0] + x[1], x[2] * x[3]])

    def run(jit: Jit) -> Any:
        curvature = jit(lambda x, v: hg.hessian(lambda x: hnp.dot(hnp.astype(hnp.asarray(v), x.dtype), bounded(x)))(x))
        options = {"hess": curvature} if method == "trust-constr" else {}
        limits = so.NonlinearConstraint(jit(bounded), [1.0, 0.1], [1.0, 0.1], jac=jit(hg.jacrev(bounded)), **options)
        found = so.minimize(jit(rosenbrock), X0, method=method, jac=jit(hg.grad(rosenbrock)), constraints=limits)
        return bounded(found.x)

    return run


for _method in ("SLSQP", "trust-constr"):
    case(f"constraints {_method}", [1.0, 0.1])(_constrained(_method))


def _fit(method: str, losses: str) -> Callable[[Jit], Any]:
    return lambda jit: so.least_squares(jit(residuals), np.ones(3), jac=jit(hg.jacfwd(residuals)), method=method, loss=losses).x


def _curve(method: str) -> Callable[[Jit], Any]:
    return lambda jit: so.curve_fit(jit(decay), TIMES, DATA, p0=np.ones(3), jac=jit(decay_slopes), method=method)[0]


for _method in ("trf", "dogbox", "lm"):
    case(f"least_squares {_method}", [2.5, 1.3, 0.5])(_fit(_method, "linear"))
    case(f"curve_fit {_method}", [2.5, 1.3, 0.5])(_curve(_method))
case("least_squares with a loss", [2.5, 1.3, 0.5])(_fit("trf", "soft_l1"))
case("leastsq", [2.5, 1.3, 0.5])(lambda jit: so.leastsq(jit(residuals), np.ones(3), Dfun=jit(hg.jacfwd(residuals)))[0])

ROOT = np.array([0.2993, 0.08846])
for _method in ("hybr", "lm", "broyden1", "broyden2", "anderson", "linearmixing", "diagbroyden", "excitingmixing", "krylov", "df-sane"):

    def _root(jit: Jit, method: str = _method) -> Any:
        slopes = {"jac": jit(hg.jacfwd(pair))} if method in ("hybr", "lm") else {}
        return so.root(jit(pair), np.array([0.5, 0.3]), method=method, **slopes).x

    case(f"root {_method}", ROOT)(_root)
case("fsolve", ROOT)(lambda jit: so.fsolve(jit(pair), [0.5, 0.3], fprime=jit(hg.jacfwd(pair))))
case("fixed_point", ROOT)(lambda jit: so.fixed_point(jit(lambda x: pair(x) + x), np.array([0.5, 0.3])))

for _method in ("bisect", "brentq", "brenth", "ridder", "toms748", "newton", "secant", "halley"):

    def _scalar_root(jit: Jit, method: str = _method) -> Any:
        options: dict[str, Any] = {"x0": 1.5} if method in ("newton", "secant", "halley") else {"bracket": (1, 2)}
        if method in ("newton", "halley"):
            options["fprime"] = jit(hg.grad(cubic))
        if method == "halley":
            options["fprime2"] = jit(hg.grad(hg.grad(cubic)))
        return so.root_scalar(jit(cubic), method=method, **options).root

    case(f"root_scalar {_method}", 1.5213797)(_scalar_root)
case("newton of arrays", [1.5213797] * 2)(lambda jit: so.newton(jit(cubic), np.array([1.5, 1.2]), fprime=jit(hg.vmap(hg.grad(cubic)))))
for _method in ("brent", "bounded", "golden"):

    def _scalar(jit: Jit, method: str = _method) -> Any:
        return so.minimize_scalar(jit(lambda x: (x - 2.0) ** 2), bounds=(-5, 5) if method == "bounded" else None, method=method).x

    case(f"minimize_scalar {_method}", 2.0)(_scalar)


def _square(x: Any) -> Any:
    return hnp.sum((x - 1.0) ** 2, axis=0)


case("differential_evolution", [1.0, 1.0])(
    lambda jit: so.differential_evolution(jit(_square), [(-2, 2)] * 2, vectorized=True, updating="deferred", rng=0).x
)
case("minimize COBYLA", [1.0, 1.0])(lambda jit: so.minimize(jit(_square), [0.5, 0.3], method="COBYLA", tol=1e-6).x)
case("shgo", [1.0, 1.0])(lambda jit: so.shgo(jit(_square), [(-2, 3)] * 2, n=30).x)
case("dual_annealing", [1.0, 1.0])(lambda jit: so.dual_annealing(jit(_square), [(-2, 2)] * 2, maxiter=20, rng=0).x)
case("direct", [1.0, 1.0])(lambda jit: so.direct(jit(_square), [(-2, 2)] * 2).x)
case("brute", [1.0, 1.0])(lambda jit: so.brute(jit(_square), [(-2, 2)] * 2, Ns=5))
case("check_grad", 0.0)(lambda jit: so.check_grad(jit(rosenbrock), jit(hg.grad(rosenbrock)), X0))

BELL = 0.7468241328


def bell(x: Any) -> Any:
    return hnp.exp(-x * x)


case("quad", BELL)(lambda jit: si.quad(jit(bell), 0, 1)[0])
case("complex quad", np.sin(1.0) + 1j * (1 - np.cos(1.0)))(lambda jit: si.quad(jit(lambda x: hnp.exp(1j * x)), 0, 1, complex_func=True)[0])
case("dblquad", 0.125)(lambda jit: si.dblquad(jit(lambda y, x: x * y), 0, 1, jit(lambda x: 0.0 * x), jit(lambda x: 1.0 * x))[0])
case("quad_vec", [0.0, 0.5, 1.0])(lambda jit: si.quad_vec(jit(lambda x: x * hnp.arange(3.0)), 0, 1)[0])
case("fixed_quad", BELL)(lambda jit: si.fixed_quad(jit(bell), 0, 1, n=9)[0])
case("cubature", 1.0)(lambda jit: si.cubature(jit(lambda x: hnp.sum(x, axis=1)), [0, 0], [1, 1]).estimate)
case("tanhsinh", BELL)(lambda jit: si.tanhsinh(jit(bell), 0, 1).integral)
case("nsum", np.pi**2 / 6)(lambda jit: si.nsum(jit(lambda k: 1 / k**2), 1, np.inf).sum)
case("trapezoid of Tensors", 1.5)(lambda jit: si.trapezoid(jit(lambda x: x)(np.arange(4.0)), x=hg.tensor(np.arange(4.0))) / 3)

LATE = np.array([-0.39, 2.0])
for _method in ("RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA"):

    def _ivp(jit: Jit, method: str = _method) -> Any:
        slopes = {"jac": jit(oscillator_slopes)} if method in ("Radau", "BDF", "LSODA") else {}
        event = jit(lambda t, y: y[0] - 1.0)
        options: dict[str, Any] = {"rtol": 1e-6, "atol": 1e-8, "events": event, "dense_output": True} | slopes
        found = si.solve_ivp(jit(oscillator), (0, 3), np.array([2.0, 0.0]), method=method, **options)
        return [*found.y[:, -1], *found.t_events[0]]

    case(f"solve_ivp {_method}", "SciPy's own on NumPy's functions")(_ivp)


@case("odeint", np.exp(-1.0))
def _odeint(jit: Jit) -> Any:
    return si.odeint(jit(lambda y, t: -y), [1.0], [0.0, 1.0], Dfun=jit(lambda y, t: -hnp.eye(1)))[-1]


for _method in ("vode", "lsoda", "dopri5", "dop853"):

    def _ode(jit: Jit, method: str = _method) -> Any:
        return si.ode(jit(lambda t, y: -y), jit(lambda t, y: -hnp.eye(1))).set_integrator(method).set_initial_value([1.0], 0).integrate(1.0)

    case(f"ode {_method}", np.exp(-1.0))(_ode)


@case("solve_bvp", 0.1405)
def _bvp(jit: Jit) -> Any:
    slopes = jit(lambda x, y: hnp.stack([hnp.stack([0 * x, 0 * x + 1]), hnp.stack([-hnp.exp(y[0]), 0 * x])]))
    ends = jit(lambda a, b: hnp.stack([a[0], b[0]]))
    nodes = np.linspace(0, 1, 5)
    return si.solve_bvp(jit(lambda x, y: hnp.stack([y[1], -hnp.exp(y[0])])), ends, nodes, np.zeros((2, 5)), fun_jac=slopes).y[0, 2]


for _method in ("cg", "gmres", "bicgstab", "minres", "lgmres"):

    def _solve(jit: Jit, method: str = _method) -> Any:
        return A @ getattr(sl, method)(sl.LinearOperator((8, 8), matvec=jit(lambda v: hnp.matmul(A, v)), dtype=float), np.ones(8), rtol=1e-10)[0]

    case(_method, np.ones(8))(_solve)
case("eigsh", np.linalg.eigvalsh(A)[-2:])(
    lambda jit: np.sort(sl.eigsh(sl.LinearOperator((8, 8), matvec=jit(lambda v: hnp.matmul(A, v)), dtype=float), k=2)[0])
)


def _reference(method: str) -> Any:
    """What SciPy computes with NumPy's functions, without Hologram."""

    def f(t: Any, y: Any) -> list[Any]:
        return [y[1], 2 * (1 - y[0] ** 2) * y[1] - y[0]]

    found = si.solve_ivp(f, (0, 3), [2.0, 0.0], method=method, rtol=1e-6, atol=1e-8, events=lambda t, y: y[0] - 1.0, dense_output=True)
    return [*found.y[:, -1], *found.t_events[0]]


OUTPUTS: dict[str, Jit] = {"tensor": hg.jit, "numpy": hg.jit(output="numpy")}


@pytest.mark.crossed
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:delta_grad == 0.0", "ignore:Singular Jacobian", "ignore:Method .* does not use")
def test_jitted_functions(name: str, output: str) -> None:
    run, want = CASES[name]
    jit = OUTPUTS["numpy" if name in WRITERS else output]
    got = run(jit)
    wanted = _reference(name.split()[-1]) if isinstance(want, str) else want
    loose = next((tolerance for method, tolerance in LOOSE.items() if method in name), 1e-3)
    np.testing.assert_allclose(got, wanted, rtol=loose, atol=min(loose, 1e-3))


def test_bounds_starts_and_data_may_be_tensors() -> None:
    bounds = so.Bounds(hg.tensor(-2 * ONES), hg.tensor(2 * ONES))
    found = so.minimize(hg.jit(rosenbrock), hg.tensor(X0), jac=hg.jit(hg.grad(rosenbrock)), method="L-BFGS-B", bounds=bounds)
    np.testing.assert_allclose(found.x, ONES, atol=1e-3)
    shifted = hg.jit(hg.value_and_grad(lambda x, a: hnp.sum((x - a) ** 2)))
    np.testing.assert_allclose(so.minimize(shifted, X0, args=(hg.tensor(ONES),), jac=True).x, ONES, atol=1e-6)
    np.testing.assert_allclose(so.curve_fit(hg.jit(decay), hg.tensor(TIMES), hg.tensor(DATA))[0], [2.5, 1.3, 0.5], rtol=1e-5)
    rows, columns = so.linear_sum_assignment(hg.tensor(-A))
    assert rows.tolist() == columns.tolist() == list(range(8))
    assert so.linprog(hg.tensor(np.ones(2)), A_ub=hg.tensor(-np.eye(2)), b_ub=hg.tensor(-np.ones(2))).fun == pytest.approx(2.0)
    np.testing.assert_allclose(so.lsq_linear(hg.tensor(A), hg.tensor(A.sum(1))).x, np.ones(8))
