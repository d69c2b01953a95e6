"""Products of symbolic sizes on devices: blocks in shared memory, or on matrix units, whose sizes a call chooses by its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.c.analysis.alternatives import find_alternatives, is_one_zero
from hologram.backends.c.analysis.gemm import GPU_TILE, MATRIX_UNIT_TILE, Product
from hologram.backends.c.grid import Mapping
from hologram.backends.c.source import Program
from hologram.backends.device.code import all_kernels
from hologram.dtypes import float32
from hologram.graph.compilation import Compilation
from hologram.graph.kernel.ir import Buffer, Loop
from hologram.graph.schedule import choose, tiles
from hologram.ir.instruction import Ins
from hologram.ir.symbolic import at_least, substitute, var
from hologram.primitives.reductions import PAGE
from tests.support.devices.some_devices import available


@pytest.fixture(params=["cuda", "opencl"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    return available(request.param, monkeypatch)


def array(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return (np.random.default_rng(list(shape)).integers(-8, 9, shape) / 4).astype(dtype)


FORMS: dict[str, tuple[Callable[..., Any], Callable[[int], tuple[tuple[int, ...], ...]]]] = {
    "rows": (lambda x, y: hnp.tanh(x @ y), lambda n: ((n, 37), (37, 70))),
    "columns": (lambda x, y: x @ y, lambda n: ((19, 24), (24, n))),
    "terms": (lambda x, y: x.T @ y, lambda n: ((n, 33), (n, 20))),
    "rows and columns": (lambda x, y: x @ y.T + 1, lambda n: ((n, 24), (n, 24))),
    "all": (lambda x, y: x @ y, lambda n: ((n, n), (n, n))),
    "batches": (lambda x, y: hnp.matmul(x, y), lambda n: ((5, n, 8), (5, 8, n))),
}


def compared(form: str, device: Any, precision: str, sizes: tuple[int, ...], dtype: Any = np.float32) -> Any:
    """Yields the results of the program with symbols, and the CPU's of known sizes, whose order of a sum is the same."""
    function, shapes = FORMS[form]
    f = hg.jit(function, device=device.name, dynamic=True, precision=precision)
    g = hg.jit(function, dynamic=False, precision="exact" if precision == "exact" else "standard")
    for n in sizes:
        arguments = [array(*s, dtype=dtype) for s in shapes(n)]
        yield np.asarray(f(*arguments)), np.asarray(g(*arguments))
    assert len(f._specialisations) == 1


