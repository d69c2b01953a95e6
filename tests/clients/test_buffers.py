"""Libraries that read arrays' memory, on Tensors: pictures, files, compiled code, plots, graphs, tables; and their arrays as arguments."""

from __future__ import annotations

import base64
import importlib
import os
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError, DTypeError

V = hg.tensor(np.arange(5.0))
M = hg.tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
PHOTO = hg.tensor(np.arange(48, dtype=np.uint8).reshape(4, 4, 3))


def needed(name: str) -> Any:
    """A library, or a skip that says which one is not there."""
    return pytest.importorskip(name, reason=f"{name} is not installed: pip install hologram-compute[clients]")


def test_the_standard_library(tmp_path: Path) -> None:
    data = np.asarray(V).tobytes()
    assert zlib.crc32(V) == zlib.crc32(data) and base64.b64encode(V) == base64.b64encode(data)
    with open(tmp_path / "v.bin", "wb") as file:
        file.write(V)
        file.writelines([M, M.T])
        os.write(file.fileno(), b"")
    assert (tmp_path / "v.bin").read_bytes() == data + M.tobytes() + M.T.tobytes()
    np.save(tmp_path / "v.npy", V)
    np.savez(tmp_path / "v.npz", v=V, m=M.T)
    np.testing.assert_array_equal(np.load(tmp_path / "v.npz")["m"], np.asarray(M.T))


def test_pillow() -> None:
    image = needed("PIL.Image")
    for of, want in (
        (PHOTO, np.asarray(PHOTO)),
        (PHOTO[..., 0], np.asarray(PHOTO)[..., 0]),
        (PHOTO[::-1], np.asarray(PHOTO)[::-1]),
        (M, np.asarray(M)),
    ):
        made = image.fromarray(of)
        np.testing.assert_array_equal(np.asarray(made), want)
    assert image.frombytes("RGB", (4, 4), PHOTO).tobytes() == PHOTO.tobytes()
    made = image.fromarray(PHOTO)
    np.testing.assert_array_equal(hg.tensor(made), PHOTO)
    np.testing.assert_array_equal(hg.jit(lambda x: x * 2)(made), np.asarray(PHOTO) * 2)
    assert float(hnp.mean(made)) == np.asarray(PHOTO).mean() and hnp.stack([made, made]).shape == (2, 4, 4, 3)


def test_safetensors() -> None:
    tensors = needed("safetensors.numpy")
    data = tensors.save({"v": V, "turned": M.T, "half": M.astype("bfloat16").astype("float16")})
    found = tensors.load(data)
    np.testing.assert_array_equal(found["turned"], np.asarray(M).T)
    np.testing.assert_array_equal(found["v"], V)


def test_numbas_ufuncs() -> None:
    numba = needed("numba")

    @numba.vectorize(["float64(float64)"])
    def plus_one(x: Any) -> Any:
        return x + 1

    with hg.settings.override(warn_fallback=False):
        np.testing.assert_array_equal(plus_one(V), np.arange(1.0, 6.0))


CYTHON = """
def total(const double[:] x):
    cdef double s = 0
    cdef Py_ssize_t i
    for i in range(x.shape[0]):
        s += x[i]
    return s

def corner(const float[:, ::1] x):
    return x[0, x.shape[1] - 1]

def write(double[:] x):
    x[0] = 1
"""


