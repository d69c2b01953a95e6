"""``x += v`` in packages that expect NumPy's meaning, and in others."""

from __future__ import annotations

import operator
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, DTypeError, LeakedTracerError, ReadOnlyError, ShapeError
from hologram.trace.interchange.inplace_operators import SYMBOLS

WRITERS = (
    "def put(xp, x):\n    return xp.put_along_axis(x, xp.asarray([[2], [0]]), values=9.0, axis=1), xp.put(x, [1], [7.0]), xp.fill_diagonal(x, 5.0)\n"
)
TEXT = WRITERS + "\n".join(f"def i{name}(x, v):\n    x {symbol}= v\n    return x" for name, symbol in SYMBOLS.items())
HERE = __name__.partition(".")[0]
DEFAULT = hg.settings.inplace_packages
X = np.arange(1.0, 7.0).reshape(2, 3)


@pytest.fixture(autouse=True)
def _operators() -> Any:
    """The operators are there, though no package of the list may be."""
    with hg.settings.override(inplace_packages=(*DEFAULT, HERE)), hg.settings.override(inplace_packages=DEFAULT):
        yield


def functions_of(package: str) -> dict[str, Callable[[Any, Any], Any]]:
    """A function for each operator, of the package that its code says to belong to."""
    names: dict[str, Any] = {"__name__": f"{package}.part"}
    exec(TEXT, names)
    return {name: names[f"i{name}"] for name in SYMBOLS} | {"put": names["put"]}


def operands(name: str) -> tuple[np.ndarray, Any]:
    whole = name in ("and", "or", "xor", "lshift", "rshift")
    return (X[:, :2].astype(int) if whole else X[:, :2]), (np.eye(2) + 1 if name == "matmul" else 2)


@pytest.mark.parametrize("name", SYMBOLS)
def test_every_operator(name: str) -> None:
    array, value = operands(name)
    wanted = getattr(operator, f"{name}_" if name in ("and", "or") else name)(array, value)
    for package, is_in_place in (("scipy", True), ("sklearn", True), ("someone", False)):
        x = hg.tensor(array)
        part = x[:, 1:]
        result = functions_of(package)[name](x, value)
        np.testing.assert_allclose(result, wanted)
        assert (result is x) is is_in_place
        np.testing.assert_allclose(part, (wanted if is_in_place else array)[:, 1:])


def test_only_names_of_whole_packages_count() -> None:
    for package in ("scipyx", "x.scipy"):
        x = hg.tensor(X)
        assert functions_of(package)["add"](x, 1) is not x


def test_what_cannot_be_held_is_refused() -> None:
    add = functions_of("scipy")["add"]
    for x, v, error in (
        (hg.tensor([1, 2]), 0.5, DTypeError), (hg.tensor([1.0, 2.0]), 1j, DTypeError), (hg.tensor([1.0, 2.0]), np.ones((2, 2)), ShapeError),
        (hnp.broadcast_to(hg.tensor([1.0]), (3,)), 1, ReadOnlyError),
    ):  # fmt: skip
        before = np.array(x)
        with pytest.raises(error, match="test_inplace_operators|<string>"):
            add(x, v)
        np.testing.assert_array_equal(x, before)
    x = hg.tensor(np.ones(2, np.float32))
    assert add(x, np.ones(2)).dtype == np.float32  # as in NumPy: of the same kind


def test_numbers_are_values_as_scalars_of_numpy_are() -> None:
    add = functions_of("scipy")["add"]
    x = hg.tensor(X)
    for number in (x[0, 1], x.sum()):
        before = float(number)
        assert float(add(number, 1)) == before + 1 and float(number) == before
    np.testing.assert_array_equal(x, X)
    add(x[0, 1, ...], 1)  # a view of no axes
    assert float(x[0, 1]) == X[0, 1] + 1


def test_functions_that_write() -> None:
    wanted = X.copy()
    assert functions_of("scipy")["put"](np, wanted) == (None, None, None)
    for package in ("scipy", "someone"):
        x = hg.tensor(X)
        columns = x.T
        results = functions_of(package)["put"](hnp, x)
        assert (results == (None, None, None)) is (package == "scipy")
        np.testing.assert_array_equal(columns.T, wanted if package == "scipy" else X)


def test_while_tracing_and_under_transforms() -> None:
    add = functions_of("scipy")["add"]

    def f(x: Any) -> Any:
        x = x * 1
        add(x[1], x[0] ** 2)
        return (x**2).sum()

    x = hg.tensor(X[:, 0])
    assert float(hg.jit(lambda x: add(x[1:], 1)[0])(x)) == X[1, 0] + 1 and float(x[1]) == X[1, 0]  # arguments are values
    rows = hg.tensor(X)
    want = 2 * X
    want[1] = 2 * (X[1] + X[0] ** 2)
    want[0] = 2 * X[0] + want[1] * 2 * X[0]
    np.testing.assert_allclose(hg.jit(hg.grad(f))(rows), want)
    with pytest.raises(LeakedTracerError):
        hg.jit(lambda y: add(rows, y))(1.0)


