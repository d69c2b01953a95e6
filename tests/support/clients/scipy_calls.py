"""Calls of SciPy on Tensors under SCIPY_ARRAY_API=1, each compared with the same call on arrays.

Run as a program, with a number of so many calls chosen at random (the same in each run), else of all. It prints a JSON object that says of each
``Tensor`` (a right result, of Tensors), ``array`` (a right result, of arrays or numbers), ``wrong: …`` or ``raised …``.
"""

from __future__ import annotations

import json
import os
import random
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

os.environ["SCIPY_ARRAY_API"] = "1"

import scipy.cluster.hierarchy as hierarchy  # noqa: E402
import scipy.cluster.vq as vq  # noqa: E402
import scipy.differentiate as differentiate  # noqa: E402
import scipy.fft as fft  # noqa: E402
import scipy.integrate as integrate  # noqa: E402
import scipy.interpolate as interpolate  # noqa: E402
import scipy.linalg as linalg  # noqa: E402
import scipy.ndimage as ndimage  # noqa: E402
import scipy.optimize.elementwise as roots  # noqa: E402
import scipy.signal as signal  # noqa: E402
import scipy.spatial.distance as distance  # noqa: E402
import scipy.special as special  # noqa: E402
import scipy.stats as stats  # noqa: E402
from scipy.spatial.transform import Rotation  # noqa: E402

import hologram as hg  # noqa: E402

R = np.random.default_rng(0)
x, p, u = R.normal(size=40), R.uniform(0.05, 0.95, 40), R.uniform(0.1, 5, 20)
y, v = R.normal(size=40) + 0.3 * x, np.roll(u, 3)
points, others, grid, quaternions = R.normal(size=(12, 3)), R.normal(size=(5, 3)), R.normal(size=(8, 9)), R.normal(size=(5, 4))
counts, knots = R.integers(1, 9, 12).astype(float), np.linspace(0, 1, 20)
square = grid[:5, :5] @ grid[:5, :5].T + 5 * np.eye(5)
CALLS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {}


def calls(module: Any, names: str, *args: np.ndarray) -> None:
    """Functions of ``module``, all of the same arguments."""
    short = module.__name__.removeprefix("scipy.")
    CALLS.update({f"{short}.{name}": (getattr(module, name), args) for name in names.split()})


def call(name: str, f: Callable[..., Any], *args: np.ndarray) -> None:
    CALLS[name] = f, args


calls(special, "entr erf erfc erfinv expit i0 i0e i1 i1e gammaln log_ndtr logit ndtr ndtri psi gamma exp1 expi expm1 log1p cbrt exp2 exp10 cosm1", p)
calls(special, "exprel gammasgn loggamma rgamma sinc zetac erfcx j0 k0 ellipk spence log_softmax softmax logsumexp digamma", p)
calls(
    special,
    "betaln beta binom boxcox boxcox1p chdtr chdtrc gammainc gammaincc huber kl_div pdtr poch pseudo_huber rel_entr stdtr xlogy xlog1py",
    u,
    v,
)
calls(special, "betainc betaincc fdtr gdtr", u, v, R.uniform(size=20))
call("special.polygamma", lambda x: special.polygamma(1, x), u)
call("special.multigammaln", lambda x: special.multigammaln(x + 2, 2), u)
call("special.zeta", lambda x, q: special.zeta(x + 1, q), u, v)
calls(stats, "gmean hmean gzscore entropy", p)
calls(
    stats,
    "describe moment skew kurtosis sem zscore iqr variation circmean circvar circstd skewtest kurtosistest normaltest jarque_bera kstat tmean",
    x,
)
calls(stats, "tvar tstd tmin tmax tsem rankdata lmoment differential_entropy", x)
calls(
    stats,
    "pearsonr linregress ttest_ind ttest_rel mannwhitneyu wilcoxon ks_2samp cramervonmises_2samp bartlett levene fligner kruskal f_oneway",
    x,
    y,
)
calls(stats, "alexandergovern kendalltau zmap ansari mood", x, y)
calls(stats, "chisquare power_divergence", counts)
calls(stats, "combine_pvalues false_discovery_control", p)
call("stats.trim_mean", lambda x: stats.trim_mean(x, 0.1), x)
call("stats.pmean", lambda x: stats.pmean(x, 2), p)
call("stats.ttest_1samp", lambda x: stats.ttest_1samp(x, 0.1), x)
call("stats.Normal.cdf", lambda x: stats.Normal(mu=x * 0.0, sigma=x * 0 + 2.0).cdf(x), x)
calls(fft, "fft ifft fft2 ifft2 fftn ifftn rfft rfft2 rfftn hfft ihfft fftshift ifftshift dct idct dst dctn", grid)
calls(signal, "convolve correlate fftconvolve oaconvolve", x, y[:7])
calls(signal, "detrend hilbert periodogram welch medfilt wiener cspline1d", x)
calls(signal, "csd", x, y)
calls(signal, "convolve2d", grid, grid[:3, :3])
call("signal.resample", lambda x: signal.resample(x, 20), x)
call("signal.decimate", lambda x: signal.decimate(x, 2), x)
call("signal.lfilter", lambda b, x: signal.lfilter(b, b[:1] * 0 + 1.0, x), u[:3], x)
call("signal.savgol_filter", lambda x: signal.savgol_filter(x, 5, 2), x)
call("signal.upfirdn", lambda h, x: signal.upfirdn(h, x, 2), u[:3], x)
call("signal.freqz", lambda b: signal.freqz(b)[1], u[:4])
call("signal.find_peaks", lambda x: signal.find_peaks(x)[0], x)
calls(ndimage, "sobel laplace", grid)
for filtered in (ndimage.gaussian_filter, ndimage.uniform_filter, ndimage.median_filter, ndimage.maximum_filter, ndimage.minimum_filter):
    call(f"ndimage.{filtered.__name__}", lambda g, f=filtered: f(g, 3), grid)
