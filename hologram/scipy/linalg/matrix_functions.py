"""Functions of matrices: exponential, square root, functions by the Schur form, and Sylvester's equation.

The exponential is Padé's approximant after scaling, squared back: N. Higham, *The scaling and squaring method for the matrix exponential revisited*,
2005. Functions of the Schur form follow B. Parlett, *A recurrence among the elements of functions of triangular matrices*, 1976.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import hologram.numpy as hnp
from hologram.control.branches import cond
from hologram.control.loops import fori_loop, scan
from hologram.errors import ShapeError, UnsupportedError
from hologram.linalg import systems
from hologram.linalg.factors import adjoint, alike, is_complex, square
from hologram.linalg.host import as_complex, in_scipy
from hologram.scipy.linalg.arguments import identity_like
from hologram.scipy.linalg.factorizations import solve_triangular
from hologram.support.user_lines import located
from hologram.trace.checks import as_function, choice, integer
from hologram.trace.tensor import Tensor
from hologram.transform.api import jvp
from hologram.transform.custom import custom_jvp

__all__ = ["expm", "expm_frechet", "funm", "hessenberg", "rsf2csf", "schur", "solve_sylvester", "sqrtm"]

# the degree of the approximant, and the largest norm at which it is as good as the type
_PADE = {4: (7, 3.925724783138660), 8: (13, 5.371920351148152)}


def _pade(degree: int) -> list[float]:
    """Coefficients of the numerator of the diagonal approximant of exp, from the lowest."""
    return [float(math.factorial(2 * degree - k) * math.comb(degree, k) // math.factorial(degree)) for k in range(degree + 1)]


def expm(A: Any, *, upper_triangular: bool = False, max_squarings: int = 16) -> Tensor:
    """Matrix exponential of matrices (…, n, n).

    A matrix whose 1-norm asks for more than ``max_squarings`` squarings, beyond about 4 times 2 to that power, gives NaNs. ``upper_triangular`` says
    that matrices are so. All derivatives are there. Raises ShapeError for matrices that are not square.

    >>> hg.scipy.linalg.expm([[0.0, 1.0], [0.0, 0.0]])
    Tensor([[1., 1.],
            [0., 1.]], dtype=float32)
    """
    a = square(A, "expm")
    limit = integer(max_squarings, "expm", "max_squarings")
    degree, bound = _PADE[a.dtype.itemsize // (2 if is_complex(a) else 1)]
    norm = hnp.max(hnp.sum(hnp.abs(a), axis=-2), axis=-1, initial=0.0)
    asked = hnp.ceil(hnp.log2(hnp.maximum(norm / bound, 1.0)))
    asked = hnp.where(hnp.isfinite(asked), asked, limit + 1.0)
    scaled = a * hnp.exp2(-hnp.minimum(asked, limit))[..., None, None].astype(a.dtype)
    out = _approximant(scaled, degree, upper_triangular)
    most = hnp.max(asked) if asked.size else hnp.asarray(0.0)

    def square_once(x: Tensor, i: Tensor) -> tuple[Tensor, None]:
        def squared(y: Tensor) -> Tensor:
            return hnp.where((i < asked)[..., None, None], hnp.matmul(y, y), y)

        return cond(i < most, squared, lambda y: y, x), None

    out = scan(square_once, out, hnp.arange(limit))[0]
    return hnp.where((asked > limit)[..., None, None], hnp.nan, out)


def _approximant(a: Tensor, degree: int, triangular: bool) -> Tensor:
    """``(v - u)⁻¹ (v + u)`` with the odd terms ``u`` and the even ones ``v``, by Horner's scheme in the square."""
    coefficients, second, unit = _pade(degree), hnp.matmul(a, a), identity_like(a)
    scale = coefficients[0]
    odd, even = unit * (coefficients[-1] / scale), unit * (coefficients[-2] / scale)
    for k in range(degree - 2, 0, -2):
        odd = hnp.matmul(odd, second) + unit * (coefficients[k] / scale)
        even = hnp.matmul(even, second) + unit * (coefficients[k - 1] / scale)
    u = hnp.matmul(a, odd)
    return solve_triangular(even - u, even + u) if triangular else systems.solve(even - u, even + u)


def expm_frechet(A: Any, E: Any, *, method: str | None = None, compute_expm: bool = True, check_finite: bool = True) -> Any:
    """Exponential of ``A`` (n, n) and its Fréchet derivative in the direction ``E``: ``(expm_A, derivative)``, or the derivative alone.

    ``method`` and ``check_finite`` are accepted and ignored. Raises ShapeError where the shapes differ.

    >>> hg.scipy.linalg.expm_frechet([[0.0, 0.0], [0.0, 0.0]], [[1.0, 2.0], [3.0, 4.0]], compute_expm=False)
    Tensor([[1., 2.],
            [3., 4.]], dtype=float32)
    """
    a, e = alike("expm_frechet", square(A, "expm_frechet"), square(E, "expm_frechet"))
    if a.shape != e.shape:
        raise located(ShapeError(f"expm_frechet: a direction of shape {list(e.shape)} for matrices of shape {list(a.shape)}"))
    value, derivative = jvp(expm, (a,), (e,))
    return (value, derivative) if compute_expm else derivative


