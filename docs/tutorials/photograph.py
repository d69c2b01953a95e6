# %% [markdown]
# # A photograph
#
# You develop a photograph: open its shadows, sharpen it, add contrast. In NumPy each of about a
# hundred operations reads and writes a whole picture. Here the function is compiled, and you look
# at what became of it.
#
# You need matplotlib, which brings the picture.

# %%
import matplotlib.pyplot as plt
import numpy as np
from matplotlib import cbook

import hologram as hg
import hologram.numpy as hnp

with cbook.get_sample_data("grace_hopper.jpg") as file:
    picture = plt.imread(file)
print(picture.shape, picture.dtype)

# %% [markdown]
# ## A function in NumPy's manner
#
# The file holds sRGB values, which are not proportional to light. So the first step turns them
# into light, the last one back. Both are one line each with `where`, as in NumPy.


# %%
def from_srgb(v):
    return hnp.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)


def to_srgb(v):
    return hnp.where(v <= 0.0031308, v * 12.92, 1.055 * v ** (1 / 2.4) - 0.055)


# %% [markdown]
# A blur is a weighted sum of shifted slices, down and then across. The loops are Python's: they
# run while the function is traced, and the program has fourteen products and no loop.

# %%
TAPS = (0.03, 0.11, 0.22, 0.28, 0.22, 0.11, 0.03)


def blur(v):
    height, width = v.shape
    tall = hnp.pad(v, ((3, 3), (0, 0)), mode="edge")
    v = sum(tap * tall[i : i + height] for i, tap in enumerate(TAPS))
    wide = hnp.pad(v, ((0, 0), (3, 3)), mode="edge")
    return sum(tap * wide[:, i : i + width] for i, tap in enumerate(TAPS))


# %% [markdown]
# Now the whole: exposure with a soft shoulder, sharpening by what the blur takes away, and
# colours that follow the light.


# %%
@hg.jit
def develop(picture):
    linear = from_srgb(picture.astype(hnp.float32) / 255)
    light = 0.2126 * linear[:, :, 0] + 0.7152 * linear[:, :, 1] + 0.0722 * linear[:, :, 2]
    exposed = 2.8 * light
    seen = hnp.sqrt(exposed * (1 + exposed / 2.8**2) / (1 + exposed))
    sharp = hnp.clip(seen + 0.8 * (seen - blur(seen)), 0, 1)
    gain = sharp * sharp / (light + 2e-3)
    return to_srgb(hnp.clip(linear * gain[:, :, None], 0, 1))


after = develop(picture)
print(after.shape, after.dtype)

# %% [markdown]
# The first call traced `develop`, compiled it for this shape and this element type, and ran it.
# `after` is a Tensor; NumPy and matplotlib read its memory without a copy.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 4.4))
left.imshow(picture)
left.set_title("before")
right.imshow(np.asarray(after))
right.set_title("after")
for axis in (left, right):
    axis.set_axis_off()

# %% [markdown]
# ## What was compiled
#
# `lower(...)` traces and reduces without running, `compile()` gives the program that the call
# uses. `reduction()` counts: operations as you wrote them, operations of the canonical form, and
# kernels that are launched. The canonical form need not be shorter: a power becomes products.
# What counts are the kernels, since only what lies between them is written to memory.

# %%
compiled = develop.lower(picture).compile()
print(str(compiled.reduction()).split(";")[0])

# %% [markdown]
# What lies between kernels has an address before the first call. `memory_analysis()` prints the
# plan: each buffer, its place, when it is used first and last. The peak is the largest sum of
# what lives at one time, and here no plan could need less.

# %%
print(str(compiled.memory_analysis()).splitlines()[-1])

# %% [markdown]
# ## Is it right?
#
# `jit` keeps the function that it was given. On Tensors, outside of `jit`, it is recorded and
# compiled when its value is read; inside `hg.disable_jit()` every operation runs by itself. The
# results agree to float32's precision.

# %%
with hg.disable_jit():
    slowly = develop(picture)
difference = float(hnp.max(hnp.abs(slowly - after)))
print("largest difference below 1e-5:", difference < 1e-5)

# %% [markdown]
# ## Another size
#
# Another shape is another program, compiled when it first comes. A batch of pictures needs no
# change of `develop`: `vmap` adds the axis.

# %%
batch = np.stack([picture[i : i + 256, i : i + 256] for i in range(0, 256, 64)])
developed = hg.jit(hg.vmap(develop))(batch)
print(batch.shape, "->", developed.shape)

# %% [markdown]
# **Next**: [`examples/photo.py`](../../examples/photo.py) has the longer pipeline that `make
# demo` runs, and compares it with NumPy. [Rewrite rules](../rules.md) lists what canonical
# reduction does, [architecture](../architecture.md) shows a program at each stage.
