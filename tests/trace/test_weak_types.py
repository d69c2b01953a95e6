"""Functions of Python scalars alone: computed in float64, weakly typed, of the default type for whoever asks."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes, nn, special
from hologram.trace.tensor import Tensor

ONES = np.ones(2)
NAMESPACES = {"numpy": hnp, "special": special, "nn": nn}


def _functions() -> list[tuple[str, Callable[..., Any]]]:
    found = {}
    for namespace, module in NAMESPACES.items():
        for name in module.__all__:
            f = getattr(module, name)
            if callable(f) and not isinstance(f, type) and name not in ("from_dlpack", "astype", "empty", "empty_like", "tensor"):
                found[f"{namespace}.{name}"] = f
    return sorted(found.items())


def _types(result: Any) -> list[Any]:
    return [x.dtype for x in hg.tree.leaves(result) if isinstance(x, Tensor)]


def _called(f: Callable[..., Any], *args: Any) -> Any:
    try:
        return f(*args)
    except Exception:  # noqa: BLE001 - not a function of so many numbers
        return None


@pytest.mark.parametrize("count", [1, 2])
def test_every_function_gives_the_types_of_the_default_type(count: int) -> None:
    """What a Tensor of a Python number, a function of one, and a float32 are made into has one type; beside 16 bits it is theirs."""
    short = hnp.ones(3, dtype=hnp.float16) * 0.5
    compared = 0
    for name, f in _functions():
        want = _called(f, *[hnp.asarray(0.5, dtype=hnp.float32)] * count)
        if want is None or not _types(want):
            continue
        compared += 1
        for weak in (hnp.asarray(0.5), hnp.exp(math.log(0.5))):
            assert _types(f(*[weak] * count)) == _types(want), name
        beside = _called(f, short, 0.5) if count == 2 else None
        if beside is not None and _types(beside):
            assert _types(f(short, hnp.asarray(0.5))) == _types(beside), name
    assert compared > (150, 60)[count - 1]


ELEMENTWISE = ["exp", "log", "sqrt", "sin", "cosh", "arctan", "log1p", "cbrt", "square", "reciprocal", "sinc", "degrees", "negative", "abs"]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_functions_of_numbers_have_all_digits(name: str) -> None:
    f, x = getattr(hnp, name), 0.3
    want = f(np.float64(x))
    for got in (f(x), f(hnp.asarray(x)), f(hnp.add(0.1, 0.2) * 1.0) if f(np.float64(0.1 + 0.2)) == want else f(x)):
        assert got.dtype == np.float32 and np.asarray(got).dtype == np.float32
        assert float(got) == float(want) == got.item() == got.tolist()
        np.testing.assert_array_equal(ONES * got, ONES * np.asarray(want))
        np.testing.assert_array_equal(got * ONES, ONES * np.asarray(want))
        for dtype in (hnp.float16, hnp.bfloat16, hnp.float32):
            assert (hnp.ones(2, dtype=dtype) * got).dtype == dtype
        assert (hnp.arange(2) * got).dtype == np.float32
    assert f(2).dtype == f(np.int64(2)).dtype


def test_pairs_of_numbers() -> None:
    for got, want in (
        (hnp.logaddexp(0.1, 0.2), np.logaddexp(0.1, 0.2)),
        (hnp.hypot(0.1, 0.2), np.hypot(0.1, 0.2)),
        (hnp.power(2, 0.1), 2**0.1),
        (hnp.where(True, 0.1, 0.2), 0.1),
        (hnp.maximum(0.1, 2), 2.0),
        (hnp.divide(1, 3), 1 / 3),
        (hnp.exp(0.1) / 3 + 1, math.exp(0.1) / 3 + 1),
        (special.xlogy(0.1, 0.2), 0.1 * math.log(0.2)),
        (special.gammaln(3), math.log(2)),
        (hnp.asarray(0.1) * hnp.asarray(0.3), 0.1 * 0.3),
    ):
        assert got.dtype == np.float32
        np.testing.assert_allclose(np.asarray(ONES * got), ONES * want, rtol=1e-15)
    assert hnp.multiply(0.1, 1j).dtype == np.complex64 and complex(hnp.multiply(0.1, 1j)) == 0.1j
    assert hnp.add(1, 2).dtype == np.int64 and (np.int8([1]) + hnp.asarray(3)).dtype == np.int64
    assert hg.tensor(0.1).dtype == np.float32 and (ONES * hg.tensor(0.1))[0] == np.float32(0.1)  # a copy has the type that it says
    assert hnp.asarray(0.1, dtype="float32") * ONES[:1] == np.float32(0.1)
    assert hnp.result_type(0.1) == np.float32 and hnp.result_type(0.1, np.float16) == np.float16


TENTH = 0.1
BESIDE: dict[str, Callable[[Any], Any]] = {
    "insert": lambda x: hnp.insert(x, 0, TENTH),
    "insert a list": lambda x: hnp.insert(x, 0, [TENTH]),
    "piecewise": lambda x: hnp.piecewise(x, [x < 2], [TENTH, 0.2]),
    "diff": lambda x: hnp.diff(x, prepend=-TENTH),
    "ediff1d": lambda x: hnp.ediff1d(x, to_begin=TENTH),
    "append": lambda x: hnp.append(x, TENTH),
    "select": lambda x: hnp.select([x < 2, x < 3], [x, TENTH], 0.2),
    "choose": lambda x: hnp.choose(np.array([0, 1, 1, 0]), [x, TENTH]),
    "at": lambda x: hnp.asarray(x).at[0].set(TENTH),
    "full_like": lambda x: hnp.full_like(x, TENTH),
    "nan_to_num": lambda x: hnp.nan_to_num(x * np.nan, nan=TENTH),
    "clip": lambda x: hnp.clip(x * 0, TENTH, 0.2),
    "pad": lambda x: hnp.pad(x, 1, constant_values=(TENTH, 0)),
    "interp": lambda x: hnp.interp(x - 9, x, x, left=TENTH),
    "polyint": lambda x: hnp.polyint(x, k=TENTH),
    "max": lambda x: hnp.max(x * 0, initial=TENTH),
    "where": lambda x: hnp.where(x > 1, TENTH, x),
    "stack": lambda x: hnp.stack([x[0], TENTH]),
    "kron": lambda x: hnp.kron(x, TENTH),
    "outer": lambda x: hnp.outer(x, TENTH),
    "astype": lambda x: hnp.astype(hnp.asarray(TENTH) * 1.0, x.dtype) + x,
    "uniform": lambda x: hg.random.uniform(hg.random.key(0), (2,), x.dtype, TENTH, TENTH),
    "normal": lambda x: hg.random.normal(hg.random.key(0), (2,), x.dtype, TENTH, 0.0),
}


@pytest.mark.parametrize("name", BESIDE)
def test_numbers_beside_arrays_are_rounded_once(name: str) -> None:
    found = np.asarray(BESIDE[name](np.arange(4.0)))
    assert found.dtype == np.float64 and (found == TENTH).any()


C = 2 * math.pi
LOG = math.log(C)
USES: dict[str, Callable[[Any, Any], Any]] = {
    "closed over": lambda x, c: hg.jit(lambda x: x * c)(x),
    "an argument": lambda x, c: hg.jit(lambda x, c: x * c)(x, c),
    "an argument, twice": lambda x, c: [f(x, c) for f in [hg.jit(lambda x, c: x * c)] for _ in range(3)][-1],
    "made inside": lambda x, c: hg.jit(lambda x: x * hnp.log(C))(x),
    "of an argument": lambda x, c: hg.jit(lambda x, n: x * hnp.log(n))(x, C),
    "shared by examples": lambda x, c: hg.vmap(lambda x, c: x * c, (0, None))(x, c),
    "a carry": lambda x, c: hg.scan(lambda k, v: (k, v * k), c, x)[1],
    "a carry that is one": lambda x, c: x * hg.fori_loop(0, 3, lambda i, k: k, c),
    "what a step gives": lambda x, c: hg.scan(lambda k, v: (hnp.log(C), v * k), x[0] * c, x)[1],
    "a branch's": lambda x, c: hg.cond(x[0] > 0, lambda k: x * k, lambda k: x, c),
    "a branch's result": lambda x, c: x * hg.cond(x[0] > 0, lambda: hnp.log(C), lambda: 1.0),
    "a tangent": lambda x, c: hg.jvp(lambda s: x * s * c, (2.0,), (1.0,))[1],
    "linear": lambda x, c: hg.linearize(lambda s: x * s * c, 2.0)[1](1.0),
    "checkpointed": lambda x, c: hg.jit(hg.checkpoint(lambda x, s: x * s))(x, c),
    "without jit": lambda x, c: _without_jit(x, c),
    "a copy": lambda x, c: x * hnp.copy(c) * (c.copy() / copy.copy(copy.deepcopy(c))),
    "pickled": lambda x, c: x * pickle.loads(pickle.dumps(c)),
    "the real part": lambda x, c: x * hnp.real(c) * (c.real / c.real),
    "the imaginary part": lambda x, c: x * hnp.imag(c * 1j) + hnp.imag(c),
    "the conjugate": lambda x, c: x * hnp.conj(c),
}


def _without_jit(x: Any, c: Any) -> Any:
    with hg.disable_jit():
        return hg.jit(lambda x: hg.scan(lambda k, v: (k, v * k), c, x)[1])(x)


@pytest.mark.parametrize("use", USES)
def test_digits_survive(use: str) -> None:
    """Everywhere that a number goes on its way to an array, read or not; the array's type is what the result has."""
    for read in (False, True):
        c = hnp.log(C)
        assert not read or float(c) == LOG
        np.testing.assert_allclose(np.asarray(USES[use](ONES, c)), ONES * LOG, rtol=3e-16)
    for dtype in (np.float32, hnp.float16):
        assert USES[use](hnp.ones(2, dtype=dtype), hnp.log(C)).dtype == dtype