# --- Schur's form ----------------------------------------------------------------------------------------------------


def schur(a: Any, output: str = "real") -> tuple[Tensor, Tensor]:
    """Schur decomposition ``a = Z T Z*`` of matrices (…, n, n): ``(T, Z)``.

    For ``output="complex"`` and for complex matrices ``T`` is upper triangular; of real ones for ``"real"`` it has blocks of 2 by 2 for pairs of
    complex eigenvalues. It runs in SciPy (UnsupportedError without it), and has no derivative.

    >>> T, Z = hg.scipy.linalg.schur([[1.0, 2.0], [0.0, 3.0]])
    >>> T
    Tensor([[1., 2.],
            [0., 3.]], dtype=float32)
    """
    kind = choice(output, "schur", "output", ("real", "complex"))
    x = square(a, "schur")
    x = as_complex(x) if kind == "complex" else x
    form = "complex" if is_complex(x) else "real"
    shape = tuple(x.shape[-2:])
    t, z = in_scipy("schur", lambda library, m: library.schur(m, output=form), x, [(shape, x.dtype)] * 2)
    return t, z


def rsf2csf(T: Any, Z: Any, check_finite: bool = True) -> tuple[Tensor, Tensor]:
    """The complex Schur form (``T``, ``Z``) of a real one (n, n). It runs in SciPy, and has no derivative.

    >>> T, Z = hg.scipy.linalg.rsf2csf([[0.0, 1.0], [-1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]])
    >>> hnp.imag(hnp.diagonal(T))
    Tensor([ 1., -1.], dtype=float32)
    """
    t, z = alike("rsf2csf", square(T, "rsf2csf"), square(Z, "rsf2csf"))
    if t.shape != z.shape:
        raise located(ShapeError(f"rsf2csf: forms of shapes {list(t.shape)} and {list(z.shape)}"))
    n = t.shape[-1]
    both = hnp.concat([t, z], axis=-1)
    wanted = as_complex(t).dtype
    made = in_scipy("rsf2csf", lambda library, m: library.rsf2csf(m[:, :n], m[:, n:]), both, [((n, n), wanted)] * 2)
    return made[0], made[1]


