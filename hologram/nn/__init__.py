"""What neural networks are made of: activations, normalisation, losses, attention, initial parameters. Plain functions of arrays."""

from hologram.nn import initializers
from hologram.nn.activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_tanh,
    leaky_relu,
    log_sigmoid,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    softplus,
    swish,
    tanh,
)
from hologram.nn.attention import dot_product_attention
from hologram.nn.losses import cross_entropy, huber, mse, one_hot, sigmoid_binary_cross_entropy
from hologram.nn.normalisation import layer_norm, log_softmax, logsumexp, rms_norm, softmax, standardize

__all__ = [
    "celu", "cross_entropy", "dot_product_attention", "elu", "gelu", "glu", "hard_tanh", "huber", "initializers", "layer_norm", "leaky_relu",
    "log_sigmoid", "log_softmax", "logsumexp", "mish", "mse", "one_hot", "relu", "relu6", "rms_norm", "selu", "sigmoid",
    "sigmoid_binary_cross_entropy", "silu", "softmax", "softplus", "standardize", "swish", "tanh",
]  # fmt: skip