@pytest.mark.parametrize("many", [1, 4, 128])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.crossed
def test_bits_are_those_of_the_cpu(form: str, many: int, device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever panels a call takes: of ``many`` large ones these, else smaller ones."""
    monkeypatch.setattr(tiles, "MIN_DEVICE_PANELS", many)
    for got, want in compared(form, device, "exact", (2, 31, 150)):
        assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", ["float64", "int32", "bool"])
@pytest.mark.crossed
def test_other_types(dtype: str, device: Any) -> None:
    for got, want in compared("rows and columns", device, "exact", (3, 40), dtype):
        assert got.dtype == want.dtype and got.tobytes() == want.tobytes()


def test_pages_of_terms(device: Any) -> None:
    for got, want in compared("terms", device, "exact", (PAGE - 1, PAGE, PAGE + 1, 2 * PAGE + 5)):
        assert got.tobytes() == want.tobytes()


def test_more_terms_than_panels_take(monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = available("cuda", monkeypatch)
    for module in (tiles, choose):
        monkeypatch.setattr(module, "PAGE", 5)  # 25 terms
    for got, want in compared("terms", cuda, "exact", (24, 25, 26, 90)):
        assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("many", [1, 4, 128])
@pytest.mark.parametrize(("precision", "dtype"), [("standard", np.float16), ("standard", ml_dtypes.bfloat16), ("tf32", np.float32)])
@pytest.mark.crossed
def test_matrix_units(many: int, precision: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "MIN_DEVICE_PANELS", many)
    cuda = available("cuda", monkeypatch)
    for form in ("rows", "terms"):
        for got, want in compared(form, cuda, precision, (3, 64, 150), dtype):
            np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=2e-2, atol=2e-2)


def mappings(f: Any, *arguments: np.ndarray, dialect: str, dynamic: Any = True, precision: str = "standard") -> list[Mapping]:
    graph = hg.jit(f, dynamic=dynamic).lower(*arguments).graph
    plan = Compilation(graph, precision, MATRIX_UNIT_TILE if dialect == "cuda" else GPU_TILE).execution_plan
    program = Program([k.kernel for k in all_kernels(plan)], dialect, precision)
    return [program.mappings[k.kernel] for k in all_kernels(plan)]


def sizes_of(m: Mapping) -> list[tuple[int, int]]:
    """Rows and columns of the panels of a kernel."""
    assert m.tiles is not None
    return [(p.rows.size, p.columns.size) for p in m.tiles.nests.values() if isinstance(p, Product)]


@pytest.mark.parametrize("dialect", ["cuda", "opencl"])
def test_panels_are_those_of_known_sizes_and_smaller_ones(dialect: str) -> None:
    (m,) = mappings(lambda x, y: x @ y, array(5, 512), array(512, 512), dialect=dialect)
    assert sizes_of(m) == [(128, 128), (64, 64), (32, 32)] and m.local <= 48 * 1024
    (m,) = mappings(lambda x, y: x @ y, array(5, 512), array(512, 20), dialect=dialect, dynamic={0: 0})
    assert sizes_of(m) == [(128, 32), (64, 32), (32, 32)]
    (m,) = mappings(lambda x, y: x @ y, array(700, 512), array(512, 512), dialect=dialect, dynamic={0: 1, 1: 0})
    assert len(sizes_of(m)) == 1 and m.tiles is not None and len(m.tiles.nests) == 1  # beside a nest for more terms than panels take


def test_16_bit_floats_stay_on_matrix_units() -> None:
    x, y = array(5, 512, dtype=np.float16), array(512, 512, dtype=np.float16)
    (m,) = mappings(lambda x, y: x @ y, x, y, dialect="cuda")
    assert m.tiles is not None and all(isinstance(p, Product) and p.shares is not None for p in m.tiles.nests.values())
    assert sizes_of(m) == [(128, 256), (64, 64), (32, 32)] and m.dynamic
    (m,) = mappings(lambda x, y: x @ y, x, y, dialect="cuda", precision="exact")
    assert m.tiles is not None and all(p.shares is None for p in m.tiles.nests.values()) and not m.dynamic


@pytest.mark.parametrize("form", FORMS)
def test_nests_are_branches_of_which_a_call_takes_one(form: str) -> None:
    function, shapes = FORMS[form]
    graph = hg.jit(function, dynamic=True).lower(*(array(*s) for s in shapes(40))).graph
    (kernel,) = (k.kernel for k in all_kernels(Compilation(graph, "standard", GPU_TILE).execution_plan))
    loops = [s for s in kernel.body if isinstance(s, Loop)]
    assert len(loops) > 1 and kernel.body[find_alternatives(kernel.body) :][0] is loops[0]
    n = len(kernel.symbols)
    one_large = [tuple(PAGE**2 + 1 if i == at else 31 for i in range(n)) for at in range(n)]
    for sizes in [*itertools.product((2, 31, 150, 5000), repeat=n), *one_large]:
        extents = [substitute(s.extent, dict(zip(kernel.symbols, sizes, strict=True))) for s in loops]
        assert sum(n != 0 for n in extents) == 1
    assert Program([kernel], "opencl", "standard").text.count("else {") == len(loops) - 1


def test_loops_that_may_both_run_are_no_branches() -> None:
    n = var("n", 2)
    many = at_least(n, 50)
    assert is_one_zero(n * many, n * (1 - many)) and is_one_zero(many * n, at_least(n * n, 7) * (1 - many)) and is_one_zero(0, n)
    for a, b in ((n, n), (n * many, n), (n * many, 1 - at_least(n, 60)), (n * many, n * (2 - many)), (n - 2, n * (1 - many))):
        assert not is_one_zero(a, b)
        assert find_alternatives([Loop("parallel", "p", 0, a), Loop("parallel", "p", 0, b)]) is None
    apart = [Loop("parallel", "p", 0, n * many), Loop("parallel", "p", 0, n * (1 - many))]
    assert find_alternatives(apart) == 0
    assert find_alternatives([*apart, Loop("serial", "q", 0, 0)]) is None and find_alternatives(apart[:1]) is None
    x = Buffer("b0", float32, "in", n)
    assert find_alternatives([apart[0], Ins.load(x, 0), apart[1]]) is None
