# %% [markdown]
# # Bayesian inference
#
# You fit a line to measurements some of which are wrong, and you want to know how sure the answer
# is. The sampler is Hamiltonian Monte Carlo: forty lines in which `grad`, `scan`, `vmap` and
# random keys work together. All chains are one native call.

# %%
import matplotlib.pyplot as plt
import numpy as np

import hologram as hg
import hologram.numpy as hnp
from hologram import random

# %% [markdown]
# ## Data
#
# The line is `1 + 2 x`. Four of thirty measurements have gone wrong.

# %%
rng = np.random.default_rng(4)
x = np.sort(rng.uniform(0, 1, 30))
y = 1 + 2 * x + rng.normal(0, 0.15, 30)
y[[3, 11, 20, 26]] += [1.8, -1.5, -2.0, -1.2]

# %% [markdown]
# ## A log density
#
# Errors follow Student's distribution with three degrees of freedom, which allows for outliers.
# The parameters are intercept, slope and the logarithm of the scale, each with a wide normal
# prior. The density needs to be known up to a constant only, and is written for one vector of
# parameters.


# %%
def log_density(parameters):
    intercept, slope, log_scale = parameters
    error = (y - intercept - slope * x) / hnp.exp(log_scale)
    likelihood = -2 * hnp.sum(hnp.log1p(error * error / 3)) - len(y) * log_scale
    return likelihood - hnp.sum(parameters**2) / (2 * 5.0**2)


# %% [markdown]
# ## The sampler
#
# A proposal follows the motion of a particle in the potential `-log_density`, by the leapfrog
# method. `hg.grad` gives the force.

# %%
LEAPS, SIZE = 20, 0.03


def propose(place, momentum):
    force = hg.grad(log_density)

    def leap(_, state):
        place, momentum = state
        momentum = momentum + SIZE / 2 * force(place)
        place = place + SIZE * momentum
        return place, momentum + SIZE / 2 * force(place)

    return hg.fori_loop(0, LEAPS, leap, (place, momentum))


def energy(place, momentum):
    return hnp.sum(momentum**2) / 2 - log_density(place)


def draw(place, key):
    for_momentum, for_choice = random.split(key)
    momentum = random.normal(for_momentum, (3,), hnp.float64)
    there, arriving = propose(place, momentum)
    gain = energy(place, momentum) - energy(there, arriving)
    accepted = hnp.log(random.uniform(for_choice, (), hnp.float64)) < gain
    place = hnp.where(accepted, there, place)
    return place, (place, accepted)


# %% [markdown]
# A chain is a `scan` over keys, four chains a `vmap` of it. The chains start at different points.


# %%
@hg.jit(static_argnames="steps")
def sample(key, starts, steps):
    def chain(key, start):
        return hg.scan(draw, start, random.split(key, steps))[1]

    return hg.vmap(chain)(random.split(key, len(starts)), starts)


starts = np.array([[0.0, 0.0, -1.0], [2.0, 0.0, 0.0], [0.0, 4.0, -1.0], [2.0, 2.0, -2.0]])
draws, accepted = (np.asarray(a) for a in sample(random.key(1), starts, steps=1500))
draws = draws[:, 500:]
print(draws.shape, "accepted:", bool(0.7 < accepted.mean() < 1))

# %% [markdown]
# ## Did the chains find the same?
#
# Gelman and Rubin compare the variance between chains with that within: 1 where they agree.

# %%
within = draws.var(axis=1, ddof=1).mean(axis=0)
between = draws.mean(axis=1).var(axis=0, ddof=1)
print("chains agree:", bool(np.all(np.sqrt(1 + between / within) < 1.02)))

# %% [markdown]
# ## The answer
#
# The true line has intercept 1 and slope 2. Least squares, which outliers pull, are shown beside
# it.

# %%
flat = draws.reshape(-1, 3)
low, high = np.quantile(flat[:, :2], (0.05, 0.95), axis=0)
print("1 and 2 lie in their intervals of 90 %:", bool(np.all((low < (1, 2)) & ((1, 2) < high))))

figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.3))
across = np.array([0.0, 1.0])
for intercept, slope, _ in flat[::100]:
    left.plot(across, intercept + slope * across, color="#2a9aa6", alpha=0.15, linewidth=1)
left.plot(x, y, "o", color="#e07a3f", markersize=4, label="measured")
left.plot(
    across, np.polyval(np.polyfit(x, y, 1), across), "--", color="#808080", label="least squares"
)
left.legend()
left.set_title("lines of the posterior")
right.plot(*flat[::4, :2].T, ".", markersize=2, alpha=0.5)
right.plot(1, 2, "x", color="#e07a3f", markersize=9, markeredgewidth=2)
right.set(xlabel="intercept", ylabel="slope", title="draws, and the truth")

# %% [markdown]
# ## Again, the same
#
# A key gives the same draws every time, for any number of threads. Another seed gives others.

# %%
again, _ = sample(random.key(1), starts, steps=1500)
print("the same draws:", bool(np.array_equal(np.asarray(again)[:, 500:], draws)))

# %% [markdown]
# **Next**: [random numbers](../random.md), [derivatives](../derivatives.md).
# [`examples/hmc.py`](../../examples/hmc.py) adapts the size of its leaps, and measures how many
# independent draws the chain is worth.
