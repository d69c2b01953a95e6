"""Random numbers from keys: a function of its key and its arguments, the same in and out of jit and for any number of threads."""

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
from hologram.random.keys import bits, fold_in, key, split
from hologram.random.vectors import ball, dirichlet, multivariate_normal

__all__ = [
    "ball", "bernoulli", "beta", "binomial", "bits", "categorical", "cauchy", "chisquare", "choice", "dirichlet", "exponential", "fold_in", "gamma",
    "geometric", "gumbel", "key", "laplace", "loggamma", "logistic", "lognormal", "multivariate_normal", "normal", "pareto", "permutation", "poisson",
    "rademacher", "randint", "rayleigh", "shuffle", "split", "t", "truncated_normal", "uniform", "weibull_min",
]  # fmt: skip