call("ndimage.shift", lambda g: ndimage.shift(g, 1.0), grid)
call("ndimage.zoom", lambda g: ndimage.zoom(g, 2), grid)
call("ndimage.rotate", lambda g: ndimage.rotate(g, 30.0), grid)
call("ndimage.label", lambda g: ndimage.label(g)[0], (grid > 0).astype(int))
calls(ndimage, "convolve", grid, grid[:3, :3])
calls(ndimage, "center_of_mass sum_labels", grid)
calls(ndimage, "binary_dilation distance_transform_edt", grid > 0)
calls(integrate, "trapezoid simpson cumulative_trapezoid cumulative_simpson", x)
calls(integrate, "romb", x[:33])
call("integrate.tanhsinh", lambda a: integrate.tanhsinh(lambda x: x * x, a * 0.0, a).integral, u)
call("differentiate.derivative", lambda a: differentiate.derivative(lambda x: x**3, a).df, u)
call("differentiate.jacobian", lambda a: differentiate.jacobian(lambda x: x**3, a).df, u[:3])
call("elementwise.find_root", lambda a: roots.find_root(lambda x, a: x**3 - a, (a * 0.0, a * 0 + 4.0), args=(a,)).x, u)
call("elementwise.find_minimum", lambda a: roots.find_minimum(lambda x, a: (x - a) ** 2, (a - 2.0, a + 0.1, a + 3.0), args=(a,)).x, u)
call("distance.cdist", lambda a, b: distance.cdist(a, b), points, others)
call("distance.pdist", distance.pdist, points)
calls(distance, "euclidean cityblock cosine correlation chebyshev braycurtis canberra sqeuclidean", np.abs(x), np.abs(y))
call("rotation.as_matrix", lambda q: Rotation.from_quat(q).as_matrix(), quaternions)
call("rotation.apply", lambda q, v: Rotation.from_quat(q).apply(v), quaternions, others)
call("rotation.as_euler", lambda q: Rotation.from_quat(q).as_euler("xyz"), quaternions)
call("rotation.from_rotvec", lambda q: Rotation.from_rotvec(q).as_quat(), others)
calls(vq, "whiten", points)
call("vq.vq", lambda a, b: vq.vq(a, b)[0], points, others)
calls(hierarchy, "linkage", points)
call("hierarchy.fcluster", lambda a: hierarchy.fcluster(hierarchy.linkage(a), 2, "maxclust"), points)
calls(linalg, "inv det cholesky expm logm sqrtm eigvalsh svdvals pinv norm", square)
calls(linalg, "solve", square, points[:5])
calls(interpolate, "pchip_interpolate", knots, np.exp(knots), knots + 0.01)
call("interpolate.CubicSpline", lambda x, y: interpolate.CubicSpline(x, y)(x + 0.01), knots, np.exp(knots))
call("interpolate.make_interp_spline", lambda x, y: interpolate.make_interp_spline(x, y)(x), knots, np.exp(knots))


def leaves(result: Any) -> list[Any]:
    """The arrays and numbers of a result: of a test its statistic and its p-value."""
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in leaves(part)]
    if hasattr(result, "statistic"):
        return [*leaves(result.statistic), *leaves(result.pvalue)]
    return [] if result is None else [result]


def outcome(name: str) -> str:
    f, args = CALLS[name]
    want = leaves(f(*[a.copy() for a in args]))
    try:
        got = leaves(f(*[hg.tensor(a) for a in args]))
    except Exception as e:
        return f"raised {type(e).__name__}: {e}"
    try:
        assert len(got) == len(want)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-7, atol=1e-9)
    except AssertionError as e:
        return f"wrong: {e}"
    return "Tensor" if any(type(a) is hg.Tensor for a in got) else "array"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    chosen = random.Random(3).sample(sorted(CALLS), int(sys.argv[1])) if len(sys.argv) > 1 else list(CALLS)
    print(json.dumps({name: outcome(name) for name in chosen}))
