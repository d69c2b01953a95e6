"""xarray's objects with Tensors as data: what they compute are Tensors, with the numbers that arrays give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
from tests.support.runner.libraries import library

xr = library("xarray")
pd = library("pandas")
A = np.random.default_rng(0).normal(size=(24, 8))
GAPS = A.copy()
GAPS[3, 2] = GAPS[5] = np.nan

CASES: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda v: np.sin(v) * 2 + v - v.isel(t=0),
    **{name: lambda v, name=name: getattr(v, name)(dim="t") for name in "sum mean std var min max prod median count".split()},
    **{f"{name} of all": lambda v, name=name: getattr(v, name)() for name in "sum mean std".split()},
    "mean with NaNs": lambda v: v.mean("t", skipna=False),
    "std with ddof": lambda v: v.std("t", ddof=1),
    "quantile": lambda v: v.quantile([0.1, 0.5], "t"),
    "cumsum": lambda v: v.cumsum("t"),
    "groupby": lambda v: v.groupby("t.season").mean(),
    "groupby std": lambda v: v.groupby("t.season").std(),
    "anomalies": lambda v: v.groupby("t.month") - v.groupby("t.month").mean("t"),
    "groupby map": lambda v: v.groupby("t.season").map(lambda g: g - g.mean("t")),
    "groupby bins": lambda v: v.groupby_bins("x", [0, 3, 8]).mean(),
    "resample": lambda v: v.resample(t="QS").mean(),
    "coarsen": lambda v: v.coarsen(t=5, boundary="trim").mean(),
    **{f"rolling {name}": lambda v, name=name: getattr(v.rolling(t=3, center=True), name)() for name in "mean std max median count".split()},
    "rolling in two directions": lambda v: v.rolling(t=3, x=2, min_periods=1).sum(),
    "windows": lambda v: v.rolling(t=3).construct("w"),
    "weighted": lambda v: v.weighted(v.x + 1).mean("x"),
    "integrate": lambda v: v.integrate("x"),
    "shift and diff": lambda v: v.shift(t=2) + v.diff("t"),
    "pad": lambda v: v.pad(t=(1, 2), mode="reflect"),
    "where": lambda v: v.where(v > 0).fillna(-1.0),
    "where and drop": lambda v: v.where(v.x > 3, drop=True),
    "alignment": lambda v: v.isel(x=slice(0, 4)) + v.isel(x=slice(2, 6)),
    "reindex": lambda v: v.reindex(x=[0.0, 1.0, 20.0]),
    "selection": lambda v: v.sel(t=slice("2020-03", "2020-09")).sel(x=[2.9, 1.2], method="nearest"),
    "assignment": lambda v: _assigned(v.copy()),
    "concat": lambda v: xr.concat([v, v], "t"),
    "stack": lambda v: v.stack(z=("t", "x")).unstack("z"),
    "dot": lambda v: xr.dot(v.fillna(0), v.fillna(0), dim="t"),
    "corr": lambda v: xr.corr(v, v**2, "t"),
    "dataset": lambda v: (v.to_dataset() * 2).mean("t")["v"],
    "apply_ufunc": lambda v: xr.apply_ufunc(lambda p: p.mean(-1), v, input_core_dims=[["x"]]),
}


def _assigned(v: Any) -> Any:
    v[dict(t=0)] = 5.0
    v.loc[dict(x=3.0)] = 6.0
    return v


def data(values: Any) -> Any:
    times = pd.date_range("2020-01-01", periods=24, freq="MS")
    return xr.DataArray(values, dims=("t", "x"), coords={"t": times, "x": np.arange(8.0)}, name="v")


@pytest.mark.parametrize("values", [A, GAPS], ids=["values", "gaps"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_tensors_and_equal(name: str, values: np.ndarray) -> None:
    found, wanted = CASES[name](data(hg.tensor(values))), CASES[name](data(values))
    assert type(found.data) is hg.Tensor
    xr.testing.assert_allclose(found.as_numpy(), wanted, rtol=1e-10)
    assert found.dtype == wanted.dtype


def test_interpolation_and_gaps_are_right() -> None:
    for name in ("interp", "interpolate_na"):
        f = (lambda v: v.interp(x=[0.5, 1.5])) if name == "interp" else (lambda v: v.interpolate_na("t"))
        xr.testing.assert_allclose(f(data(hg.tensor(GAPS))).as_numpy(), f(data(GAPS)))


def test_blocks_of_dask() -> None:
    library("dask.array")
    v = data(hg.tensor(A)).chunk(t=6)
    found = hg.dask.fuse((v * 2).mean("t")).compute(scheduler="sync")
    assert type(found.data) is hg.Tensor
    np.testing.assert_allclose(found.values, (2 * A).mean(0))