def hessenberg(a: Any, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Hessenberg form of matrices (…, n, n): ``H``, or ``(H, Q)`` with ``a = Q H Q*``. It runs in SciPy, and has no derivative.

    >>> hg.scipy.linalg.hessenberg([[1.0, 2.0], [3.0, 4.0]])
    Tensor([[1., 2.],
            [3., 4.]], dtype=float32)
    """
    x = square(a, "hessenberg")
    shape = tuple(x.shape[-2:])
    h, q = in_scipy("hessenberg", lambda library, m: library.hessenberg(m, calc_q=True), x, [(shape, x.dtype)] * 2)
    return (h, q) if calc_q else h


# --- Sylvester's equation --------------------------------------------------------------------------------------------


def solve_sylvester(a: Any, b: Any, q: Any) -> Tensor:
    """Solves Sylvester's equation ``a x + x b = q`` for ``a`` (…, m, m), ``b`` (…, n, n) and ``q`` (…, m, n).

    The Schur forms of ``a`` and ``b`` come from SciPy; first derivatives are there. Infinities and NaNs where eigenvalues of ``a`` and ``-b`` meet.
    Raises ShapeError where the shapes do not fit.

    >>> hg.scipy.linalg.solve_sylvester([[1.0]], [[2.0]], [[6.0]])
    Tensor([[2.]], dtype=float32)
    """
    left, right = alike("solve_sylvester", square(a, "solve_sylvester"), square(b, "solve_sylvester"))
    left, sides = alike("solve_sylvester", left, q)
    right = right.astype(left.dtype)
    if sides.shape[-2:] != (left.shape[-1], right.shape[-1]):
        shapes = f"matrices of shapes {list(left.shape)} and {list(right.shape)}"
        raise located(ShapeError(f"solve_sylvester: a right side of shape {list(sides.shape)} for {shapes}"))
    return _sylvester(left, right, sides)


@custom_jvp
def _sylvester(a: Tensor, b: Tensor, q: Tensor) -> Tensor:
    return _substituted(_forms(a, b), q)


def _forms(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return *schur(a, "complex"), *schur(b, "complex")


def _substituted(forms: tuple[Tensor, Tensor, Tensor, Tensor], q: Tensor) -> Tensor:
    """The solution from the Schur forms, column by column: linear in ``q``."""
    t, u, s, v = forms
    right = hnp.matmul(hnp.matmul(adjoint(u), q.astype(t.dtype)), v)
    unit, n = identity_like(t), s.shape[-1]

    def column(y: Tensor, k: Tensor) -> tuple[Tensor, None]:
        known = hnp.take(s, k, axis=-1)
        rest = hnp.take(right, k, axis=-1) - hnp.matvec(y, known)
        shift = hnp.take(known, k, axis=-1)[..., None, None]
        found = solve_triangular(t + shift * unit, rest[..., None])
        return hnp.where(hnp.arange(n) == k, found, y), None

    y = scan(column, hnp.zeros_like(right), hnp.arange(n))[0]
    x = hnp.matmul(hnp.matmul(u, y), adjoint(v))
    return x if is_complex(q) else hnp.real(x)


@_sylvester.defjvp
def _sylvester_jvp(primals: tuple[Tensor, ...], tangents: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    (a, b, q), (da, db, dq) = primals, tangents
    x = _sylvester(a, b, q)
    return x, _substituted(_forms(a, b), dq - hnp.matmul(da, x) - hnp.matmul(x, db))


# --- functions -------------------------------------------------------------------------------------------------------


def sqrtm(A: Any, blocksize: int = 1) -> Tensor:
    """Principal square root of matrices (…, n, n): complex64, or complex128 for float64 and complex128.

    It runs in SciPy (UnsupportedError without it), ``blocksize`` is ignored. Its first derivatives solve Sylvester's equation. Raises ShapeError for
    matrices that are not square.

    >>> hnp.real(hg.scipy.linalg.sqrtm([[4.0, 0.0], [0.0, 9.0]]))
    Tensor([[2., 0.],
            [0., 3.]], dtype=float32)
    """
    return _sqrtm(square(A, "sqrtm"))


@custom_jvp
def _sqrtm(a: Tensor) -> Tensor:
    shape, dtype = tuple(a.shape[-2:]), as_complex(a).dtype
    return in_scipy("sqrtm", lambda library, m: (library.sqrtm(m),), a, [(shape, dtype)])[0]


@_sqrtm.defjvp
def _sqrtm_jvp(primals: tuple[Tensor], tangents: tuple[Tensor]) -> tuple[Tensor, Tensor]:
    root = _sqrtm(primals[0])
    return root, _substituted(_forms(root, root), tangents[0].astype(root.dtype))


def funm(A: Any, func: Callable[[Any], Any], disp: bool = True) -> Any:
    """A function of matrices (n, n), from what it does to the eigenvalues: complex. With ``disp=False`` ``(F, error)``, an estimate of its error.

    Eigenvalues should be distinct. It runs by the Schur form, in SciPy, and has no derivative. Raises ShapeError for matrices that are not square.

    >>> hnp.real(hg.scipy.linalg.funm([[1.0, 1.0], [0.0, 2.0]], lambda x: x * x))
    Tensor([[1., 3.],
            [0., 4.]], dtype=float32)
    """
    a = square(A, "funm")
    if a.ndim != 2:
        raise located(UnsupportedError("funm takes one matrix: use vmap for stacks"))
    t, z = schur(a, "complex")
    values, least = _parlett(t, hnp.diag(as_function(func, "funm")(hnp.diagonal(t))).astype(t.dtype))
    out = hnp.matmul(hnp.matmul(z, values), adjoint(z))
    if disp:
        return out
    epsilon = hnp.finfo(least.dtype).eps
    spread = hnp.maximum(1.0, hnp.max(hnp.sum(hnp.abs(hnp.triu(t, k=1)), axis=-2)))
    error = hnp.minimum(1.0, hnp.maximum(epsilon, (epsilon / least) * spread))
    return out, hnp.where(hnp.all(hnp.isfinite(hnp.abs(out))), error, hnp.inf)


def _parlett(t: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """The function of the upper triangular ``t`` whose diagonal is that of ``start``, and the least distance of two eigenvalues."""
    n = t.shape[-1]
    columns = hnp.arange(n)

    def element(p: Any, i: Any, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        f, least = state
        j = i + p
        between = (columns > i) & (columns < j)
        terms = hnp.where(between, t[i] * f[:, j] - f[i] * t[:, j], 0.0)
        distance = t[j, j] - t[i, i]
        value = (t[i, j] * (f[j, j] - f[i, i]) + hnp.sum(terms)) / hnp.where(distance == 0, 1.0, distance)
        return f.at[i, j].set(value), hnp.minimum(least, hnp.abs(distance))

    def diagonal(p: Any, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return fori_loop(0, n - p, lambda i, s: element(p, i, s), state)

    return fori_loop(1, n, diagonal, (start, hnp.asarray(hnp.inf, dtype=hnp.abs(t).dtype)))
