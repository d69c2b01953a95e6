# %% [markdown]
# # A spectral simulation
#
# You simulate a partial differential equation in Fourier space, with complex numbers in float64:
# the equation of Kuramoto and Sivashinsky, a model of flame fronts whose solution is chaotic. The
# whole run is one `scan`.
#
# `u` is a periodic function of `x` that follows `u_t = -u u_x - u_xx - u_xxxx`. The second
# derivative feeds long waves, the fourth damps short ones, and the product carries energy from
# the first to the second.

# %%
import matplotlib.pyplot as plt
import numpy as np

import hologram as hg
import hologram.numpy as hnp
from hologram import fft

# %% [markdown]
# ## The linear part, exactly
#
# In Fourier space a derivative is a product with `1j * k`, so the linear part of the equation is
# a number for each wave. The method of Cox and Matthews integrates it exactly, and the product by
# a Runge-Kutta method of order 4. Its coefficients are means over circles in the complex plane,
# as Kassam and Trefethen compute them (2005); NumPy does that, once.

# %%
N, LENGTH, STEP = 128, 22 * np.pi, 0.25
x = np.arange(N) * LENGTH / N
k = 2 * np.pi / LENGTH * np.arange(N // 2 + 1)
linear = k**2 - k**4
half, full = np.exp(STEP * linear / 2), np.exp(STEP * linear)

circle = STEP * linear[:, None] + np.exp(1j * np.pi * (np.arange(1, 33) - 0.5) / 32)
q = STEP * np.mean((np.exp(circle / 2) - 1) / circle, axis=1).real
f1 = (
    STEP
    * np.mean(
        (-4 - circle + np.exp(circle) * (4 - 3 * circle + circle**2)) / circle**3, axis=1
    ).real
)
f2 = STEP * np.mean((2 + circle + np.exp(circle) * (-2 + circle)) / circle**3, axis=1).real
f3 = (
    STEP
    * np.mean(
        (-4 - 3 * circle - circle**2 + np.exp(circle) * (4 - circle)) / circle**3, axis=1
    ).real
)

# %% [markdown]
# ## The product
#
# It is computed where it is a product: back in `x`. The square has waves that the grid cannot
# hold; what they would fold onto is set to zero.

# %%
derivative = np.where(np.arange(N // 2 + 1) < N // 3, -0.5j * k, 0)


def product(v):
    u = fft.irfft(v, n=N)
    return derivative * fft.rfft(u * u)


# %% [markdown]
# ## The run
#
# The carry is the complex spectrum. Each step gives out `u`, which `scan` stacks. Arrays of NumPy
# that the function uses, such as `f1`, are constants of the program.


# %%
def step(v, _):
    nonlinear = product(v)
    a = half * v + q * nonlinear
    at_a = product(a)
    b = half * v + q * at_a
    at_b = product(b)
    c = half * a + q * (2 * at_b - nonlinear)
    v = full * v + nonlinear * f1 + 2 * (at_a + at_b) * f2 + product(c) * f3
    return v, fft.irfft(v, n=N)


@hg.jit(static_argnames="steps")
def simulate(u, steps):
    return hg.scan(step, fft.rfft(u), length=steps)[1]


start = np.cos(x / 11) * (1 + np.sin(x / 11 + 0.5))
history = np.asarray(simulate(start, steps=800))
print(history.shape, history.dtype)

# %%
figure, axis = plt.subplots(figsize=(7, 3.6))
where = (0, 800 * STEP, 0, LENGTH)
picture = axis.imshow(history.T, aspect="auto", origin="lower", extent=where, cmap="RdBu_r")
figure.colorbar(picture, label="u")
axis.set(xlabel="time", ylabel="x")

# %% [markdown]
# ## What must hold
#
# The equation keeps the mean of `u`. Once the waves have grown, their size
# neither grows nor falls.

# %%
late = history[400:]
print("mean kept:", bool(np.abs(history.mean(axis=1) - start.mean()).max() < 1e-12))
print("size of the waves, about 1.3:", bool(1.1 < late.std() < 1.5))

# %% [markdown]
# Chaos means that near starts part. `jvp` follows a small change of the start through the run,
# exactly to first order; its growth is the largest Lyapunov exponent.


# %%
@hg.jit
def growth(u, change):
    def end(u):
        return simulate(u, steps=400)[-1]

    _, changed = hg.jvp(end, (u,), (change,))
    return hnp.log(hnp.linalg.norm(changed) / hnp.linalg.norm(change)) / (400 * STEP)


change = np.random.default_rng(0).standard_normal(N)
rate = float(growth(late[-1], change - change.mean()))
print("Lyapunov exponent positive, below 0.3:", 0 < rate < 0.3)

# %% [markdown]
# ## What it costs
#
# Fourier transforms are host ops: steps of their own between kernels, as native as these. Nothing
# is fused with them.

# %%
reduction = simulate.lower(start, steps=800).compile().reduction()
print(str(reduction).split(";")[0])

# %% [markdown]
# **Next**: [linear algebra and Fourier transforms](../linalg.md), [control
# flow](../control_flow.md), [derivatives](../derivatives.md).
