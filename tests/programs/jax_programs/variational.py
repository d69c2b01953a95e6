"""A posterior approximated by a normal distribution, and bounds of tails: densities of many families, quadrature, Laplace's method, quantiles."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import stats
from jax.scipy.optimize import minimize
from jax.scipy.special import betaln, gammaln, logsumexp


def data():
    rng = np.random.default_rng(61)
    x = rng.standard_normal((20, 2)).astype(np.float32)
    return x, (rng.random(20) < 1 / (1 + np.exp(-(x @ [1.5, -0.7])))).astype(np.float32)


def log_joint(w, x, y):
    return stats.norm.logpdf(w, 0.0, 2.0).sum() + stats.bernoulli.logpmf(y, jax.nn.sigmoid(x @ w)).sum()


def bound(params, noise, x, y):
    mean, log_scale = params
    w = mean + jnp.exp(log_scale) * noise
    entropy = -stats.norm.logpdf(w, mean, jnp.exp(log_scale)).sum(-1)
    return jnp.mean(jax.vmap(log_joint, (0, None, None))(w, x, y) + entropy)


def laplace(x, y):
    found = minimize(lambda w: -log_joint(w, x, y), jnp.zeros(2), method="BFGS")
    curvature = jax.hessian(lambda w: -log_joint(w, x, y))(found.x)
    return found.x, jnp.linalg.inv(curvature)


def evidence(x, y):
    grid = jnp.linspace(-6, 6, 61)
    both = jnp.stack(jnp.meshgrid(grid, grid, indexing="ij"), -1).reshape(-1, 2)
    return logsumexp(jax.lax.map(lambda w: log_joint(w, x, y), both)) + 2 * jnp.log(grid[1] - grid[0])


def beta_binomial(k, n, a, b):
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1) + betaln(k + a, n - k + b) - betaln(a, b)


def main():
    x, y = data()
    noise = np.random.default_rng(62).standard_normal((32, 2)).astype(np.float32)
    step = jax.jit(lambda p: jax.tree.map(lambda v, g: v + 0.05 * g, p, jax.grad(bound)(p, noise, x, y)))
    params = (jnp.zeros(2), jnp.zeros(2))
    first = bound(params, noise, x, y)
    for _ in range(30):
        params = step(params)
    mode, covariance = laplace(x, y)
    t = jnp.linspace(0.2, 3.0, 6)
    densities = jnp.stack(
        [
            stats.gamma.logpdf(t, 2.5, scale=0.7),
            stats.beta.logpdf(t / 4, 2.0, 3.0),
            stats.t.logpdf(t, 4.0),
            stats.cauchy.logpdf(t, 1.0),
            stats.laplace.logpdf(t, 0.5, 2.0),
            stats.expon.logpdf(t),
            stats.chi2.logpdf(t, 3.0),
            stats.pareto.logpdf(t + 1, 2.0),
            stats.logistic.logpdf(t),
            stats.uniform.logpdf(t, 0.0, 5.0),
            stats.poisson.logpmf(jnp.floor(t), 2.0),
            stats.truncnorm.logpdf(t, 0.0, 4.0),
            stats.gumbel_r.logpdf(t),
            stats.nbinom.logpmf(jnp.floor(t), 3.0, 0.4),
            stats.vonmises.logpdf(t, 1.5),
            stats.gennorm.logpdf(t, 1.7),
        ]
    )
    tails = jnp.stack(
        [
            stats.norm.logcdf(-10 * t),
            jnp.log(stats.logistic.sf(t)),
            stats.gamma.logsf(t, 2.5),
            stats.beta.logcdf(t / 4, 2.0, 3.0),
            stats.norm.logsf(5 * t),
            stats.expon.logcdf(t),
            stats.cauchy.logcdf(-t),
        ]
    )
    slopes = jax.vmap(jax.grad(lambda v: stats.gamma.logcdf(v, 2.0) + stats.beta.logpdf(v / 4, 1.5, 2.5)))(t)
    return {
        "first": first,
        "last": bound(params, noise, x, y),
        "mean": params[0],
        "mode": mode,
        "covariance": covariance,
        "evidence": evidence(x, y),
        "densities": densities,
        "tails": tails,
        "slopes": slopes,
        "multivariate": stats.multivariate_normal.logpdf(x, mode, covariance),
        "dirichlet": stats.dirichlet.logpdf(jnp.array([0.2, 0.5, 0.3]), jnp.array([1.5, 2.0, 0.7])),
        "mixed": beta_binomial(jnp.arange(5.0), 4.0, 1.2, 0.8),
        "rank": stats.rankdata(jnp.array([3.0, 1.0, 3.0, 2.0])),
        "mode_of": stats.mode(jnp.array([1, 2, 2, 5])).mode,
    }