@pytest.mark.parametrize("number", [True, 3, 0.1, 0.1 + 0.7j])
def test_numbers_are_pickled_as_numbers(number: Any) -> None:
    made = pickle.loads(pickle.dumps(hnp.asarray(number)))
    assert made.dtype == hnp.asarray(number).dtype and made.item() == number
    small = hnp.ones(2, dtype="float16" if type(number) is not complex else "complex64")
    assert (small * made).dtype == small.dtype


# What is made of weak scalars alone is weak where it is a scalar still: movements, values and derivatives of functions, and what is like another.
STAY_WEAK: dict[str, Callable[[Any], Any]] = {
    "c[()]": lambda c: c[()],
    "c[...]": lambda c: c[...],
    "reshape": lambda c: c.reshape(()),
    "T": lambda c: c.T,
    "transpose": hnp.transpose,
    "permute_dims": lambda c: hnp.permute_dims(c, ()),
    "squeeze": hnp.squeeze,
    "broadcast_to": lambda c: hnp.broadcast_to(c, ()),
    "broadcast_arrays": lambda c: hnp.broadcast_arrays(c, c)[1],
    "flip": hnp.flip,
    "full_like": lambda c: hnp.full_like(c, C),
    "zeros_like": lambda c: hnp.zeros_like(c) + c,
    "ones_like": lambda c: hnp.ones_like(c) * c,
    "fabs": hnp.fabs,
    "modf": lambda c: hnp.add(*hnp.modf(c)),
    "kron": lambda c: hnp.kron(c, 1.0),
    "value_and_grad": lambda c: hg.value_and_grad(lambda s: s * c)(c)[0] / c,
    "grad": lambda c: hg.grad(lambda s: s * c)(c),
    "jvp": lambda c: hg.jvp(lambda s: s * c, (c,), (1.0,))[0] / c,
    "its tangent": lambda c: hg.jvp(lambda s: s * c, (c,), (1.0,))[1],
    "vjp": lambda c: hg.vjp(lambda s: s * c, c)[0] / c,
    "its cotangent": lambda c: hg.vjp(lambda s: s * c, c)[1](hg.tensor(1.0))[0],
    "linearize": lambda c: hg.linearize(lambda s: s * c, c)[0] / c,
    "its pushforward": lambda c: hg.linearize(lambda s: s * c, c)[1](1.0),
    "jacfwd": lambda c: hg.jacfwd(lambda s: s * c)(c),
    "jacrev": lambda c: hg.jacrev(lambda s: s * c)(c),
    "checkpoint": lambda c: hg.checkpoint(lambda s: s * 1.0)(c),
    "abs": abs,
    "minus": lambda c: 0.0 - (-c),
    "where": lambda c: hnp.where(c > 0, c, 1.0),
    "switch": lambda c: hg.lax.switch(0, [lambda k: k, lambda k: k * 2], c),
    "while_loop": lambda c: hg.while_loop(lambda k: k < C, lambda k: k * 2, c) / 4,
}


