"""What neural networks are made of: activations, normalisation, losses, attention, convolutions, pooling, initial parameters.

Plain functions of arrays.
"""

from hologram.lax.products import dot_general
from hologram.nn import initializers
from hologram.nn.activations import (
    celu,
    elu,
    gelu,
    glu,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    identity,
    leaky_relu,
    log1mexp,
    log_sigmoid,
    mish,
    relu,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_sign,
    softplus,
    sparse_plus,
    sparse_sigmoid,
    squareplus,
    swish,
    tanh,
)
from hologram.nn.attention import dot_product_attention
from hologram.nn.convolution import conv1d, conv2d, conv3d, conv_transpose1d, conv_transpose2d, conv_transpose3d
from hologram.nn.losses import cross_entropy, huber, mse, one_hot, sigmoid_binary_cross_entropy
from hologram.nn.normalisation import layer_norm, log_softmax, logmeanexp, logsumexp, rms_norm, softmax, standardize
from hologram.nn.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "celu", "conv1d", "conv2d",
    "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cross_entropy", "dot_general", "dot_product_attention", "elu", "gelu",
    "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "huber", "identity", "initializers", "layer_norm", "leaky_relu", "log1mexp",
    "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp", "max_pool1d", "max_pool2d", "max_pool3d", "mish", "mse", "one_hot", "relu", "relu6",
    "rms_norm", "selu", "sigmoid", "sigmoid_binary_cross_entropy", "silu", "soft_sign", "softmax", "softplus", "sparse_plus", "sparse_sigmoid",
    "squareplus", "standardize", "swish", "tanh",
]  # fmt: skip
