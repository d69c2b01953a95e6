# %% [markdown]
# # A neural network
#
# You train a network that tells two spirals apart, with Adam, from nothing but functions: a model
# is a function of its parameters, and the forward pass, the gradient and the update are one
# native call.

# %%
from functools import partial

import matplotlib.pyplot as plt
import numpy as np

import hologram as hg
import hologram.numpy as hnp
from hologram import nn

# %% [markdown]
# ## Data
#
# Two spirals with a little noise, 200 points each. `y` is 0 or 1.

# %%
rng = np.random.default_rng(0)
angle = np.sqrt(rng.uniform(size=400)) * 3 * np.pi
y = np.repeat([0, 1], 200)
turn = angle + np.pi * y
x = np.stack([angle * np.cos(turn), angle * np.sin(turn)], axis=1) / 10
x = (x + rng.normal(0, 0.02, x.shape)).astype(np.float32)
print(x.shape, x.dtype, y.shape)

# %% [markdown]
# ## A model
#
# Parameters are a list of dicts: any tree of arrays will do. Random numbers come from keys. A key
# that is used is split first, so that no two draws share one.

# %%
SIZES = (2, 64, 64, 1)


def initial(key):
    keys = hg.random.split(key, len(SIZES) - 1)
    shapes = zip(SIZES[:-1], SIZES[1:], strict=True)
    return [
        {"w": nn.initializers.he_normal(k, s), "b": hnp.zeros(s[1])}
        for k, s in zip(keys, shapes, strict=True)
    ]


def model(params, x):
    for layer in params[:-1]:
        x = nn.gelu(x @ layer["w"] + layer["b"])
    return (x @ params[-1]["w"] + params[-1]["b"])[:, 0]


def loss(params, x, y):
    logits = model(params, x)
    return hnp.mean(nn.softplus(hnp.where(y == 1, -logits, logits)))


params = initial(hg.random.key(0))
print("loss:", round(float(loss(params, x, y)), 2))

# %% [markdown]
# Nothing is jitted so far. `loss` ran all the same: outside of `jit` operations are recorded, and
# run together when `float` reads the value.
#
# ## A step of Adam
#
# `hg.tree.map` applies a function to every leaf of trees of one structure. `value_and_grad`
# differentiates with respect to the first argument, which is the whole tree of parameters.
# `donate_argnums` says that the old state is not used again: the new one takes its memory.


# %%
@partial(hg.jit, donate_argnums=0)
def step(state, x, y):
    params, mean, square, count = state
    value, gradient = hg.value_and_grad(loss)(params, x, y)
    count = count + 1
    mean = hg.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradient)
    square = hg.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, square, gradient)
    rate = 0.01 * hnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
    change = hg.tree.map(lambda m, s: rate * m / (hnp.sqrt(s) + 1e-8), mean, square)
    params = hg.tree.map(hnp.subtract, params, change)
    return (params, mean, square, count), value


zeros = hg.tree.map(hnp.zeros_like, params)
state = (params, zeros, hg.tree.map(hnp.zeros_like, params), hnp.asarray(0.0))
losses = []
for _ in range(600):
    state, value = step(state, x, y)
    losses.append(value)
print("loss below 0.01:", float(losses[-1]) < 0.01)

# %% [markdown]
# No value was read inside the loop: `losses` holds Tensors, and the conversion comes at the end.
#
# ## What it has learned
#
# The network's answer over the plane. The grid has another number of rows than the data, so it is
# another program.

# %%
params = state[0]
accuracy = np.mean((np.asarray(model(params, x)) > 0) == (y == 1))
print(f"right: {accuracy:.0%}")

across = np.linspace(-1.05, 1.05, 200, dtype=np.float32)
grid = np.stack(np.meshgrid(across, across), axis=-1).reshape(-1, 2)
answer = nn.sigmoid(hg.jit(model)(params, grid)).reshape(200, 200)

figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.3))
left.semilogy(np.asarray(hnp.stack(losses)))
left.set(xlabel="step", title="loss")
right.imshow(np.asarray(answer), extent=(-1.05, 1.05) * 2, origin="lower", cmap="RdBu", alpha=0.4)
right.scatter(*x.T, c=y, cmap="RdBu", s=9, edgecolors="black", linewidths=0.4)
right.set(title="probability of the second spiral", xticks=[], yticks=[])

# %% [markdown]
# ## A gradient for each example
#
# `vmap` turns the gradient of one example into that of all. Here it finds the points that pull
# hardest on the parameters: those near the border.


# %%
def loss_of_one(params, x, y):
    return loss(params, x[None], y[None])


@hg.jit
def pulls(params, x, y):
    gradients = hg.vmap(hg.grad(loss_of_one), in_axes=(None, 0, 0))(params, x, y)
    return hnp.sqrt(
        sum(hnp.sum(g.reshape(g.shape[0], -1) ** 2, axis=1) for g in hg.tree.leaves(gradients))
    )


norms = np.asarray(pulls(params, x, y))
print(norms.shape, "largest beyond ten medians:", bool(norms.max() > 10 * np.median(norms)))

# %% [markdown]
# **Next**: [derivatives](../derivatives.md), [`hologram.nn`](../nn.md), [random
# numbers](../random.md). [`examples/digits.py`](../../examples/digits.py) and
# [`examples/charlm.py`](../../examples/charlm.py) train larger models; [saved
# programs](../export.md) keeps one in a file.