@pytest.mark.parametrize("use", STAY_WEAK)
@pytest.mark.parametrize("jitted", [False, True])
def test_scalars_stay_weak(use: str, jitted: bool) -> None:
    for dtype in (np.float64, np.float32, hnp.float16, hnp.bfloat16):
        ones = hnp.ones(2, dtype=dtype)
        f = lambda x, c: x * STAY_WEAK[use](c)  # noqa: E731
        number = C if use == "full_like" else LOG
        found = hg.jit(f)(ones, LOG) if jitted else f(ones, hnp.log(C))
        assert found.dtype == dtype
        if dtype is np.float64:
            np.testing.assert_allclose(np.asarray(found), ONES * number, rtol=1e-15)
    strong = hnp.asarray(LOG, dtype="float32")
    assert (hnp.ones(2, dtype=hnp.bfloat16) * STAY_WEAK[use](strong)).dtype == np.float32


def test_elements_of_what_is_no_tensor() -> None:
    assert [int(x) for x in hnp.unstack((1, 2))] == [1, 2] and hnp.unstack(np.ones(1))[0].dtype == np.float64


def test_a_view_of_a_weak_number_is_one() -> None:
    c = hnp.asarray(2.5)
    y = c[...]
    y[()] = 3.0
    assert float(c) == float(y) == 3.0