def test_the_setting_names_the_packages() -> None:
    view = (x := hg.tensor(X))[0]
    with hg.settings.override(inplace_packages=HERE):
        view += 1
    np.testing.assert_array_equal(x[0], X[0] + 1)
    view += 1
    np.testing.assert_array_equal(x[0], X[0] + 1)
    assert hg.settings.from_environment({"HOLOGRAM_INPLACE_PACKAGES": "a, b"}).inplace_packages == ("a", "b")


def test_jitted_functions_have_a_program_for_each_setting() -> None:
    @hg.jit
    def f(x: Any) -> Any:
        x = x + 0
        part = x[1:]
        part += 1
        return x

    x = np.arange(3.0)
    np.testing.assert_array_equal(f(x), [0, 1, 2])
    with hg.settings.override(inplace_packages=HERE):
        np.testing.assert_array_equal(f(x), [0, 2, 3])
    np.testing.assert_array_equal(f(x), [0, 1, 2])


def test_others_pay_nothing() -> None:
    """Without one of the packages Tensors have no in-place operators; with one they have, whichever is imported first."""
    code = """import sys, types, hologram as hg
assert not hasattr(hg.Tensor, "__iadd__")
with hg.settings.override(inplace_packages=()):
    pass
assert not hasattr(hg.Tensor, "__iadd__")
import scipy
assert hasattr(hg.Tensor, "__iadd__")
"""
    pytest.importorskip("scipy", reason="SciPy is not installed")
    subprocess.run([sys.executable, "-c", code], check=True)
    subprocess.run([sys.executable, "-c", "import scipy, hologram as hg; assert hasattr(hg.Tensor, '__iadd__')"], check=True)


OUT = """
def clipped(np, x): return np.clip(x, 2.0, None, out=x)
def summed(np, x): return np.add(x, x, out=x)
def halved(np, x): return np.multiply(x, 0.5, x)
def reduced(np, x): return np.sum(x, axis=1, out=x[:, 0])
"""


@pytest.mark.parametrize("name", ["clipped", "summed", "halved", "reduced"])
def test_results_go_into_tensors_where_the_package_expects_it(name: str) -> None:
    for package, is_in_place in (("networkx", True), ("someone", False)):
        names: dict[str, Any] = {"__name__": f"{package}.part"}
        exec(OUT, names)
        x, wanted = hg.tensor(X), X.copy()
        if not is_in_place:
            with pytest.raises(ArgumentError, match="out="):
                names[name](np, x)
            continue
        view = x.T
        np.testing.assert_array_equal(names[name](np, x), names[name](np, wanted))
        np.testing.assert_array_equal(x, wanted)
        np.testing.assert_array_equal(view, wanted.T)
        traced = hg.jit(lambda x: (names[name](np, x), x)[1])  # noqa: B023 - called at once
        np.testing.assert_array_equal(traced(X), wanted)


IN_PLACE = {
    "sort": "x.sort()", "sort an axis": "x.sort(axis=0)", "sort in a way": "x.sort(1, 'stable')", "partition": "x.partition(1)", "fill": "x.fill(2)",
    "put": "x.put([0, 4], [8.0, 9.0])", "copyto": "np.copyto(x, [7.0, 8.0, 9.0], where=x > 2)", "np.put": "np.put(x, [1], [7.0])",
    "place": "np.place(x, x > 2, [7.0, 8.0])", "putmask": "np.putmask(x, x > 2, -x)", "fill_diagonal": "np.fill_diagonal(x, 0.5)",
    "put_along_axis": "np.put_along_axis(x, np.array([[2], [0]]), 9.0, axis=1)", "at": "np.add.at(x, ([0, 0], [1, 1]), [1.0, 2.0])",
    "at of one": "np.negative.at(x, 0)", "a view": "x[:, 1:].sort(0)", "a transpose": "x.T.fill(1)",
}  # fmt: skip


@pytest.mark.parametrize("name", IN_PLACE)
def test_methods_and_functions_that_write(name: str) -> None:
    """In the packages they give None, and change the Tensor and its views, as NumPy changes arrays; elsewhere sorting gives copies."""
    code, start = IN_PLACE[name], np.array([[3.0, 1.0, 2.0], [6.0, 4.0, 5.0]])
    wanted, x = start.copy(), hg.tensor(start)
    view, names = x[1:], {"__name__": "sklearn.part", "np": np}
    assert eval(code, names | {"x": x}) is eval(code, names | {"x": wanted}) is None
    np.testing.assert_array_equal(x, wanted)
    np.testing.assert_array_equal(view, wanted[1:])
    same = hg.tensor(start)
    if name.startswith(("sort", "partition")):
        np.testing.assert_array_equal(eval(code, {"x": same}), wanted)
        np.testing.assert_array_equal(same, start)
    elif "np." in code:
        with pytest.raises(ArgumentError, match="writes into its argument"):
            eval(code, {"x": same, "np": np})


def test_results_that_do_not_fit_are_refused() -> None:
    names: dict[str, Any] = {"__name__": "networkx.part"}
    exec("def f(np, a, out, **options): return np.add(a, a, out=out, **options)", names)
    for a, out, options, error in (
        (X, hg.tensor([1.0]), {}, ShapeError),
        (X, hg.tensor(X.astype(int)), {}, DTypeError),
        (X, hg.tensor(X), {"where": X > 2}, ArgumentError),
    ):
        with pytest.raises(error):
            names["f"](np, a, out, **options)
