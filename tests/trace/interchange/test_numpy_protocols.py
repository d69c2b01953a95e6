"""NumPy's functions on Tensors: hologram.numpy's where it has them, NumPy's on the values elsewhere, errors where there is no sense."""

from __future__ import annotations

import inspect
import types
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, DTypeError, FallbackWarning, ShapeError, TracedValueError
from hologram.trace import tree
from hologram.trace.interchange import numpy_protocols

X = np.linspace(0.1, 0.9, 12, dtype=np.float32).reshape(3, 4)
T = hg.tensor(X)

UFUNCS = sorted({f.__name__ for f in vars(np).values() if isinstance(f, np.ufunc)} & set(hnp.__all__))


@pytest.mark.parametrize("name", UFUNCS)
def test_ufuncs(name: str) -> None:
    """The same numbers as NumPy's, as Tensors, on either side of an array, in a trace too."""
    f = getattr(np, name)
    whole = not any(set(t.split("->")[0]) == {"f"} for t in f.types)
    a = np.arange(1, 13).reshape(3, 4) if whole else X
    if name in ("arccosh", "matmul", "matvec", "vecmat"):
        a = a[:, :3] + 1
    calls = [(hg.tensor(a),)] if f.nin == 1 else [(hg.tensor(a), a), (a, hg.tensor(a)), (hg.tensor(a), hg.tensor(a)), (a.tolist(), hg.tensor(a))]
    want = f(*[a] * f.nin)
    for args in calls:
        for got in (f(*args), hg.jit(lambda *args: f(*args))(*args) if type(args[0]) is not list else f(*args)):
            for g, w in zip(tree.leaves(got), tree.leaves(want), strict=True):
                assert type(g) is hg.Tensor
                np.testing.assert_allclose(np.asarray(g), w, rtol=1e-5, atol=1e-6)


def test_operators_of_arrays_and_numpy_scalars_give_tensors() -> None:
    for x in (X, np.float32(2), np.asarray(2.0, np.float32), np.int8(2)):
        for f in (
            lambda a, b: a + b,
            lambda a, b: a - b,
            lambda a, b: a * b,
            lambda a, b: a / b,
            lambda a, b: a // b,
            lambda a, b: a % b,
            lambda a, b: a**b,
            lambda a, b: a < b,
            lambda a, b: a == b,
            lambda a, b: a != b,
        ):
            got, want = f(x, T), f(x, X)
            assert type(got) is hg.Tensor and got.dtype == want.dtype
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5)
    assert type(X @ T.T) is hg.Tensor and [type(x) for x in divmod(X, T)] == [hg.Tensor] * 2
    counts = np.arange(4)
    assert [(counts & hg.tensor(counts)).tolist(), (counts << hg.tensor(counts)).tolist()] == [[0, 1, 2, 3], [0, 2, 8, 24]]


