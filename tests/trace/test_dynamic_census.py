"""Every public function with symbolic extents: served with the bits of the static program at several sizes, or refused, kindly and with the line.

The fuzzer draws the arguments. :data:`REFUSED` says what is refused, and why; a function that is not in it takes symbolic extents.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
from hologram.errors import HologramError
from tests.fuzz.catalogue import catalogue
from tests.fuzz.program import Program, function_of
from tests.fuzz.resized import programs, resized
from tests.fuzz.worlds import Hologram

_INTEGER = "needs the extent as a number while it is traced"
_FITS = "the drawn shapes fit one size alone"

REFUSED: dict[str, str] = {
    **dict.fromkeys(("numpy.unstack", "numpy.insert", "nn.logmeanexp", "random.multinomial"), _INTEGER),
    **dict.fromkeys(("numpy.convolve", "numpy.correlate", "numpy.packbits", "numpy.histogramdd", "numpy.resize"), _INTEGER),
    **dict.fromkeys(("numpy.delete", "numpy.fill_diagonal"), _INTEGER),
    **dict.fromkeys(("numpy.diag_indices_from", "numpy.tril_indices_from", "numpy.triu_indices_from"), _INTEGER),
    **dict.fromkeys((f"numpy.poly{name}" for name in ("add", "der", "div", "fit", "int", "mul", "sub")), _INTEGER),
    **dict.fromkeys(("nn.adaptive_avg_pool2d", "nn.adaptive_avg_pool3d"), "windows differ in size"),
    **dict.fromkeys(("numpy.broadcast_to", "numpy.reshape", "random.multivariate_normal"), _FITS),
    **dict.fromkeys(("numpy.cross", "linalg.cross"), "2 or 3 elements"),
}
OF_SQUARES: dict[str, Any] = {  # what the fuzzer draws beside an identity of one size
    "linalg.cholesky": hg.linalg.cholesky,
    "linalg.det": hg.linalg.det,
    "linalg.eigvalsh": hg.linalg.eigvalsh,
    "linalg.inv": hg.linalg.inv,
    "linalg.matrix_power": lambda x: hg.linalg.matrix_power(x, 3),
    "linalg.slogdet": hg.linalg.slogdet,
    "linalg.solve": lambda x: hg.linalg.solve(x, x[0]),
    "linalg.triangular_solve": lambda x: hg.linalg.triangular_solve(x, x[0]),
}


def _leaves(x: Any) -> list[np.ndarray]:
    return [np.asarray(e) for e in hg.tree.leaves(x)]


def _serves(p: Program, compared: tuple[int, ...]) -> bool:
    """Whether a program with symbols serves the drawn sizes and others; False where it is refused. Fails where bits differ from those of the static
    program, at the sizes that are to be ``compared``."""
    function = function_of(p, Hologram())
    f = hg.jit(function, dynamic=True, precision="exact")
    for by in (1, 2, 3)[: max(compared)]:
        arrays = resized(p, by).arrays()
        try:
            want = _leaves(hg.jit(function, dynamic=False, precision="exact")(*arrays)) if by in compared else None
        except HologramError:
            continue  # the other arguments do not fit these sizes
        try:
            got = _leaves(f(*arrays))
        except HologramError as e:
            assert ".py" in str(e) + "".join(getattr(e, "__notes__", [])), f"refused without a line: {e}"
            return False
        for g, w in zip(got, want or got, strict=True):
            assert g.dtype == w.dtype and g.shape == w.shape
            assert g.tobytes() == w.tobytes() or np.array_equal(g, w, equal_nan=w.dtype.kind in "fc"), f"{[a.shape for a in arrays]}"
    return True


@pytest.mark.parametrize("name", OF_SQUARES)
def test_square_matrices(name: str) -> None:
    f, static = (hg.jit(OF_SQUARES[name], dynamic=d, precision="exact") for d in (True, False))
    for n in (5, 8, 12):
        x = np.random.default_rng(n).standard_normal((n, n)).astype(np.float32)
        x = x @ x.T + np.float32(n) * np.eye(n, dtype=np.float32)
        for got, want in zip(_leaves(f(x)), _leaves(static(x)), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.costly(12)
@pytest.mark.parametrize("name", [n for n in catalogue() if n not in OF_SQUARES])
def test_symbolic_extents_are_served_or_refused_by_the_table(name: str, everything: bool) -> None:
    """Programs are drawn until one is served."""
    found = served = False
    with np.errstate(all="ignore"):
        for program in programs(name):
            found = True
            if served := _serves(program, (1, 2, 3) if everything else (2,)):
                break
    if found:
        assert served is not (name in REFUSED), f"{name} {'takes' if served else 'does not take'} symbolic extents"