def test_cython_memoryviews(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--all"):
        pytest.skip("compiles C for 15 seconds: --all runs it")
    needed("Cython")
    if shutil.which("gcc") is None:
        pytest.skip("there is no C compiler")
    (tmp_path / "hologram_client.pyx").write_text(CYTHON)
    build = "from setuptools import setup; from Cython.Build import cythonize; setup(ext_modules=cythonize('hologram_client.pyx', quiet=True))"
    done = subprocess.run([sys.executable, "-c", build, "build_ext", "--inplace"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    sys.path.insert(0, str(tmp_path))
    try:
        client = importlib.import_module("hologram_client")
    finally:
        sys.path.remove(str(tmp_path))
    assert client.total(V) == 10.0 and client.total(V[::2]) == 6.0 and client.corner(M) == 2.0 and client.corner(hnp.asarray(M.T) + 0) == 3.0
    with pytest.raises((BufferError, ValueError), match="read-only"):
        client.write(V)


def test_networkx() -> None:
    networkx = needed("networkx")
    weights = hg.tensor(np.array([[0, 1.0, 0], [1.0, 0, 2.0], [0, 2.0, 0]]))
    graph = networkx.from_numpy_array(weights)
    assert list(graph.edges(data="weight")) == [(0, 1, 1.0), (1, 2, 2.0)]
    assert networkx.from_numpy_array(weights.astype("int64"), parallel_edges=True).number_of_edges() == 2
    assert networkx.shortest_path_length(graph, 0, 2, weight="weight") == 3.0


@pytest.fixture
def axes() -> Any:
    matplotlib = needed("matplotlib")
    matplotlib.use("Agg")
    plots = importlib.import_module("matplotlib.pyplot")
    figure, made = plots.subplots()
    yield made
    made.figure.canvas.draw()
    plots.close(figure)


PLOTS: dict[str, Any] = {
    "plot": lambda a: a.plot(V, V * V),
    "hist": lambda a: np.testing.assert_array_equal(a.hist(V, bins=hg.tensor([0.0, 2.0, 5.0]))[0], [2, 3]),
    "hist of several": lambda a: a.hist([V, V * 2], weights=[V, V]),
    "hist2d": lambda a: a.hist2d(V, V),
    "bar": lambda a: a.bar_label(a.bar(V, V, yerr=V)),
    "barh": lambda a: a.barh(V, V, xerr=V),
    "text": lambda a: (a.text(V[1], V[2], "x"), a.annotate("y", xy=V[:2], xytext=V[1:3])),
    "scatter": lambda a: a.scatter(V, V, s=V, c=V),
    "imshow": lambda a: a.imshow(PHOTO),
    "pcolormesh": lambda a: a.pcolormesh(M),
    "contourf": lambda a: a.contourf(hnp.outer(V, V)),
    "fill_between": lambda a: a.fill_between(V, V, V * 2),
    "errorbar": lambda a: a.errorbar(V, V, yerr=V, xerr=V),
    "boxplot": lambda a: a.boxplot([V, V]),
    "violinplot": lambda a: a.violinplot([V, V]),
    "quiver": lambda a: a.quiver(V, V, V, V),
    "limits and ticks": lambda a: (a.set_xlim(V[0], V[3]), a.set_xticks(V), a.axvline(V[1])),
}


@pytest.mark.costly(2)
@pytest.mark.parametrize("name", PLOTS)
def test_matplotlib(name: str, axes: Any) -> None:
    with hg.settings.override(warn_fallback=False):
        PLOTS[name](axes)


def test_surfaces_of_matplotlib() -> None:
    needed("mpl_toolkits.mplot3d")
    plots = importlib.import_module("matplotlib.pyplot")
    figure = plots.figure()
    axes = figure.add_subplot(projection="3d")
    x, y = hnp.meshgrid(hnp.arange(4.0), hnp.arange(5.0))
    with hg.settings.override(warn_fallback=False):
        axes.plot_surface(x, y, x * y)
        axes.plot_wireframe(x, y, x)
        axes.plot_trisurf(x.ravel(), y.ravel(), (x * y).ravel())
        axes.bar3d(x.ravel(), y.ravel(), 0 * x.ravel(), 1, 1, y.ravel())
        figure.canvas.draw()
    plots.close(figure)


def test_arrow_arrays_of_a_type() -> None:
    arrow = needed("pyarrow")
    made = arrow.array(V, type=arrow.float32())
    assert made.type == arrow.float32() and made.to_pylist() == V.tolist()
    assert arrow.array(V, type=arrow.int16()).to_pylist() == [0, 1, 2, 3, 4]
    lists = arrow.list_(arrow.float64(), 3)
    assert arrow.array(M, type=lists).type == lists and arrow.array(M, type=lists).to_pylist() == M.tolist()
    assert arrow.table({"v": V}, schema=arrow.schema([("v", arrow.float32())])).to_pydict() == {"v": V.tolist()}
    with pytest.raises(DTypeError, match="int8 is asked for"):
        arrow.array(V * 1.5, type=arrow.int8())


def test_lists_of_arrow_and_polars() -> None:
    """Arrays of lists of one length are arrays of more axes, nested ones too."""
    arrow = needed("pyarrow")
    cube = np.arange(12.0).reshape(2, 3, 2)
    for data, wanted in (
        (arrow.array(M), np.asarray(M)),
        (arrow.array([[1.0, 2.0], [3.0, 4.0]]), [[1.0, 2.0], [3.0, 4.0]]),
        (arrow.chunked_array([arrow.array(M), arrow.array(M)]), np.concatenate([M, M])),
        (arrow.array(hg.tensor(cube)), cube),
    ):
        np.testing.assert_array_equal(hg.tensor(data), wanted)
    for ragged in ([[1.0, 2.0], [3.0]], [["a"], ["b"]], [[1.0], None]):
        with pytest.raises(ArgumentError, match="is no array"):
            hg.tensor(arrow.array(ragged))
    polars = needed("polars")
    np.testing.assert_array_equal(hnp.sum(polars.Series([[1.0, 2.0], [3.0, 4.0]]), axis=0), [4.0, 6.0])


def test_pyarrow() -> None:
    arrow = needed("pyarrow")
    made = arrow.array(V)
    assert made.type == arrow.float64() and made.to_pylist() == V.tolist()
    assert made.buffers()[1].address == V.ctypes.data  # shared
    assert arrow.array(M).type == arrow.list_(arrow.field("item", arrow.float32()), 3) and arrow.array(M).to_pylist() == M.tolist()
    assert arrow.table({"v": V, "even": V % 2 == 0}).to_pydict()["even"] == [True, False, True, False, True]
    np.testing.assert_array_equal(hg.jit(lambda x: x * 2)(made), np.arange(5.0) * 2)
    assert float(hnp.sum(made)) == float(hnp.sum(arrow.chunked_array([made]))) == 10.0
    with_null = hnp.isnan(arrow.array([1.0, None]))
    assert with_null.tolist() == [False, True]


def test_polars() -> None:
    polars = needed("polars")
    column = polars.Series("v", V)
    assert column.dtype == polars.Float64 and column.to_list() == V.tolist()
    frame = polars.DataFrame({"v": V, "w": V * 2})
    assert frame.select(polars.col("w").sum()).item() == 20.0 and polars.Series(M).dtype == polars.Array(polars.Float32, 3)
    np.testing.assert_array_equal(hg.jit(lambda x: x + 1)(column), np.arange(1.0, 6.0))
    np.testing.assert_array_equal(hnp.sum(frame, axis=0), [10.0, 20.0])


def test_pandas() -> None:
    pandas = needed("pandas")
    series, frame = pandas.Series(V, name="v"), pandas.DataFrame({"a": V, "b": V * 2})
    assert series.tolist() == V.tolist() and pandas.DataFrame(M).shape == (2, 3) and frame["b"].sum() == 20.0
    np.testing.assert_array_equal(hg.jit(lambda x: x * 2)(series), np.arange(5.0) * 2)
    np.testing.assert_array_equal(hg.jit(lambda d: hnp.sum(d["x"], axis=0))({"x": frame}), [10.0, 20.0])
    np.testing.assert_array_equal(hnp.add(V, series), np.arange(5.0) * 2)
    np.testing.assert_array_equal(hg.grad(lambda x: hnp.sum(x * x))(series), np.arange(5.0) * 2)
    np.testing.assert_array_equal(hnp.matmul(frame, np.ones(2)), np.arange(5.0) * 3)


def test_arrays_of_the_standard_library_and_of_torch() -> None:
    array, torch = importlib.import_module("array"), needed("torch")
    for x in (array.array("d", [1, 2, 3]), memoryview(np.arange(1.0, 4.0)), bytearray(b"\1\2\3"), torch.arange(1.0, 4.0)):
        assert hg.jit(lambda x: x * 2)(x).tolist() == [2, 4, 6] and hnp.cumsum(x).tolist() == [1, 3, 6]
        assert hnp.stack([x, x]).shape == (2, 3) and hnp.where(hg.tensor([True, False, True]), x, 0).tolist() == [1, 0, 3]
    np.testing.assert_array_equal(torch.tensor(V), V)