UPDATES: dict[str, Callable[[Any], Any]] = {
    "set": lambda c: c.at[()].set(0.5),
    "add": lambda c: c.at[...].add(0.5),
    "add an array": lambda c: c.at[()].add(hnp.ones((), dtype="float32")),
    "subtract": lambda c: c.at[()].subtract(0.5),
    "multiply": lambda c: c.at[()].multiply(np.float32(2)),
    "divide": lambda c: c.at[()].divide(3.0),
    "power": lambda c: c.at[()].power(2.0),
    "max": lambda c: c.at[...].max(2),
    "apply": lambda c: c.at[()].apply(hnp.exp),
    "get": lambda c: c.at[()].get(),
    "x[()] = v": lambda c: _assigned(c, (), 0.5),
    "x[...] = v": lambda c: _assigned(c, ..., np.float64(0.25)),
    "a carry": lambda c: hg.fori_loop(0, 3, lambda i, k: k.at[()].add(0.5), c),
    "inside": lambda c: hg.jit(lambda x: x * hnp.log(C).at[()].add(0.5))(hnp.ones((), dtype="float32")),
}


def _assigned(c: Any, key: Any, value: Any) -> Any:
    c[key] = value
    return c


@pytest.mark.parametrize("use", UPDATES)
def test_updates_of_numbers_are_of_the_type_that_others_see(use: str) -> None:
    for read in (False, True):
        c = hnp.log(C)
        assert not read or float(c) == LOG
        found, want = UPDATES[use](c), UPDATES[use](hnp.asarray(LOG, dtype="float32"))
        assert found.dtype == want.dtype == np.float32 and hnp.sin(found).dtype == np.float32
        np.testing.assert_allclose(np.asarray(found), np.asarray(want), rtol=1e-6)


def test_derivatives_by_numbers() -> None:
    f = lambda s: hnp.sum(ONES * hnp.exp(s))  # noqa: E731
    for gradient in (hg.grad(f), hg.jit(hg.grad(f)), hg.jacrev(f), hg.grad(lambda s: f(s) * 1.0)):
        assert gradient(0.1).dtype == np.float32
    assert float(hg.grad(f)(0.1)) == pytest.approx(2 * math.exp(0.1), rel=3e-16)
    assert hg.jacfwd(f)(0.1).dtype == np.float64
    assert hg.hessian(lambda s: hnp.exp(s))(0.1).dtype == np.float32
    assert hg.jvp(hnp.exp, (0.1,), (np.float32(1),))[1].dtype == np.float32


def test_what_others_see() -> None:
    c = hnp.log(C)
    assert c.nbytes == 4 and c.itemsize == 4 and c.shape == () and str(np.float32(LOG)) in repr(c)
    assert np.from_dlpack(c).dtype == np.float32 and np.asarray(c) == np.float32(LOG)
    for other in (pickle.loads(pickle.dumps(c)), copy.copy(c), hnp.asarray(c), hnp.astype(c, "float32"), hg.device_put(c, "cpu")):
        assert other.dtype == np.float32 and np.asarray(other) == np.float32(LOG)
    assert hnp.stack([c, c]).dtype == hnp.full(2, c).dtype == hnp.linspace(c, 2.0, 3).dtype == np.float32
    assert hg.block_until_ready(hnp.log(C)).dtype == np.float32 and dtypes.of(hg.jit(lambda: hnp.log(C))().dtype) is dtypes.float32
    assert hg.eval_shape(lambda: hnp.log(C)).dtype == np.float32