METHODS: dict[str, Any] = {
    "reduce": lambda x: np.add.reduce(x),
    "reduce by place": lambda x: np.subtract.reduce(x, 1, None, None, True),
    "reduce some": lambda x: np.maximum.reduce(x, axis=None, initial=0.0, where=X > 0.5),
    "accumulate": lambda x: np.multiply.accumulate(x, axis=1),
    "reduceat": lambda x: np.add.reduceat(x, [0, 2, 1], axis=1),
    "outer": lambda x: np.hypot.outer(x[0], np.ones(2, np.float32)),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_ufuncs(name: str) -> None:
    for got in (METHODS[name](T), hg.jit(METHODS[name])(X)):
        assert type(got) is hg.Tensor
        np.testing.assert_allclose(np.asarray(got), METHODS[name](X), rtol=1e-6)


def test_methods_of_ufuncs_that_write_into_arrays() -> None:
    counts = np.zeros(3)
    np.add.at(counts, [0, 0, 2], hg.tensor([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(counts, [3, 0, 3])
    with pytest.raises(TracedValueError, match="numpy.add.at, whose first argument is an array, needs the value"):
        hg.jit(lambda v: np.add.at(counts, [0, 0, 2], v))(np.ones(3))


CALLS: dict[str, Any] = {
    "sum": lambda x: np.sum(x, axis=0, keepdims=True),
    "sum of an option's default": lambda x: np.sum(x, 0, None, None),
    "mean": lambda x: np.mean(x, 1),
    "std": lambda x: np.std(x, ddof=1),
    "max": lambda x: np.max(x, axis=-1),
    "concatenate": lambda x: np.concatenate([x, x], 1),
    "stack": lambda x: np.stack((x, x), 1),
    "vstack": lambda x: np.vstack([x, x]),
    "where": lambda x: np.where(x > 0.5, x, 0),
    "clip": lambda x: np.clip(x, 0.3, 0.5),
    "clip by name": lambda x: np.clip(x, a_min=0.3, a_max=None),
    "roll": lambda x: np.roll(x, 1, 0),
    "flip": lambda x: np.flip(x, 1),
    "diff": lambda x: np.diff(x, 2, 0),
    "take": lambda x: np.take(x, [2, 0], 1),
    "repeat": lambda x: np.repeat(x, 2, 0),
    "tril": lambda x: np.tril(x, 1),
    "tensordot": lambda x: np.tensordot(x, x.T, 1),
    "reshape": lambda x: np.reshape(x, (4, 3)),
    "reshape in an order": lambda x: np.reshape(x, (4, 3), "C"),
    "reshape in Fortran's order": lambda x: np.reshape(x, (4, 3), order="F"),
    "transpose": lambda x: np.transpose(x, (1, 0)),
    "squeeze": lambda x: np.squeeze(np.expand_dims(x, 0), 0),
    "sort": lambda x: np.sort(-x, axis=0),
    "argsort": lambda x: np.argsort(-x, 1),
    "cumsum": lambda x: np.cumsum(x, axis=1),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x),
    "pad": lambda x: np.pad(x, 1, constant_values=2.0),
    "zeros_like": lambda x: np.zeros_like(x),
    "broadcast_to": lambda x: np.broadcast_to(x, (2, 3, 4)),
    "quantile": lambda x: np.quantile(x, 0.25, axis=0),
    "interp": lambda x: np.interp(x[0], np.arange(3.0), np.arange(3.0)),
    "isclose": lambda x: np.isclose(x, x + 1),
    "searchsorted": lambda x: np.searchsorted(x[0], x[1], "right"),
}


@pytest.mark.parametrize("name", CALLS)
def test_functions(name: str) -> None:
    want = np.asarray(CALLS[name](X))
    for got in (CALLS[name](T), hg.jit(CALLS[name])(X)):
        assert type(got) is hg.Tensor
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-6)


def test_what_is_known_without_values() -> None:
    def known(x: Any) -> Any:
        assert np.shape(x) == (3, 4) and np.ndim(x) == 2 and np.size(x) == 12 and np.size(x, 1) == 4 and np.size(x, (0, -1)) == 12
        assert np.isrealobj(x) and not np.iscomplexobj(x) and np.result_type(x, np.float64) == np.float64
        return x

    known(T)
    hg.jit(known)(X)


LACKING: dict[str, Any] = {
    "a function": (lambda x: np.tril(x), "numpy.tril, which hologram.numpy lacks, needs the value"),
    "a ufunc": (lambda x: np.cos(x), "numpy.cos, which hologram.numpy lacks, needs the value"),
    "a ufunc of others": (lambda x: np.frompyfunc(lambda v: v * 2, 1, 1)(x).astype(np.float32), "which hologram.numpy lacks, needs the value"),
    "an argument": (lambda x: np.var(x, mean=X[:1, :1]), "numpy.var with arguments that hologram.numpy.var does not take needs the value"),
    "an argument by place": (lambda x: np.std(x, 0, None, np.zeros(4, np.float32)), "numpy.std with arguments that hologram.numpy.std does not take"),
    "a module": (lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, 0), "sliding_window_view, which hologram.numpy lacks"),
    "an order of a ufunc": (lambda x: np.sqrt(x, order="C"), "numpy.sqrt with order=, which hologram.numpy.sqrt does not take, needs the value"),
    "a type of a ufunc": (lambda x: np.add(x, 1, dtype=np.float64, casting="safe"), "numpy.add with dtype= and casting=, which"),
    "an option of outer": (lambda x: np.subtract.outer(x, x, dtype=np.float64), "numpy.subtract.outer, which hologram.numpy lacks, needs"),
}


@pytest.mark.parametrize("name", LACKING)
def test_what_hologram_lacks_is_numpys(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(hnp, "tril")
    monkeypatch.delattr(hnp, "cos")
    monkeypatch.setattr(numpy_protocols, "_told", set())
    monkeypatch.delattr(hnp.lib.stride_tricks, "sliding_window_view")
    f, message = LACKING[name]
    with pytest.raises(TracedValueError, match=message + ".*test_numpy_protocols.py"):
        hg.jit(f)(X)
    named = message.partition(" needs")[0].partition(",")[0]
    with pytest.warns(FallbackWarning, match=f"{named}.* ran in NumPy on the values and gives NumPy's arrays.*test_numpy_protocols.py") as told:
        got = f(T)
    assert len(told) == 1 and told[0].filename == __file__
    assert isinstance(got, (np.ndarray, np.generic))
    np.testing.assert_array_equal(got, f(X))
    f(T)  # told once


def test_warnings_of_numpys_functions_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numpy_protocols, "_told", set())
    monkeypatch.delattr(hnp.lib.stride_tricks, "sliding_window_view")
    with hg.settings.override(warn_fallback=False):
        np.testing.assert_array_equal(np.ptp(np.sort(T, kind="stable"), 1, keepdims=True), np.ptp(X, 1, keepdims=True))
        assert type(np.lib.stride_tricks.sliding_window_view(T, 2, 0)) is np.ndarray
    assert hg.settings.from_environment({"HOLOGRAM_WARN_FALLBACK": "0"}).warn_fallback is False


def test_arguments_that_numpy_takes_and_hologram_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors are those of hologram.numpy where NumPy refuses too."""
    monkeypatch.setattr(numpy_protocols, "_told", set())
    for name, call, want in (
        ("broadcast_arrays", lambda x: np.broadcast_arrays(x, None), np.broadcast_arrays(X, None)),
        ("tril", lambda x: np.tril(x[0]), np.tril(X[0])),
    ):
        with pytest.warns(FallbackWarning, match=f"numpy.{name} with arguments that hologram.numpy.{name} does not take ran in NumPy"):
            got = call(T)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w)
        with pytest.raises((ArgumentError, ShapeError)):
            hg.jit(call)(X)
    with pytest.raises(ShapeError, match=r"concatenate: .*test_numpy_protocols.py"):
        np.concatenate([T, T[0]])
    with pytest.raises(ArgumentError, match="masked arrays are not supported"):
        np.concatenate([T, np.ma.masked_less(X, 0.5)])


@pytest.mark.parametrize("f", [np.atleast_1d, np.atleast_2d, np.atleast_3d], ids=lambda f: f.__name__)
def test_what_makes_sure_of_arrays_gives_arrays(f: Any) -> None:
    """SciPy hands its result to C code. Where there are no values, or derivatives are wanted, it is a Tensor."""
    for x in (hg.tensor(2.0), T[0], T, T * 1):
        got = f(x)
        assert type(got) is np.ndarray and not got.flags.writeable
        np.testing.assert_array_equal(got, f(np.asarray(x)))
    assert [type(g) for g in f(T, X)] == [np.ndarray] * 2
    assert type(hg.jit(f)(X)) is hg.Tensor
    assert float(hg.grad(lambda x: f(x).sum())(2.0)) == 1.0
    np.testing.assert_allclose(hg.vmap(lambda x: f(x).sum())(T), X.sum(1), rtol=1e-6)


KINDS = {"bool": X > 0.5, "uint8": np.arange(6, dtype=np.uint8), "int64": np.arange(-2, 4), "float16": np.arange(6, dtype=np.float16)}
KINDS |= {"float64": np.linspace(0.1, 0.9, 6), "complex128": np.linspace(0.1, 0.9, 6) + 0.5j, "empty": np.zeros((0, 3)), "number": np.array(0.5)}


@pytest.mark.parametrize("name", sorted(n for n, f in vars(np).items() if isinstance(f, np.ufunc) and f.__name__ == n and f.signature is None))
@pytest.mark.filterwarnings("ignore::hologram.errors.FallbackWarning", "ignore::RuntimeWarning")
def test_no_ufunc_refuses_what_numpy_computes(name: str) -> None:
    """Of any type: hologram.numpy's numbers, or NumPy's own."""
    f = getattr(np, name)
    of_types = name in ("reciprocal", "spacing")  # what they give depends on the type
    folds = name not in ("arctan2", "power")  # NumPy's vector loops do not reduce these in order
    for kind, x in KINDS.items():
        args = (x,) * f.nin
        calls: list[Any] = [f] if f.nin == 1 or f.nout > 1 else [f, lambda x, y: f.outer(x, y), lambda x, y: f.reduce(x, axis=None)]
        for call in calls[: 2 + folds if x.ndim else 1]:
            try:
                want = call(*args)
            except (TypeError, ValueError):  # NumPy refuses
                continue
            for g, w in zip(tree.leaves(call(*map(hg.tensor, args))), tree.leaves(want), strict=True):
                if of_types and np.asarray(g).dtype != np.asarray(w).dtype:
                    continue
                rough = 2e-3 if {"float16"} & {str(np.asarray(g).dtype), str(np.asarray(w).dtype)} else 1e-6
                np.testing.assert_allclose(np.asarray(g), w, rtol=rough, atol=rough, err_msg=f"{name} of {kind}")


def test_whether_memory_is_shared_is_told_of_elements() -> None:
    """What has memory of its own once it is read may be a view nevertheless: who writes into one changes the other."""
    x = hg.tensor(X.copy())
    first, second = x[:2], x[1:]
    np.asarray(first), np.asarray(second)
    for tell in (np.may_share_memory, np.shares_memory):
        assert tell(x, x) and tell(x, first) and tell(first, second) and tell(first.T, second)
        assert not tell(x[:1], second) and not tell(x, x + 0) and not tell(x, X) and not tell(x[:0], x)
    assert np.may_share_memory(np.asarray(x), np.asarray(x))


REFUSED: dict[str, Any] = {
    "out": (lambda: np.add(X, T, out=T), r"numpy.add with out= writes into a Tensor.*write x = x \+ y for x \+= y"),
    "one out": (lambda: np.divmod(X, X, out=(np.zeros_like(X), T)), "numpy.divmod with out= writes into a Tensor"),
    "reduce": (lambda: np.add.reduce(X, out=T), "numpy.add.reduce with out= writes into a Tensor"),
    "at": (lambda: np.add.at(T, [0], 1), r"numpy.add.at writes into its argument.*write x = hologram.numpy.add.at\(x, i, …\)"),
    "put": (lambda: np.put(T, [0], 1), "numpy.put writes into its argument"),
    "copyto": (lambda: np.copyto(T, X), r"numpy.copyto writes into its argument, and Tensors do not change: write x = x.at\[i\].set\(v\)"),
    "diagonal": (lambda: np.fill_diagonal(T, 1), "numpy.fill_diagonal writes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    call, message = REFUSED[name]
    with pytest.raises(ArgumentError, match=message + ".*test_numpy_protocols.py"):
        call()


@pytest.mark.parametrize("make", [np.empty_like, np.zeros_like, np.ones_like, lambda x, **how: np.full_like(x, 0, **how)])
def test_nothing_like_a_tensor_has_a_type_that_tensors_lack(make: Any) -> None:
    """Dask, among others, takes another way at the TypeError that its arrays' kind has no records."""
    for dtype in ([("value", "f4"), ("place", "i8")], object, "U3"):
        with pytest.raises(TypeError):
            make(T, dtype=dtype)
        with pytest.raises(TypeError):
            make(T, dtype=dtype, shape=(2,))
    assert type(make(T, dtype="f8")) is hg.Tensor


def test_ufuncs_compute_in_the_type_that_is_asked_for() -> None:
    third = hg.tensor(np.float32(1) / np.float32(3))
    for f in (lambda x: np.add(x, x, dtype=np.float64), lambda x: np.sqrt(x, dtype="float64"), lambda x: np.divide(1, x, dtype=np.float64)):
        for found in (f(third), hg.jit(f)(third)):
            assert type(found) is hg.Tensor
            np.testing.assert_array_equal(found, f(np.asarray(third)), strict=True)
    with pytest.raises(DTypeError, match="numpy.add with dtype=int64 takes no float32"):
        np.add(third, third, dtype=np.int64)


def test_numpy_writes_into_its_own_arrays() -> None:
    x = X.copy()
    x += T
    np.copyto(x[0], 2 * T[0])
    x[1] *= T[1] > 2
    want = 2 * X
    want[1] = 0
    np.testing.assert_array_equal(x, want)
    total = np.zeros(4, np.float32)
    assert np.add.reduce(T, out=total) is total and np.sum(T, axis=0, out=np.zeros(4, np.float32)).shape == (4,)
    np.testing.assert_array_equal(total, X.sum(0))
    with pytest.raises(np._core._exceptions._UFuncOutputCastingError):  # NumPy's own rules hold
        np.arange(12).reshape(3, 4).__iadd__(T)


def test_a_trace_has_no_values_to_write_into_arrays() -> None:
    def add(x: Any) -> Any:
        total = X.copy()
        total += x
        return total

    with pytest.raises(TracedValueError, match=r"numpy.add with out=, which writes into an array \(write x = x \+ y.*test_numpy_protocols.py"):
        hg.jit(add)(X)


def test_transforms_of_numpy_functions() -> None:
    loss = lambda x: np.sum(np.sin(x) ** 2 + np.float32(1) * x)  # noqa: E731
    want = np.sin(2 * X[0]) + 1
    for gradient in (hg.grad(loss), hg.jit(hg.grad(loss))):
        np.testing.assert_allclose(np.asarray(gradient(T[0])), want, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(hg.vmap(hg.grad(loss))(T)), np.sin(2 * X) + 1, rtol=1e-5)


def test_other_protocols_have_their_say() -> None:
    class Other:
        def __array_ufunc__(self, *args: Any, **options: Any) -> str:
            return "other"

        def __array_function__(self, *args: Any) -> str:
            return "other"

    assert np.add(T, Other()) == "other" and np.concatenate([T, Other()]) == "other"
    with pytest.raises(ArgumentError, match="not dict"):
        np.add(T, {})


MODULES = ((np, hnp), (np.linalg, hnp.linalg), (np.fft, hnp.fft))


def takes_like(f: Any) -> bool:
    """Whether a function makes an array of the kind of its argument ``like``."""
    return isinstance(f, types.BuiltinFunctionType) and "like : " in (f.__doc__ or "")


SHARED = sorted(
    {f for m, ours in MODULES for n, f in vars(m).items() if (hasattr(f, "_implementation") or takes_like(f)) and hasattr(ours, n)},
    key=lambda f: f.__name__,
)


@pytest.mark.parametrize("f", SHARED, ids=lambda f: f.__name__)
def test_signatures_of_numpys_functions_are_known_in_every_version(f: Any) -> None:
    known = numpy_protocols._signature(f)
    if f.__name__ in numpy_protocols._SIGNATURES:
        written = inspect.signature(numpy_protocols._SIGNATURES[f.__name__])
        shared = [p for name, p in known.parameters.items() if name in written.parameters]  # later versions take more
        assert shared == list(written.parameters.values()), f"{f.__name__}{known} in NumPy {np.__version__}"


def test_no_signature_is_written_in_vain() -> None:
    assert numpy_protocols._SIGNATURES.keys() <= {f.__name__ for f in SHARED}


@pytest.mark.filterwarnings("ignore::hologram.errors.FallbackWarning")
def test_arrays_of_objects_are_numpys() -> None:
    """Objects know what to do with a number: exact fractions stay exact, on either side, in ufuncs and their methods."""
    thirds = np.array([Fraction(1, 3), Fraction(2, 3)], dtype=object)
    t = hg.tensor([1, 3])
    for found in (t * thirds, thirds * t, np.multiply(t, thirds), np.multiply(thirds, t)):
        assert found.dtype == object and list(found) == [Fraction(1, 3), Fraction(2)]
    assert list(np.add.outer(thirds, t)[0]) == [Fraction(4, 3), Fraction(10, 3)]
    assert list(t == thirds) == [False, False]
    with pytest.raises(TracedValueError, match="an array of objects"):
        hg.jit(lambda t: t * thirds)(t)
