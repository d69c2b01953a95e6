"""Random numbers from keys: a function of its key and its arguments, the same in and out of jit and for any number of threads."""

from hologram.random.composed import double_sided_maxwell, f, generalized_normal, maxwell, multinomial, orthogonal, triangular, wald
from hologram.random.continuous import (
    cauchy,
    exponential,
    gumbel,
    laplace,
    logistic,
    lognormal,
    normal,
    pareto,
    rayleigh,
    truncated_normal,
    uniform,
    weibull_min,
)
from hologram.random.counts import binomial, geometric, poisson, rademacher
from hologram.random.discrete import bernoulli, categorical, choice, permutation, randint, shuffle
from hologram.random.gamma import beta, chisquare, gamma, loggamma, t
from hologram.random.keys import bits, clone, fold_in, key, key_data, key_impl, split, wrap_key_data
from hologram.random.vectors import ball, dirichlet, multivariate_normal

PRNGKey = key  # JAX's older name

__all__ = [
    "PRNGKey", "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy", "chisquare", "choice", "clone", "dirichlet",
    "double_sided_maxwell", "exponential", "f", "fold_in", "gamma", "generalized_normal", "geometric", "gumbel", "key", "key_data", "key_impl",
    "laplace", "loggamma", "logistic", "lognormal", "maxwell", "multinomial", "multivariate_normal", "normal", "orthogonal", "pareto", "permutation",
    "poisson", "rademacher", "randint", "rayleigh", "shuffle", "split", "t", "triangular", "truncated_normal", "uniform", "wald", "weibull_min",
    "wrap_key_data",
]  # fmt: skip
