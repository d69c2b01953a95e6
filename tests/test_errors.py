"""Every error that a user can cause: its type, its advice, and the user's line."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import errors

A = hg.tensor(np.ones((2, 3), np.float32))
B = hg.tensor(np.ones((4, 3), np.float32))
I8 = hg.tensor(np.ones(3, np.int8))
FLAGS = hg.tensor([True, False])


def line_of(text: str) -> str:
    """How an error names the line of this test that holds ``text``."""
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    source, first = inspect.getsourcelines(frame.f_back.f_code)
    place = next(i for i, line in enumerate(source) if text in line)
    return f"test_errors.py:{first + place}"


CASES: list[tuple[str, Any, type[Exception], str]] = [
    ("shapes", lambda: A + B, errors.ShapeError, r"add: shapes \[2, 3\] and \[4, 3\] do not broadcast: extents 2 and 4 differ on axis -2"),
    ("matmul", lambda: A @ B, errors.ShapeError, "matmul: .* 3 columns meet 4 rows"),
    ("matmul scalar", lambda: hnp.matmul(A, 2.0), errors.ShapeError, "at least one axis"),
    ("reshape", lambda: A.reshape(4), errors.ShapeError, "reshape: .* has 6 elements"),
    ("reshape -1", lambda: A.reshape(4, -1), errors.ShapeError, "does not divide"),
    ("two -1", lambda: A.reshape(-1, -1), errors.ShapeError, "more than one -1"),
    ("axis", lambda: hnp.sum(A, axis=2), errors.ShapeError, "sum: axis 2 of an array with 2 axes"),
    ("axis twice", lambda: hnp.sum(A, axis=(0, -2)), errors.ShapeError, "named twice"),
    ("axis type", lambda: hnp.sum(A, axis=0.5), errors.ArgumentError, "an axis is an integer"),
    ("an array alone", lambda: hnp.concat(3.0), errors.ArgumentError, "concat takes a sequence of arrays, not float"),
    ("number of elements", lambda: hnp.linspace(0, 1, 2.5), errors.ArgumentError, "linspace: a number of elements is an integer, not float"),
    ("sections", lambda: hnp.array_split(A, 0), errors.ArgumentError, "split: 0 sections"),
    ("shift", lambda: hnp.roll(A, 1.5), errors.ArgumentError, "roll: a shift is an integer, not float"),
    ("subscripts", lambda: hnp.einsum(A), errors.ArgumentError, "einsum: the first argument is subscripts such as"),
    ("function", lambda: hnp.apply_along_axis(2, 0, A), errors.ArgumentError, "apply_along_axis takes a function, not int"),
    ("name", lambda: hnp.searchsorted(A[0], 1.0, side="middle"), errors.ArgumentError, "searchsorted: side is 'left' or 'right', not 'middle'"),
    ("place", lambda: hnp.delete(A[0], 3), errors.IndexOutOfRange, "delete: an index beyond an axis of extent 3"),
    ("concat", lambda: hnp.concat([A, A[0]]), errors.ShapeError, "concatenate"),
    ("stack", lambda: hnp.stack([A, B]), errors.ShapeError, "stack: shapes"),
    ("no arrays", lambda: hnp.concat([]), errors.ShapeError, "no arrays"),
    ("empty max", lambda: hnp.max(A[:0]), errors.ShapeError, "reduce_max"),
    ("empty argmax", lambda: hnp.argmax(A[:, :0], axis=1), errors.ShapeError, "argmax"),
    ("squeeze", lambda: hnp.squeeze(A, axis=0), errors.ShapeError, "squeeze"),
    ("broadcast_to", lambda: hnp.broadcast_to(A, (3, 2)), errors.ShapeError, "broadcast_to"),
    ("negative extent", lambda: hnp.zeros((2, -1)), errors.ShapeError, "negative extent"),
    ("slice step", lambda: A[::0], errors.ShapeError, "step cannot be 0"),
    ("len", lambda: len(hg.tensor(1.0)), errors.ShapeError, "len"),
    ("iteration", lambda: list(hg.tensor(1.0)), errors.ShapeError, "iterated"),
    ("ambiguous truth", lambda: bool(A), errors.ShapeError, "6 elements, not one"),
    ("T", lambda: hnp.zeros((2, 2, 2)).T, errors.ShapeError, "permute_dims"),
    ("pad", lambda: hnp.pad(A, 9, mode="mean", stat_length=0), errors.ShapeError, "stat_length"),
    ("einsum", lambda: hnp.einsum("ij,jk", A, B), errors.ShapeError, "extents 3 and 4"),
    ("einsum terms", lambda: hnp.einsum("ij", A, B), errors.ArgumentError, "names 1 operands, 2 are given"),
    ("subtract bool", lambda: FLAGS - FLAGS, errors.DTypeError, "sub does not take bool"),
    ("float bits", lambda: A & A, errors.DTypeError, "and does not take float32"),
    ("order of complex", lambda: hg.tensor(1 + 2j) < 1, errors.DTypeError, "lt does not take complex64"),
    ("object dtype", lambda: hg.tensor(np.array(["a"])), errors.DTypeError, "not supported"),
    ("object in op", lambda: hnp.add(A, np.array([None] * 3)), errors.DTypeError, "not supported"),
    ("dtype name", lambda: hnp.zeros(3, dtype="float31"), errors.DTypeError, "float31"),
    ("float index", lambda: hnp.take(A, np.array([0.5]), axis=0), errors.DTypeError, "indices are integers"),
    ("negative power", lambda: I8**-1, errors.DTypeError, "negative power"),
    ("integer overflow", lambda: I8 + 1000, errors.IntegerRangeError, "1000 does not fit int8"),
    ("huge integer", lambda: hg.tensor(2**70), errors.IntegerRangeError, "does not fit int64"),
    ("index", lambda: A[2], errors.IndexOutOfRange, "index 2 is out of range for axis 0 of extent 2"),
    ("negative index", lambda: A[0, -4], errors.IndexOutOfRange, "index -4 .* axis 1 of extent 3"),
    ("index array", lambda: A[np.array([0, 5])], errors.IndexOutOfRange, "index 5"),
    ("too many indices", lambda: A[0, 0, 0], errors.IndexOutOfRange, "3 indices for an array with 2 axes"),
    ("two Ellipses", lambda: A[..., ...], errors.IndexOutOfRange, "one Ellipsis"),
    ("index type", lambda: A["x"], errors.ArgumentError, "not str"),
    ("float as index", lambda: [1, 2][hg.tensor(0.5)], errors.ArgumentError, "only an integer Tensor"),
    ("operand", lambda: hnp.add(A, "x"), errors.ArgumentError, "add takes Tensors, arrays and Python scalars, not str"),
    ("not an array", lambda: hg.tensor({}), errors.ArgumentError, "is no array"),
    ("ragged", lambda: hg.tensor([[1, 2], [3]]), errors.ArgumentError, "rectangular"),
    ("string list", lambda: hg.tensor([1, "a"]), errors.DTypeError, "not supported"),
    ("assignment", lambda: hg.tensor(A).__setitem__(2, 1), errors.IndexOutOfRange, "2"),
    ("device", lambda: hg.tensor(1.0, device="tpu"), errors.DeviceError, "'tpu' is not available"),
    ("to_device", lambda: A.to_device("tpu"), errors.DeviceError, "'tpu' is not available"),
    ("result for function", lambda: hg.grad(A), errors.ArgumentError, "^grad takes a function, not Tensor"),
    ("function of vjp", lambda: hg.vjp(3.0, A), errors.ArgumentError, "vjp takes a function, not float"),
    ("function of vmap", lambda: hg.vmap(None), errors.ArgumentError, "vmap takes a function, not NoneType"),
    ("argnums", lambda: hg.grad(hnp.sum, argnums="x")(A), errors.ArgumentError, "grad: argnums is an integer, not str"),
    ("static_argnums", lambda: hg.jit(lambda x: x, static_argnums="x"), errors.ArgumentError, "jit: static_argnums is an integer, not str"),
    ("donate_argnums", lambda: hg.jit(lambda x: x, donate_argnums=1.5), errors.ArgumentError, "jit: donate_argnums is an integer, not float"),
    (
        "dynamic",
        lambda: hg.jit(lambda x: x, dynamic=3),
        errors.ArgumentError,
        "jit: dynamic is a bool, 'auto' or a dict from arguments to axes, not int",
    ),
    ("dynamic axes", lambda: hg.jit(lambda x: x, dynamic={0: None}), errors.ArgumentError, "jit: dynamic: the axes of x are integers, not None"),
    ("function of hessian", lambda: hg.hessian(3), errors.ArgumentError, "^hessian takes a function, not int"),
    ("function of custom_vjp", lambda: hg.custom_vjp(3), errors.ArgumentError, "^custom_vjp takes a function, not int"),
    ("nondiff_argnums", lambda: hg.custom_jvp(hnp.sin, nondiff_argnums=1.5), errors.ArgumentError, "custom_jvp takes a sequence of positions"),
    ("threads", lambda: hg.set_num_threads(-1), errors.ArgumentError, "set_num_threads: a number of threads is at least 0, not -1"),
    ("threads type", lambda: hg.set_num_threads(2.0), errors.ArgumentError, "set_num_threads: a number of threads is an integer, not float"),
    ("branches", lambda: hg.switch(0, hnp.sin, 1.0), errors.ArgumentError, "switch takes a sequence of functions"),
    ("precision", lambda: hg.jit(lambda x: x, precision="double"), errors.ArgumentError, "jit: precision is 'exact' or "),
    ("jit of nothing", lambda: hg.jit(3), errors.ArgumentError, "takes a function"),
    ("no dlpack", lambda: hg.from_dlpack([1]), errors.ArgumentError, "__dlpack__"),
    ("copy=False", lambda: hg.asarray(np.ones(3), dtype="float32", copy=False), errors.ArgumentError, "needs a copy"),
]


@pytest.mark.parametrize(("act", "kind", "message"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_error(act: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        act()
    assert f"test_errors.py:{act.__code__.co_firstlineno}" in str(caught.value)
    assert isinstance(caught.value, errors.HologramError)


def test_every_error_is_also_a_builtin_one() -> None:
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, errors.HologramError) and kind is not errors.HologramError:
            assert len(kind.__mro__) > len(errors.HologramError.__mro__) + 1


# --- while tracing ---------------------------------------------------------------------------------------------------


READINGS = {
    "bool()": lambda a: 1 if a.sum() > 0 else 0,
    "float()": lambda a: float(a[0, 0]),
    "int()": lambda a: int(a[0, 0]),
    "item()": lambda a: a[0, 0].item(),
    "numpy()": lambda a: a.numpy(),
    "np.asarray()": lambda a: np.asarray(a),
    "tolist()": lambda a: a.tolist(),
    "index()": lambda a: [1, 2][hnp.argmax(a[0])],
    "__dlpack__()": lambda a: np.from_dlpack(a),
}


@pytest.mark.parametrize("reading", READINGS)
def test_value_read_while_tracing(reading: str) -> None:
    f = READINGS[reading]
    with pytest.raises(errors.TracedValueError) as caught:
        hg.jit(f)(A)
    text = str(caught.value)
    assert reading in text and "does not exist while tracing <lambda>" in text
    assert f"test_errors.py:{f.__code__.co_firstlineno}" in text
    if reading == "bool()":
        assert "hnp.where" in text


def test_mask_while_tracing() -> None:
    with pytest.raises(errors.TracedValueError, match="size depends on its values"):
        hg.jit(lambda a: a[a > 0])(A)


def test_errors_inside_a_trace_name_the_line() -> None:
    def f(a: Any, b: Any) -> Any:
        c = a * 2
        return c + b

    with pytest.raises(errors.ShapeError) as caught:
        hg.jit(f)(A, B)
    assert f"test_errors.py:{f.__code__.co_firstlineno + 2}, in f" in str(caught.value)


def test_repr_of_a_traced_value() -> None:
    seen = []
    hg.jit(lambda a: seen.append(repr(a)) or a)(A)
    assert seen == ["Tensor(traced, shape=(2, 3), dtype=float32)"]


def test_leaked_tracers() -> None:
    kept = []

    @hg.jit
    def f(a: Any) -> Any:
        kept.append(a * 2)
        return a

    f(A)
    for use in (
        lambda: kept[0] + 1,
        lambda: float(kept[0]),
        lambda: hnp.sum(kept[0]),
        lambda: hg.eval(kept[0]),
        lambda: hg.jit(lambda a: a + kept[0])(A),
    ):
        with pytest.raises(errors.LeakedTracerError, match="return it from the traced function"):
            use()
    with pytest.raises(errors.LeakedTracerError):
        hg.jit(lambda a: a)(kept[0])


def test_jit_arguments() -> None:
    f = hg.jit(lambda a, n=None: a)
    with pytest.raises(errors.ArgumentError, match=r"<lambda>: n is a str, which is no array: name it in static_argnums"):
        f(A, "text")
    with pytest.raises(errors.ArgumentError, match=r"n\['deep'\]\[0\] is a object"):
        f(A, {"deep": [object()]})
    with pytest.raises(errors.ArgumentError, match="returned a str"):
        hg.jit(lambda a: "text")(A)
    with pytest.raises(errors.ArgumentError, match="n: element type"):
        f(A, np.array(["a"]))
    with pytest.raises(errors.TreeError, match=r"keys that sort.*\(at "):
        f({1: A, "a": A})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"static_argnums": 2}, "static_argnums: f has 2 positional parameters, none at 2"),
        ({"static_argnums": (0, -3)}, "static_argnums: f has 2 positional parameters, none at -3"),
        ({"donate_argnums": 5}, "donate_argnums: f has 2 positional parameters, none at 5"),
        ({"static_argnames": "c"}, "static_argnames: f has no parameter 'c'"),
        ({"dynamic": {"c": 0}}, "dynamic: f has no parameter 'c'"),
        ({"dynamic": {2: 0}}, "dynamic: f has 2 positional parameters, none at 2"),
    ],
)
def test_options_of_jit_that_name_no_parameter(options: Any, message: str) -> None:
    def f(a: Any, b: Any, *, k: Any = 1) -> Any:
        return a

    with pytest.raises(errors.ArgumentError, match=message) as caught:
        hg.jit(f, **options)
    assert line_of("hg.jit(f, **options)") in str(caught.value)
    hg.jit(lambda *a, **o: a, **options) if options.get("static_argnums") != (0, -3) else None
    hg.jit(f, static_argnames="k", donate_argnums=-1, dynamic={-1: 0})


def test_out_of_memory_in_a_call_names_the_line() -> None:
    f = hg.jit(lambda a: hnp.broadcast_to(a, (1 << 45, 2, 3)) + 1)
    for _ in range(2):
        with pytest.raises(errors.OutOfMemory) as caught:
            f(A)
        assert line_of("            f(A)") in str(caught.value)


def test_unhashable_static_argument() -> None:
    f = hg.jit(lambda a, sizes: a, static_argnames="sizes")
    with pytest.raises(errors.StaticArgumentError, match="static argument sizes is a list, which cannot be hashed") as caught:
        f(A, sizes=[1, 2])
    assert line_of("f(A, sizes=[1, 2])") in str(caught.value)


def test_symbolic_extent_read_as_integer() -> None:
    with pytest.raises(TypeError, match="symbolic"):
        hg.jit(lambda a: [0 for _ in range(a.shape[0])], dynamic=True)(np.ones(3))


@pytest.mark.parametrize("read", [np.asarray, repr, hg.block_until_ready])
def test_too_large_to_allocate(read: Any) -> None:
    huge = hnp.ones((1 << 45,)) + 1
    with pytest.raises(errors.OutOfMemory, match="test_errors.py"):
        read(huge)


@pytest.mark.parametrize("read", [
    lambda: hnp.fft.irfft(hnp.ones(3), n=2**62),
    lambda: hnp.ones((2**40, 2**40)) + hnp.ones(2**40),
    lambda: hg.jit(lambda x: hnp.fft.rfft(x, n=2**70))(hnp.ones(3)),
], ids=["transform", "sum", "jitted"])  # fmt: skip
def test_results_that_no_process_can_have_are_told_before_they_are_compiled(read: Any) -> None:
    with pytest.raises(errors.OutOfMemory, match="a result of .* bytes cannot be allocated.*test_errors.py"):
        np.asarray(read())


REDUCTIONS = ("all", "any", "count_nonzero", "max", "mean", "min", "nanmax", "nanmean", "nansum", "nanvar", "prod", "ptp", "std", "sum", "var")
ALONG = ("argmax", "argsort", "concat", "cumprod", "cumsum", "trapezoid", "unwrap")
LISTED = ("average", "expand_dims", "flip", "median", "nanmedian")


@pytest.mark.parametrize("axis", [True, (True,), [0], [0, 1], []], ids=str)
@pytest.mark.parametrize("name", REDUCTIONS + ALONG + LISTED)
def test_axes_are_those_of_numpy(name: str, axis: Any) -> None:
    if name in LISTED and axis in (True, (True,), []):
        pytest.skip("NumPy takes a truth value for an axis here, and gives no axes a meaning")
    x = np.arange(6.0).reshape(2, 3) + 1
    given = [x, x] if name == "concat" else x
    try:
        expected = getattr(np, name)(given, axis=axis)
    except (TypeError, ValueError):
        with pytest.raises(errors.ArgumentError, match=r": an axis is an integer.*test_errors.py"):
            getattr(hnp, name)(given, axis=axis)
    else:
        np.testing.assert_allclose(np.asarray(getattr(hnp, name)(given, axis=axis)), expected, rtol=1e-6)


HUGE = {
    "arange": lambda n: hnp.arange(n),
    "arange, between": lambda n: hnp.arange(n, 2 * n + 1, dtype="uint64"),
    "array_split": lambda n: hnp.array_split(hnp.ones(3), n),
    "bartlett": lambda n: hnp.bartlett(n),
    "broadcast_to": lambda n: hnp.broadcast_to(hnp.ones(3), (n, 3)),
    "diag_indices": lambda n: hnp.diag_indices(n),
    "eye": lambda n: hnp.eye(n),
    "fft": lambda n: hnp.fft.fft(hnp.ones(3), n),
    "geomspace": lambda n: hnp.geomspace(1.0, 2.0, n),
    "hamming": lambda n: hnp.hamming(n),
    "indices": lambda n: hnp.indices((n,)),
    "kaiser": lambda n: hnp.kaiser(n, 2.0),
    "linspace": lambda n: hnp.linspace(0.0, 1.0, n),
    "logspace": lambda n: hnp.logspace(0.0, 1.0, n),
    "normal": lambda n: hg.random.normal(hg.random.key(0), (n,)),
    "one_hot": lambda n: hg.nn.one_hot(hnp.arange(3), n),
    "pad": lambda n: hnp.pad(hnp.ones(3), n),
    "repeat": lambda n: hnp.repeat(hnp.ones(3), n),
    "resize": lambda n: hnp.resize(hnp.ones(3), n),
    "tile": lambda n: hnp.tile(hnp.ones(3), n),
    "tri": lambda n: hnp.tri(n),
    "tril_indices": lambda n: hnp.tril_indices(n),
    "zeros": lambda n: hnp.zeros(n),
    "zeros, of which none": lambda n: hnp.zeros((0, n)),
    "number": lambda n: hnp.ones(3) + 2**n.bit_length() ** 2,
}  # fmt: skip


@pytest.mark.parametrize("n", [2**63, 2**64, 2**64 + 5, 2**70])
@pytest.mark.parametrize("jitted", [False, True], ids=["lazily", "traced"])
@pytest.mark.parametrize("f", HUGE.values(), ids=HUGE)
def test_what_64_bits_do_not_count_is_told(f: Any, n: int, jitted: bool) -> None:
    with pytest.raises((errors.OutOfMemory, errors.IntegerRangeError), match="test_errors.py"):
        hg.block_until_ready(hg.jit(lambda: f(n))() if jitted else f(n))


@pytest.mark.parametrize("decimals", [308, 309, 2**31, 2**63, 2**70])
def test_decimals_beyond_powers_of_ten(decimals: int) -> None:
    x = np.array([0.0, 1.5, -2.0, np.inf, np.nan])
    with np.errstate(all="ignore"):
        expected = np.round(x, min(decimals, 400)), np.round(x, -min(decimals, 400))
    np.testing.assert_array_equal(np.asarray(hnp.round(x, decimals)), expected[0])
    np.testing.assert_array_equal(np.asarray(hnp.round(x, -decimals)), expected[1])


def test_attributes_that_are_not_there() -> None:
    with pytest.raises(AttributeError, match="hologram.numpy has no 'nothing'"):
        hnp.nothing  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        hg.nothing  # noqa: B018


@pytest.mark.parametrize(
    "use", [hg.tensor, hg.asarray, lambda x: hg.tensor(1.0) + x, hnp.sin, hg.jit(lambda x: x), lambda x: hg.jit(lambda: hnp.sin(x))()]
)
def test_masks_are_not_lost(use: Any) -> None:
    with pytest.raises(errors.ArgumentError, match="masked arrays are not supported.*test_errors.py"):
        use(np.ma.array([1.0, 2.0], mask=[False, True]))


def test_containers_in_themselves() -> None:
    chain: dict[str, Any] = {}
    chain["next"] = chain
    with pytest.raises(errors.TreeError, match="does a container contain itself.*test_errors.py"):
        hg.jit(lambda x: 1.0)(chain)
    deep: Any = 1.0
    for _ in range(150):
        deep = [deep]
    assert hg.tree.leaves(hg.jit(lambda x: x)(deep))[0].item() == 1.0


def test_library_code_that_needs_an_extent() -> None:
    with pytest.raises(errors.TracedValueError, match="symbolic") as caught:
        hg.jit(lambda x: hnp.unstack(x), dynamic=True)(np.ones(6))
    assert "n0 = 6, at " in caught.value.__notes__[0] and "test_errors.py" in caught.value.__notes__[0]
