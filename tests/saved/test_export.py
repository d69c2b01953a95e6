"""Saved programs: what goes through a file comes out the same, and can be called, transformed and looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import hologram as hg
import hologram.nn as nn
import hologram.numpy as hnp
from hologram import dtypes, tree
from hologram.dtypes import DType
from hologram.errors import ArgumentError, DifferentiationError, ExportError, TracedValueError
from hologram.ir.graph import Graph
from hologram.ir.interpreter import evaluate
from hologram.primitives import TABLE
from hologram.saved.attributes import KINDS
from hologram.saved.graphs import GraphReader, GraphWriter, is_saved
from tests.support.comparing import same
from tests.support.graphs.random_graphs import arguments, exact_graphs, seeds
from tests.support.needs import needs_opencl
from tests.support.optable import cases_of, one_op_graph

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
V = np.array([1.0, -0.5, 2.0], np.float32)


def reloaded(f: Any, *args: Any, **options: Any) -> Any:
    """``f`` for these arguments, saved and loaded."""
    return hg.load(hg.export(f, *args, **options).to_bytes())


def round_trip(f: Any, *args: Any, **options: Any) -> Any:
    """Checks that a saved ``f`` gives what ``f`` gives, bit for bit, and that a second saving changes nothing."""
    jitted = hg.jit(f)
    program = hg.export(jitted, *args, **options)
    data = program.to_bytes()
    loaded = hg.load(data)
    assert loaded.to_bytes() == data
    want = jitted(*args, **options)
    same(loaded(*args, **options), want)
    same(loaded(*args, **options), want)  # natively
    return loaded


def through_json(graph: Graph) -> Graph:
    writer = GraphWriter()
    data = json.loads(json.dumps(writer.graph(graph), allow_nan=False))
    return GraphReader(writer.arrays, []).graph(data)


# --- the op table ----------------------------------------------------------------------------------------------------

ROWS = [row for row in TABLE.values() if is_saved(row)]


def test_every_attribute_of_the_table_has_a_codec() -> None:
    assert {name for row in ROWS for name in row.attrs} <= KINDS.keys()


@pytest.mark.parametrize("kind", sorted({row.kind for row in ROWS if row.kind not in ("control", "host", "mark", "project")}))
def test_rows_come_back(kind: str, everything: bool) -> None:
    for row in ROWS:
        if row.kind == kind:
            some = list(cases_of(row, everything))
            for row_, attrs, arrays in some if everything else some[:: max(1, len(some) // 6)]:
                graph = one_op_graph(row_, attrs, arrays)
                again = through_json(graph)
                assert row.kind == "gather" or "guard" in row.tests or str(again) == str(graph)
                same(evaluate(again, arrays), evaluate(graph, arrays))


@given(exact_graphs(), seeds)
def test_random_graphs_come_back(graph: Graph, seed: int) -> None:
    again = through_json(graph)
    assert str(again) == str(graph)
    arrays = arguments(graph, seed, special=True)
    same(evaluate(again, arrays), evaluate(graph, arrays))


# --- calls -----------------------------------------------------------------------------------------------------------


def test_containers_scalars_and_constants() -> None:
    weights = hg.tensor(np.arange(8, dtype=np.float32).reshape(4, 2))

    def f(x: Any, params: Any, pair: Any, *, scale: Any, flag: Any = None) -> Any:
        y = x @ weights * scale + params["b"][0]
        return OrderedDict(z=y, a=(pair[1], [pair[0] + 1, None]), c={2: flag, 1: np.arange(3)})

    loaded = round_trip(f, X, {"b": [np.ones(2, np.float32)], "none": None}, (3, True), scale=0.1)
    assert loaded.in_specs[0][0].shape == (3, 4) and loaded.in_specs[1]["scale"].weak
    assert loaded.out_specs["z"].dtype is dtypes.float32 and loaded.out_specs["a"][1][1] is None
    assert "scale: Python float" in str(loaded)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=repr)
def test_element_types(dtype: DType) -> None:
    x = np.array([0, 1, 2, 3], np.int8).astype(dtype.np)
    held = hg.tensor(x[::-1])
    round_trip(lambda a: (hnp.where(a == held, a, held), hnp.broadcast_to(held[1], (2, 3))), x)


def test_numbers_of_every_sort_as_constants() -> None:
    special = np.array([np.nan, -np.inf, -0.0, 5e-324])
    round_trip(lambda x: [x + c for c in special] + [x * (1 + 2j), hnp.maximum(x, -(2**63))], np.ones(2))


def test_arguments_by_name_and_static_ones() -> None:
    f = hg.jit(lambda x, n, y: x[:n] + y, static_argnums=1)
    loaded = reloaded(f, X, 2, V[:1])
    same(loaded(X, V[:1]), f(X, 2, V[:1]))
    same(loaded(y=V[:1], x=X), f(X, 2, V[:1]))
    g = hg.jit(lambda *, a, b: a - b)
    saved = reloaded(g, a=X, b=V[0])
    same(saved(b=V[0], a=X), g(a=X, b=V[0]))


def test_another_call_is_refused() -> None:
    loaded = reloaded(lambda x, s: x * s, X, 2.0)
    for args, words in [
        ((X[:2], 2.0), r"x has the shape \[2, 4\].*exported for \[3, 4\]"),
        ((X.astype(np.float64), 2.0), "x is a float64"),
        ((X, 2), "s is a Python int, and the program was exported for Python float"),
        ((X,), "structure"),
        ((X, 2.0, 1), "structure"),
        (([X], 2.0), "structure"),
    ]:
        with pytest.raises(ArgumentError, match=words):
            loaded(*args)
        with pytest.raises(ArgumentError, match="exported for"):
            hg.jit(lambda args: loaded(*args))(args)


def test_sizes_that_vary() -> None:
    f = hg.jit(lambda x, y: (x[3:] + y.sum() / x.shape[0], hnp.concatenate([x, x])[::2], x[x.shape[0] // 2 :]), dynamic=True)
    loaded = reloaded(f, np.ones(10, np.float32), V)
    for n, m in [(10, 3), (7, 30), (30, 7), (10, 3), (10, 3)]:
        x, y = np.arange(n, dtype=np.float32), np.arange(m, dtype=np.float32)
        same(loaded(x, y), f(x, y))
        same(hg.jit(loaded)(x, y), f(x, y))
    same(hg.jit(loaded, dynamic=True)(x, y), f(x, y))
    for n, m in [(3, 3), (2, 5), (1, 4)]:
        with pytest.raises(ArgumentError, match="exported for sizes"):
            loaded(np.ones(n, np.float32), np.ones(m, np.float32))
    assert "float32[n0]" in repr(loaded)


def test_types_stand_for_arrays() -> None:
    program = hg.export(lambda x: hnp.sum(x, axis=0), hg.ShapeDtypeStruct((10**6, 10**6), "float32"))
    assert program.out_specs.shape == (10**6,)
    same(hg.export(lambda p: p["x"] + 1, {"x": hg.ShapeDtypeStruct((3,), np.float32)})({"x": V}), V + 1)


def test_donated_arguments_stay_donated() -> None:
    f = hg.jit(lambda state, x: (state + x, x), donate_argnums=0)
    loaded = reloaded(f, hg.tensor(V), V)
    state = hg.tensor(V)
    loaded(state, V)
    with pytest.raises(hg.errors.DonatedBufferError):
        state + 1


def test_devices_are_chosen_anew() -> None:
    loaded = reloaded(lambda x: hg.device_put(x, "cpu") + 1, V)
    same(loaded(V), V + 1)
    assert "place" not in str(loaded)


@needs_opencl
def test_a_program_runs_on_the_device_it_is_loaded_for() -> None:
    f = hg.jit(lambda x: (hnp.sum(x * x, axis=1), hnp.sqrt(x * x)), precision="exact")
    data = hg.export(f, X).to_bytes()
    there, here = hg.load(data, device="opencl")(X), hg.load(data)(X)
    same(there, here)
    assert str(there[0].device).startswith("opencl") and str(here[0].device) == "cpu"
    with pytest.raises(hg.errors.DeviceError):
        hg.load(data, device="opencl:99")


def test_precision_is_kept() -> None:
    x = np.random.default_rng(0).standard_normal(1000, dtype=np.float32)
    f = hg.jit(lambda x: hnp.sum(x * x + x), precision="exact")
    loaded = reloaded(f, x)
    assert loaded.lower(x).precision == "exact"
    same(loaded(x), f(x))


# --- programs --------------------------------------------------------------------------------------------------------


def _loops(x: Any) -> Any:
    last, every = hg.scan(lambda c, row: (c + row, c * 2), hnp.zeros(4), x, reverse=True)
    doubled = hg.while_loop(lambda c: hnp.max(c) < 100, lambda c: hg.fori_loop(0, 2, lambda i, d: d * 1.5 + i, c), hnp.abs(x))
    return last, every, doubled, hg.cond(hnp.sum(x) > 0, lambda v: v + 1, lambda v: v - 1, x), hg.switch(7, [hnp.sin, hnp.cos, hnp.exp], x)


def _host(x: Any) -> Any:
    a = x @ x.T + 4 * hnp.eye(3, dtype=x.dtype)
    u, s, v = hg.linalg.svd(x, full_matrices=False)
    return hg.linalg.cholesky(a), hg.linalg.solve(a, x), hg.linalg.eigh(a), s, hg.linalg.qr(x), hg.fft.rfft(x), hg.fft.ifft(hg.fft.fft(x + 0j))


def _moving(x: Any) -> Any:
    order = hnp.argsort(x, axis=1)
    return hnp.take_along_axis(x, order, 1), x.at[1, ::2].add(5.0), hnp.cumsum(x, axis=1), x[hnp.asarray([2, -1])], hnp.pad(x, 1), hnp.flip(x)


def _random(key: Any) -> Any:
    return hg.random.normal(key, (5,)), hg.random.gamma(hg.random.split(key)[0], 2.0, (4,)), hg.random.permutation(key, 7)


def _layers(x: Any) -> Any:
    image = hnp.reshape(x, (1, 1, 3, 4))
    return nn.softmax(x), nn.layer_norm(x), nn.conv2d(image, hnp.ones((2, 1, 2, 2))), nn.max_pool2d(image, 2), nn.gelu(x)


def _complex(x: Any) -> Any:
    z = x + 1j * x[::-1]
    return hnp.sum(z * z, axis=0), hnp.exp(z), hnp.prod(z, axis=1)


@pytest.mark.parametrize("f", [_loops, _host, _moving, _layers, _complex, hg.grad(lambda x: hnp.sum(nn.softmax(x)[:, 0])), hg.vmap(hnp.sort)])
def test_programs(f: Callable[..., Any]) -> None:
    round_trip(f, X)


def test_random_numbers() -> None:
    round_trip(_random, hg.random.key(3))


def test_well_behaved_programs_get_no_guards() -> None:
    """The ranges of what the front end writes are proven, so files give back the graph that was saved, and its compiled code."""
    for f in (_loops, _moving):
        jitted = hg.jit(f)
        assert str(reloaded(jitted, X).graph) == str(hg.make_graph(f)(X))


# --- inside transforms -----------------------------------------------------------------------------------------------


def test_transforms_go_through() -> None:
    def f(x: Any, w: Any) -> Any:
        return hnp.sum(hnp.tanh(x @ w) ** 2)

    w = np.linspace(-1, 1, 8, dtype=np.float32).reshape(4, 2)
    loaded = reloaded(f, X, w)
    for transform in (hg.grad, hg.value_and_grad, hg.hessian, lambda g: hg.jit(hg.grad(g, argnums=1))):
        same(transform(loaded)(X, w), transform(f)(X, w))
    same(hg.vmap(loaded, in_axes=(None, 0))(X, np.stack([w, -w])), hg.vmap(f, in_axes=(None, 0))(X, np.stack([w, -w])))


def test_loops_and_factors_are_differentiated() -> None:
    def f(x: Any) -> Any:
        c, _ = hg.scan(lambda c, row: (hnp.sin(c) + row, None), hnp.zeros(4), x)
        return hnp.sum(c) + hnp.sum(hg.linalg.cholesky(x @ x.T + 4 * hnp.eye(3, dtype=x.dtype)))

    same(hg.jit(hg.grad(reloaded(f, X)))(X), hg.jit(hg.grad(f))(X))


def test_a_program_may_be_a_part_of_another() -> None:
    inner = reloaded(lambda x: hnp.cumsum(x, axis=1), X)
    outer = round_trip(lambda x: inner(x) + hg.scan(lambda c, row: (c + row, inner(x)[0]), hnp.zeros(4), x)[0], X)
    assert "cumsum" in str(outer)
    with hg.disable_jit():
        same(inner(X), np.asarray(hnp.cumsum(X, axis=1)))


def test_stopped_gradients_stay_stopped() -> None:
    loaded = reloaded(lambda x: hnp.sum(x * hg.stop_gradient(x)), X)
    same(hg.grad(loaded)(X), X)


def test_a_checkpoint_leaves_its_ops() -> None:
    f = hg.checkpoint(lambda x: hnp.sum(hnp.sin(x)))
    same(hg.grad(reloaded(f, X))(X), hg.grad(f)(X))


def test_custom_derivatives_are_kept() -> None:
    scale = hg.tensor(np.float32([3.0]))

    @hg.custom_jvp
    def clip(x: Any, low: Any) -> Any:
        return hnp.clip(x, low, 1), low + 1

    clip.defjvp(lambda primals, tangents: (clip(*primals), (tangents[0] * scale, tangents[1])))

    @hg.custom_vjp
    def scaled(x: Any, n: Any) -> Any:
        return x * n

    scaled.defvjp(lambda x, n: (x * n, (x, n)), lambda saved, ct: (ct * 7 + saved[1], None))

    def f(x: Any, y: Any) -> Any:
        c, _ = hg.scan(lambda c, row: (c + clip(row, 0.0)[0], None), hnp.zeros(4), x)
        return hnp.sum(scaled(clip(x, -1.0)[0] * y, 2)) + hnp.sum(c)

    loaded = round_trip(f, X, X)
    for transform in (lambda g: hg.jit(hg.grad(g, (0, 1))), lambda g: hg.vmap(hg.grad(g))):
        args = (X, X) if transform(f).__class__.__name__ == "Jitted" else (X[None], X[None])
        same(transform(loaded)(*args), transform(f)(*args))
    with pytest.raises(DifferentiationError, match="forward mode"):
        hg.jvp(loaded, (X, X), (X, X))


def test_derivatives_by_what_a_function_closes_over_are_refused() -> None:
    def f(x: Any, y: Any) -> Any:
        scaled = hg.custom_jvp(lambda x: x * y)
        scaled.defjvps(lambda tangent, result, x: 7 * tangent)
        return hnp.sum(scaled(x) * 2)

    loaded = round_trip(f, X, X)
    for argument in (0, 1):
        with pytest.raises(DifferentiationError, match="custom derivative is not in its file"):
            hg.grad(loaded, argument)(X, X)


def test_second_derivatives_of_rules_that_call_their_function() -> None:
    @hg.custom_jvp
    def grow(x: Any) -> Any:
        return hnp.exp(x)

    grow.defjvp(lambda primals, tangents: (grow(*primals), tangents[0] * grow(*primals)))
    loaded = reloaded(lambda x: hnp.sum(grow(x)), V)
    same(hg.grad(loaded)(V), np.asarray(hnp.exp(V)))
    with pytest.raises(DifferentiationError, match="custom derivative is not in its file"):
        hg.hessian(loaded)(V)


def test_pooling_is_differentiated() -> None:
    f = lambda x: hnp.sum(nn.max_pool2d(hnp.reshape(x, (1, 1, 3, 4)), 2) ** 2)  # noqa: E731
    same(hg.grad(round_trip(f, X))(X), hg.grad(f)(X))


def test_rules_that_cannot_be_saved_are_not_guessed() -> None:
    @hg.custom_jvp
    def looks(x: Any) -> Any:
        return x * 2

    looks.defjvp(lambda primals, tangents: (looks(*primals), tangents[0] * float(primals[0][0, 0])))  # reads a value
    loaded = round_trip(lambda x, y: looks(x) * y, X, X)
    with pytest.raises(DifferentiationError, match="custom derivative is not in its file"):
        hg.grad(lambda x: hnp.sum(loaded(x, X)))(X)
    same(hg.grad(lambda y: hnp.sum(loaded(X, y)))(X), 2 * X)
    same(hg.vmap(loaded)(X[None], X[None]), 2 * X[None] * X)


# --- looking at it ---------------------------------------------------------------------------------------------------


def test_stages_of_a_loaded_program() -> None:
    loaded = reloaded(lambda x: hnp.exp(x) + 1, X)
    assert "exp" in loaded.lower(X).as_text("trace") and "exp" in loaded.lower(X).compile().as_text("canonical")
    assert "exp" in str(hg.make_graph(loaded)(X)) and "memory" in str(hg.explain(loaded)(X))
    assert loaded.__name__ == "<lambda>" and "float32[3, 4]" in loaded.__doc__
    assert hg.export(loaded, X) is loaded
    with pytest.raises(TracedValueError):
        hg.jit(lambda x: float(loaded(x)[0, 0]))(X)


# --- what cannot be saved --------------------------------------------------------------------------------------------

Point = namedtuple("Point", "x y")


class Registered:
    def __init__(self, x: Any) -> None:
        self.x = x


tree.register(Registered, lambda r: ([r.x], None), lambda _, children: Registered(*children))


def _calls_back(x: Any) -> Any:
    return hg.pure_callback(np.sin, hg.ShapeDtypeStruct((3, 4), np.float32), x)


@pytest.mark.parametrize(
    ("f", "argument", "words"),
    [
        (_calls_back, X, "export: callback: it calls sin"),
        (lambda x: hg.scan(lambda c, row: (c + _calls_back(x), None), x, x)[0], X, "export: callback: it calls sin"),
        (lambda p: p.x, Registered(X), "the arguments hold a Registered"),
        (lambda p: p.x, Point(X, X), "the arguments hold a Point"),
        (lambda x: Registered(x), X, "the results hold a Registered"),
        (lambda p: p[1.5], {1.5: X}, "key 1.5"),
    ],
)
def test_what_a_file_cannot_hold(f: Any, argument: Any, words: str) -> None:
    with pytest.raises(ExportError, match=words):
        hg.export(f, argument)


# --- files -----------------------------------------------------------------------------------------------------------


def test_another_process_runs_it_without_the_function(tmp_path: Path) -> None:
    path = tmp_path / "model.hg"
    hg.export(lambda x: hnp.sum(hnp.tanh(x), axis=1), X).save(path)
    code = f"import numpy as np, hologram as hg; print(np.asarray(hg.load({str(path)!r})(np.ones((3, 4), np.float32))).tolist())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert np.allclose(json.loads(done.stdout), 4 * np.tanh(1))


def test_paths_files_and_bytes(tmp_path: Path) -> None:
    program = hg.export(lambda x: x * 2, V)
    program.save(tmp_path / "a")
    program.save(str(tmp_path / "a"))
    with open(tmp_path / "b", "wb") as file:
        program.save(file)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == program.to_bytes()
    with open(tmp_path / "b", "rb") as file:
        same(hg.load(file)(V), V * 2)
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["a", "b"]
    with pytest.raises(FileNotFoundError):
        hg.load(tmp_path / "c")
    with pytest.raises(FileNotFoundError):
        program.save(tmp_path / "none" / "a")


def test_arrays_are_saved_once(tmp_path: Path) -> None:
    w = hg.tensor(np.ones((64, 64), np.float32))
    data = hg.export(lambda x: x @ w @ w + hg.scan(lambda c, _: (c @ w, None), x, None, length=2)[0], np.ones((2, 64), np.float32)).to_bytes()
    assert len(data) < 2 * 64 * 64 * 4
