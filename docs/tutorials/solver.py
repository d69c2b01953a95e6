# %% [markdown]
# # A solver by loops
#
# You write a solver whose loop is part of the program: conjugate gradients for Poisson's
# equation. It runs until it has converged, without Python between steps, and you can
# differentiate through it.

# %%
import matplotlib.pyplot as plt
import numpy as np

import hologram as hg
import hologram.numpy as hnp

# %% [markdown]
# ## The equation
#
# A charge density on a square whose edge is earthed. The potential solves `laplace(v) = charge`,
# where the Laplacian is four neighbours less four times the value. `pad` brings the edge, which
# is 0.


# %%
def laplace(v):
    wide = hnp.pad(v, 1)
    return 4 * v - wide[:-2, 1:-1] - wide[2:, 1:-1] - wide[1:-1, :-2] - wide[1:-1, 2:]


N = 127
charge = np.zeros((N, N))
charge[40:50, 30:60] = 1.0
charge[80:86, 70:110] = -1.5

# %% [markdown]
# One step of conjugate gradients moves the potential along a direction, and finds the next one.
# It is a function like any other; three loops below have it as their body.


# %%
def improve(v, residual, direction):
    step = laplace(direction)
    size = hnp.sum(residual * residual) / hnp.sum(direction * step)
    new = residual - size * step
    share = hnp.sum(new * new) / hnp.sum(residual * residual)
    return v + size * direction, new, new + share * direction


def length(v):
    return hnp.sqrt(hnp.sum(v * v))


# %% [markdown]
# ## A loop that ends by itself
#
# `while_loop(condition, body, state)` takes two functions of the state, a tree of arrays whose
# shapes and types stay. Both are traced once. float64 in the arguments is float64 throughout,
# without a flag.


# %%
@hg.jit
def solve(charge, tolerance):
    def unsolved(state):
        (_, residual, _), count = state
        return (length(residual) > tolerance) & (count < 2000)

    def body(state):
        fields, count = state
        return improve(*fields), count + 1

    (v, _, _), count = hg.while_loop(
        unsolved, body, ((hnp.zeros_like(charge), charge, charge), 0)
    )
    return v, count


v, count = solve(charge, 1e-9)
print("about", round(int(count), -2), "steps")
print("the equation holds:", float(length(laplace(v) - charge)) < 1e-8)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.2))
left.imshow(charge, cmap="RdBu_r", vmin=-1.5, vmax=1.5)
left.set_title("charge")
most = float(hnp.max(hnp.abs(v)))
right.imshow(np.asarray(v), cmap="RdBu_r", vmin=-most, vmax=most)
right.contour(np.asarray(v), 14, colors="black", linewidths=0.5)
right.set_title("potential")
for axis in (left, right):
    axis.set(xticks=[], yticks=[])

# %% [markdown]
# ## A loop that remembers
#
# `scan` runs a known number of steps and stacks what each step gives out: here the length of the
# residual.


# %%
@hg.jit
def history(charge):
    def body(fields, _):
        fields = improve(*fields)
        return fields, length(fields[1])

    return hg.scan(body, (hnp.zeros_like(charge), charge, charge), length=500)[1]


lengths = np.asarray(history(charge))
print(lengths.shape, f"{lengths[0]:.0f} to less than 1e-9:", bool(lengths[-1] < 1e-9))

figure, axis = plt.subplots(figsize=(7, 2.8))
axis.semilogy(lengths)
axis.set(xlabel="step", title="length of the residual")
axis.grid()

# %% [markdown]
# ## Through the solver
#
# How does the potential at one point depend on the charge everywhere? That is a gradient through
# 500 steps of a loop. Reverse mode goes through `scan` and `fori_loop`. A `while_loop` has no
# bound on its steps, so it has forward derivatives only.


# %%
def potential_at(charge, row, column):
    fields = (hnp.zeros_like(charge), charge, charge)
    return hg.fori_loop(0, 500, lambda _, fields: improve(*fields), fields)[0][row, column]


influence = hg.jit(hg.grad(potential_at), static_argnums=(1, 2))(charge, 63, 63)

# %% [markdown]
# The equation is linear and symmetric, so the gradient is the potential of a unit charge at that
# point. The solver itself can find that:

# %%
unit = np.zeros((N, N))
unit[63, 63] = 1.0
expected, _ = solve(unit, 1e-10)
difference = float(hnp.max(hnp.abs(influence - expected)))
print("largest difference below 1e-4:", difference < 1e-4)

# %% [markdown]
# **Next**: [control flow](../control_flow.md) has the rules of loops and branches;
# [`examples/heat.py`](../../examples/heat.py) and [`examples/nbody.py`](../../examples/nbody.py)
# are longer ones.
