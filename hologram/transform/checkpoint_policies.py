"""Which inner values of a checkpointed function are kept for its derivative: for the ``policy`` of :func:`hologram.checkpoint`."""

from __future__ import annotations

from collections.abc import Callable

from hologram.ir.node import Node
from hologram.primitives.scalar.elementwise import PRODUCTS

__all__ = [
    "checkpoint_dots", "checkpoint_dots_with_no_batch_dims", "dots_saveable", "dots_with_no_batch_dims_saveable", "everything_saveable",
    "nothing_saveable", "save_from_both_policies",
]  # fmt: skip

Policy = Callable[[Node], bool]


def everything_saveable(node: Node) -> bool:
    """All values are kept, as without a checkpoint.

    >>> f = hg.checkpoint(lambda x: hnp.sin(hnp.sin(x)), policy=hg.checkpoint_policies.everything_saveable)
    >>> hg.grad(f)(0.0)
    Tensor(1., dtype=float32)
    """
    return True


def nothing_saveable(node: Node) -> bool:
    """No value is kept: as without a policy.

    >>> f = hg.checkpoint(lambda x: hnp.sin(hnp.sin(x)), policy=hg.checkpoint_policies.nothing_saveable)
    >>> hg.grad(f)(0.0)
    Tensor(1., dtype=float32)
    """
    return False


def dots_saveable(node: Node) -> bool:
    """Products of matrices, sums of products in general, and convolutions are kept; elementwise work is done again. Also ``checkpoint_dots``.

    >>> f = hg.checkpoint(lambda x: hnp.sin(x @ x).sum(), policy=hg.checkpoint_policies.dots_saveable)
    >>> hg.grad(f)(hnp.zeros((2, 2)))
    Tensor([[0., 0.],
            [0., 0.]], dtype=float32)
    """
    if node.op.kind == "contraction":
        return True
    return node.op.name == "reduce_sum" and node.inputs[0].op in PRODUCTS and all(x.op.name == "broadcast" for x in node.inputs[0].inputs)


def dots_with_no_batch_dims_saveable(node: Node) -> bool:
    """Products of matrices without axes of batches are kept, those of weights. Also ``checkpoint_dots_with_no_batch_dims``.

    >>> f = hg.checkpoint(lambda x: hnp.sin(x @ x).sum(), policy=hg.checkpoint_policies.dots_with_no_batch_dims_saveable)
    >>> hg.grad(f)(hnp.zeros((2, 2)))
    Tensor([[0., 0.],
            [0., 0.]], dtype=float32)
    """
    if node.op.kind == "contraction" or not dots_saveable(node):
        return False
    product = node.inputs[0]
    first, second = ({d for d, n in zip(x.attrs[1], x.inputs[0].shape, strict=True) if n != 1} for x in product.inputs)
    return not {d for d in first & second if d not in node.attrs[0]}


def save_from_both_policies(first: Policy, second: Policy) -> Policy:
    """What either policy keeps.

    >>> policies = hg.checkpoint_policies
    >>> both = policies.save_from_both_policies(policies.dots_saveable, policies.nothing_saveable)
    >>> hg.grad(hg.checkpoint(lambda x: (x @ x) ** 2, policy=both))(hnp.asarray([1.0, 0.0]))
    Tensor([4., 0.], dtype=float32)
    """
    return lambda node: first(node) or second(node)


checkpoint_dots, checkpoint_dots_with_no_batch_dims = dots_saveable, dots_with_no_batch_dims_saveable
