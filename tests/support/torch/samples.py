"""Arguments for the operations of torch's tensors: for each, several calls of small size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Call = tuple[tuple[Any, ...], dict[str, Any]]


def tensors(seed: int, dtype: torch.dtype) -> Callable[..., torch.Tensor]:
    """A function that makes tensors of ordinary values from a shape, different on each call."""
    generator = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def calls(name: str, dtype: torch.dtype = torch.float32) -> list[Call]:
    """Calls of the operation ``name``; the first is the plainest."""
    of = tensors(len(name), dtype)

    def labels(*shape: int) -> torch.Tensor:
        return torch.arange(torch.Size(shape).numel()).reshape(shape) % 5

    pairs: list[Call] = [((of(4, 3), of(4, 3)), {}), ((of(4, 1, 3), of(5, 1)), {}), ((of(3), of()), {})]
    single: list[Call] = [((of(4, 3),), {}), ((of(),), {})]
    table: dict[str, Callable[[], list[Call]]] = {
        "gelu": lambda: [*single, ((of(7),), {"approximate": "tanh"})],
        "softmax": lambda: [((of(4, 3), 1), {}), ((of(2, 3, 4),), {"dim": 0}), ((of(2, 5), -1), {})],
        "matmul": lambda: [((of(3, 4), of(4, 2)), {}), ((of(4), of(4)), {}), ((of(2, 1, 3, 4), of(3, 4, 2)), {})],
        "linear": lambda: [
            ((of(3, 4), of(2, 4), of(2)), {}),
            ((of(2, 3, 4), of(5, 4)), {}),
            ((of(4), of(2, 4)), {"bias": of(2)}),
            ((of(1, 1, 4), of(2, 4)), {}),
        ],
        "layer_norm": lambda: [((of(3, 4), (4,)), {}), ((of(2, 3, 4), (3, 4), of(3, 4), of(3, 4)), {"eps": 1e-3})],
        "conv2d": lambda: [
            ((of(2, 2, 5, 5), of(4, 2, 3, 3), of(4)), {}),
            ((of(2, 6, 5), of(4, 1, 3, 2)), {"stride": (2, 1), "padding": (1, 0), "groups": 2}),
            ((of(1, 2, 5, 5), of(2, 2, 3, 3), None, 1, "same"), {}),
        ],
        "mse_loss": lambda: [((of(4, 3), of(4, 3)), {}), ((of(4), of(4), "sum"), {}), ((of(2, 2), of(2, 2)), {"reduction": "none"})],
        "binary_cross_entropy": lambda: [
            ((torch.sigmoid(of(4, 3)), torch.sigmoid(of(4, 3))), {}),
            ((torch.sigmoid(of(4)), torch.sigmoid(of(4)), torch.sigmoid(of(4)), "none"), {}),
        ],
        "cross_entropy": lambda: [
            ((of(4, 5), labels(4)), {}),
            ((of(3, 5, 2), labels(3, 2), torch.sigmoid(of(5))), {"ignore_index": 2, "label_smoothing": 0.2}),
            ((of(4, 5), labels(4)), {"reduction": "none", "ignore_index": 1}),
            ((of(4, 5), torch.softmax(of(4, 5), 1), torch.sigmoid(of(5))), {"label_smoothing": 0.1}),
            ((of(5), labels(1)[0]), {"reduction": "sum"}),
        ],
    }
    if name in table:
        return table[name]()
    return pairs if name in ("add", "sub", "mul", "div") else single
