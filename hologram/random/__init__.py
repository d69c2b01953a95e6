"""Random numbers from keys: a function of its key and its arguments, the same in and out of jit and for any number of threads."""

from hologram.random.continuous import exponential, gumbel, laplace, normal, truncated_normal, uniform
from hologram.random.discrete import bernoulli, categorical, choice, permutation, randint, shuffle
from hologram.random.keys import bits, fold_in, key, split

__all__ = [
    "bernoulli", "bits", "categorical", "choice", "exponential", "fold_in", "gumbel", "key", "laplace", "normal", "permutation", "randint",
    "shuffle", "split", "truncated_normal", "uniform",
]  # fmt: skip
