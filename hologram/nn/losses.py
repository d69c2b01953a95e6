"""Losses, and the one-hot code. Each loss takes ``reduction``: "mean", "sum", or "none" for the loss of each example."""

from __future__ import annotations

from typing import Any

from hologram import dtypes
from hologram import numpy as hnp
from hologram.errors import DTypeError, ShapeError
from hologram.nn.normalisation import log_softmax
from hologram.numpy.arguments import array, axis_of, cast, element_type, floats, wrap
from hologram.support.user_lines import located
from hologram.trace.checks import choice
from hologram.trace.tensor import Tensor

__all__ = ["cross_entropy", "huber", "mse", "one_hot", "sigmoid_binary_cross_entropy"]

_REDUCTIONS = {"mean": hnp.mean, "sum": hnp.sum, "none": lambda losses: losses}


def _reduced(losses: Tensor, reduction: str, what: str) -> Tensor:
    return _REDUCTIONS[choice(reduction, what, "reduction", _REDUCTIONS)](losses)


def _is_class(labels: Any, classes: Any, axis: int, what: str) -> Tensor:
    """Whether the class along the new ``axis`` is the label. Raises DTypeError for labels that are no integers."""
    node = array(labels, what)
    if not node.dtype.is_integer:
        raise located(DTypeError(f"{what}: labels are integers, not {node.dtype.name}"))
    rank = len(node.shape) + 1
    axis = axis_of(axis, rank, what)
    numbers = hnp.reshape(hnp.arange(classes), tuple(classes if i == axis else 1 for i in range(rank)))
    return hnp.expand_dims(wrap(node), axis=axis) == numbers


def one_hot(labels: Any, num_classes: int, axis: int = -1, dtype: Any = None) -> Tensor:
    """One-hot code: 1 at each label along a new ``axis`` of extent ``num_classes``, 0 elsewhere; a label out of range gives zeros.

    The result has the default float type unless ``dtype`` says otherwise. Raises DTypeError for labels that are not integers.

    >>> hg.nn.one_hot([2, 0], 3)
    Tensor([[0., 0., 1.],
            [1., 0., 0.]], dtype=float32)
    """
    return cast(_is_class(labels, num_classes, axis, "one_hot"), dtypes.default_float if dtype is None else element_type(dtype))


def cross_entropy(logits: Any, labels: Any, /, axis: int = -1, reduction: str = "mean") -> Tensor:
    """Cross entropy of ``softmax(logits)`` over ``axis`` and ``labels``.

    ``labels`` are integers of the shape of ``logits`` without ``axis`` (one out of range has loss 0), or floats of the shape of ``logits``: one-hot,
    or the probabilities of the classes. ``reduction``: ``mean``, ``sum``, or ``none`` for the loss of each example. The float type is that of
    ``logits``. Raises ShapeError for labels of another shape, ArgumentError for another reduction.

    >>> hg.nn.cross_entropy([[0.0, 0.0], [0.0, 5.0]], [0, 1], reduction="none")
    Tensor([0.6931472 , 0.00671535], dtype=float32)
    """
    values, dtype = floats(logits, "cross_entropy")
    axis = axis_of(axis, values.ndim, "cross_entropy")
    target = array(labels, "cross_entropy")
    by_number = target.dtype.is_integer
    expected = values.shape[:axis] + values.shape[axis + 1 :] if by_number else values.shape
    if target.shape != expected:
        raise located(ShapeError(f"cross_entropy: labels of shape {list(target.shape)} for logits of {list(values.shape)}, not {list(expected)}"))
    logs = log_softmax(values, axis)
    if by_number:  # a choice, not a gather: it stays in the loop over the logits, and its derivative scatters nothing
        chosen = hnp.where(_is_class(wrap(target), values.shape[axis], axis, "cross_entropy"), logs, 0.0)
    else:
        chosen = floats(labels, "cross_entropy")[0] * logs
    return cast(_reduced(-hnp.sum(chosen, axis=axis), reduction, "cross_entropy"), dtype)


def sigmoid_binary_cross_entropy(logits: Any, labels: Any, /, reduction: str = "mean") -> Tensor:
    """Binary cross entropy of ``sigmoid(logits)`` and ``labels`` from 0 to 1, without overflow.

    ``-labels * log(sigmoid(logits)) - (1 - labels) * log(1 - sigmoid(logits))``; the arguments broadcast. ``reduction``: ``mean``, ``sum``, or
    ``none`` for the loss of each example. Raises ArgumentError for another reduction, DTypeError for complex numbers.

    >>> hg.nn.sigmoid_binary_cross_entropy([0.0, 3.0], [1, 1], reduction="none")
    Tensor([0.6931472 , 0.04858735], dtype=float32)
    """
    values, dtype = floats(logits, "sigmoid_binary_cross_entropy")
    target, _ = floats(labels, "sigmoid_binary_cross_entropy")
    losses = target * hnp.logaddexp(-values, 0.0) + (1 - target) * hnp.logaddexp(values, 0.0)
    return cast(_reduced(losses, reduction, "sigmoid_binary_cross_entropy"), dtype)


def _errors(predictions: Any, targets: Any, what: str) -> tuple[Tensor, dtypes.DType]:
    values, dtype = floats(predictions, what)
    aims, other = floats(targets, what)
    return values - aims, dtypes.promote(dtype, other)


def mse(predictions: Any, targets: Any, /, reduction: str = "mean") -> Tensor:
    """Mean squared error of ``predictions`` and ``targets``, which broadcast; in their common float type.

    ``reduction``: ``mean``, ``sum``, or ``none`` for the loss of each element. Raises ArgumentError for another reduction, DTypeError for complex
    numbers.

    >>> hg.nn.mse([1.0, 2.0], [1.0, 4.0])
    Tensor(2., dtype=float32)
    """
    error, dtype = _errors(predictions, targets, "mse")
    return cast(_reduced(error * error, reduction, "mse"), dtype)


def huber(predictions: Any, targets: Any, /, delta: float = 1.0, reduction: str = "mean") -> Tensor:
    """Huber loss: half the squared error up to ``delta``, beyond it ``delta`` times (the error less ``delta / 2``) (Huber 1964).

    Arguments, types and errors are those of :func:`mse`.

    >>> hg.nn.huber([0.5, 4.0], [0.0, 0.0], reduction="none")
    Tensor([0.125, 3.5  ], dtype=float32)
    """
    error, dtype = _errors(predictions, targets, "huber")
    size = hnp.abs(error)
    square = hnp.minimum(size, delta)
    return cast(_reduced(0.5 * square * square + delta * (size - square), reduction, "huber"), dtype)
