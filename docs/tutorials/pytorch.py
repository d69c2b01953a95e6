# %% [markdown]
# # PyTorch
#
# You use Hologram from PyTorch in three ways: compile a model, use a function of Hologram's
# inside a model, and swap layers. The fourth, `device="hologram"`, has [a page of its
# own](../torch_device.md).

# %%
import matplotlib.pyplot as plt
import torch

import hologram.numpy as hnp
import hologram_torch

_ = torch.manual_seed(0)

# %% [markdown]
# ## Compile a model
#
# `backend="hologram"` is found by its name once Hologram is installed. The forward and the
# backward pass become a native call each; parameters stay torch's, and so do the optimizer and
# the loop.

# %%
x = torch.linspace(-3, 3, 256)[:, None]
y = torch.sin(2 * x) + 0.1 * torch.randn_like(x)

model = torch.nn.Sequential(
    torch.nn.Linear(1, 64),
    torch.nn.GELU(),
    torch.nn.Linear(64, 64),
    torch.nn.GELU(),
    torch.nn.Linear(64, 1),
)
compiled = torch.compile(model, backend="hologram")
print("as in eager mode:", torch.allclose(compiled(x), model(x), atol=1e-5))

# %%
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
losses = []
for _ in range(300):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(compiled(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss below 0.02:", losses[-1] < 0.02)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.8))
left.semilogy(losses)
left.set(xlabel="step", title="loss")
right.plot(x, y, ".", markersize=3, color="#808080", label="data")
right.plot(x, compiled(x).detach(), linewidth=2, label="model")
right.legend()

# %% [markdown]
# ## A function of Hologram's in a model
#
# `hologram_torch.wrap` makes a function of torch's tensors from one that is written against
# `hologram.numpy`. Memory is shared, and autograd goes through it.

# %%
ripple = hologram_torch.wrap(lambda x, a: hnp.sin(a * x) ** 2 / a + x)


class Ripple(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Parameter(torch.tensor(1.0))

    def forward(self, x):
        return ripple(x, self.a)


layer = Ripple()
layer(x).sum().backward()
a = torch.tensor(1.0, requires_grad=True)
(torch.sin(a * x) ** 2 / a + x).sum().backward()
print("gradient as torch's:", torch.allclose(layer.a.grad, a.grad, rtol=1e-4))

# %% [markdown]
# ## Swap layers
#
# `convert` replaces the layers that it knows by Hologram's, in place, and reports what it left.
# Parameters are kept: they are the same tensors.

# %%
before = model(x).detach()
report = hologram_torch.convert(model)
print("as before:", torch.allclose(model(x).detach(), before, atol=1e-5))
print(report)

# %% [markdown]
# ## Tensors, to and fro
#
# A tensor and a Tensor share memory on the CPU: nothing is copied.

# %%
t = torch.arange(4.0)
h = hologram_torch.from_torch(t)
print(hologram_torch.to_torch(hnp.sqrt(h * 4)))

# %% [markdown]
# **Next**: [Hologram in PyTorch](../pytorch.md), [compiled models](../torch_compile.md),
# [`device="hologram"`](../torch_device.md).
