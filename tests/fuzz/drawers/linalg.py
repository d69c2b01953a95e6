"""Arguments of linear algebra and of transforms' frequencies."""

from __future__ import annotations

from ..draft import Draft, Value
from .common import drawer, positive_definite, shaped, without_phase


@drawer("linalg.cholesky", "linalg.inv", "linalg.det", "linalg.slogdet", "linalg.eigh", "linalg.eigvalsh", "linalg.matrix_power")
def _factored(d: Draft, function: str) -> list[Value]:
    x = positive_definite(d)
    return without_phase(d, function, d.emit(function, x, *([d.integer(0, 3)] if function.endswith("power") else [])))


@drawer("linalg.solve", "linalg.triangular_solve")
def _solve(d: Draft, function: str) -> list[Value]:
    a = positive_definite(d)
    b = d.fresh(a.dtype, (*a.shape[:-1], d.pick((1, 2, 5, 17))), "normal")
    if function == "linalg.solve":
        return d.emit(function, a, b)
    lower = d.chance(0.5)
    return d.emit(function, a, b, lower=lower, transpose_a=d.chance(0.3), unit_diagonal=False)


@drawer("linalg.svd", "linalg.svdvals", "linalg.qr", "linalg.pinv", "linalg.matrix_rank", "linalg.lstsq", "linalg.matrix_norm")
def _rectangular(d: Draft, function: str) -> list[Value]:
    m, n = d.pick((1, 2, 3, 5, 8, 17)), d.pick((1, 2, 3, 5, 8, 17))
    x = d.fresh(d.pick(("float32", "float64", "complex64", "complex128")), (m, n), "normal")
    if function == "linalg.lstsq":
        return d.emit(function, x, d.fresh(x.dtype, (m,), "normal"))
    return without_phase(d, function, d.emit(function, x, **({"full_matrices": False} if function == "linalg.svd" else {})))


@drawer("fft.fftfreq", "fft.rfftfreq")
def _frequencies(d: Draft, function: str) -> list[Value]:
    return d.emit(function, d.integer(1, 40), d.pick((1.0, 0.5)))


@drawer("linalg.multi_dot")
def _multi_dot(d: Draft, function: str) -> list[Value]:
    sizes = [d.integer(1, 20) for _ in range(d.integer(3, 5))]
    return d.emit(function, [shaped(d, pair, "f") for pair in zip(sizes, sizes[1:], strict=False)])
