"""``torch.ops.hologram.*``: the operations of :mod:`hologram_torch.functional` as ops of torch's dispatcher. Importing this module registers them.

Each operation gives two ops: itself, and ``NAME_backward(grad, *arguments)``, the gradients with respect to its tensor arguments. ``torch.compile``
and ``torch.export`` keep both in the graphs they make, whatever backend compiles the rest. Schemas follow from the annotations; types and shapes of
results from torch's functions of the same meaning.
"""

from __future__ import annotations

import inspect
import typing
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

import hologram as hg
from hologram import dtypes
from hologram import numpy as hnp
from hologram.transform.nodes import has_tangents
from hologram_torch.api.functional import __all__ as names
from hologram_torch.api.operation import TABLE, WRITTEN, Row
from hologram_torch.api.wrapping import wrap

__all__ = ["NAMESPACE"]

NAMESPACE = "hologram"
_AUTOGRAD = [getattr(torch._C.DispatchKey, name) for name in ("AutogradFunctionality", "AutogradCPU", "AutogradMeta", "AutogradOther")]


def _schema_type(annotation: Any) -> Any:
    """The annotation as a schema has it: schemas have no unions, so a tensor or a number is a tensor."""
    kinds = typing.get_args(annotation)
    return torch.Tensor if torch.Tensor in kinds and type(None) not in kinds else annotation


class _Ops:
    """The two ops of an operation."""

    def __init__(self, row: Row) -> None:
        self.row, self.operation = row, row.function
        self.name = row.function.__name__
        hints = inspect.get_annotations(row.function.__wrapped__, eval_str=True)
        signature = row.function.__signature__
        self.parameters = [p.replace(annotation=hints[p.name]) for p in signature.parameters.values() if p.name not in WRITTEN]
        self.pulled = wrap(self._pulled)

    def register(self) -> None:
        op = self._define(self.name, self.parameters, Tensor, self.operation, self._fake)
        grad = inspect.Parameter("grad", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Tensor)
        backward = self._define(self.name + "_backward", [grad, *self.parameters], list[Tensor], self.pulled, self._fake_backward)

        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            ctx.save_for_backward(*_tensors(inputs))
            ctx.statics = [None if isinstance(x, Tensor) else x for x in inputs]
            ctx.positions = [i for i, x in enumerate(inputs) if isinstance(x, Tensor)]

        def pull(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
            arguments = list(ctx.statics)
            for i, x in zip(ctx.positions, ctx.saved_tensors, strict=True):
                arguments[i] = x
            found = dict(zip(ctx.positions, backward(grad, *arguments), strict=True))
            return tuple([found.get(i) if needed else None for i, needed in enumerate(ctx.needs_input_grad)])

        op.register_autograd(pull, setup_context=setup_context)

    def _define(self, name: str, parameters: Sequence[inspect.Parameter], result: Any, kernel: Callable[..., Any], fake: Callable[..., Any]) -> Any:
        prototype: Any = lambda *args: None  # noqa: E731  # the parameters are the row's
        if any(isinstance(p.default, tuple) for p in parameters):  # schemas have no such defaults
            parameters = [p.replace(default=inspect.Parameter.empty) for p in parameters]
        parameters = [p.replace(annotation=_schema_type(p.annotation)) for p in parameters]
        prototype.__signature__ = inspect.Signature(parameters, return_annotation=result)
        schema = torch.library.infer_schema(prototype, mutates_args=())
        made = torch.library.custom_op(f"{NAMESPACE}::{name}", kernel, mutates_args=(), schema=schema, device_types="cpu")
        made.register_fake(fake)
        return made

    def _pulled(self, grad: Any, *arguments: Any) -> list[Any]:
        """The backward op in Hologram: a gradient for each Tensor among the arguments, zeros for one that is no float."""
        positions = [i for i, x in enumerate(arguments) if type(x) is hg.Tensor]
        differentiable = [i for i in positions if has_tangents(dtypes.of(arguments[i].dtype))]

        def of_differentiable(*chosen: Any) -> Any:
            given = dict(zip(differentiable, chosen, strict=True))
            return self.operation.__wrapped__(*[given.get(i, x) for i, x in enumerate(arguments)])

        _, pull = hg.vjp(of_differentiable, *[arguments[i] for i in differentiable])
        found = dict(zip(differentiable, pull(hnp.conj(grad)), strict=True))
        return [hnp.conj(found[i]) if i in found else hnp.zeros_like(arguments[i]) for i in positions]

    def _fake(self, *arguments: Any) -> Tensor:
        with warnings.catch_warnings(), _above_autograd(), torch.no_grad():
            warnings.simplefilter("ignore")  # of torch's about its own defaults
            like = self.row.reference(*arguments)
        return torch.empty(like.shape, dtype=like.dtype, device=like.device)

    def _fake_backward(self, grad: Tensor, *arguments: Any) -> list[Tensor]:
        return [torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in _tensors(arguments)]


def _above_autograd() -> AbstractContextManager[None]:
    """Dispatches as outside of an op. Beneath autograd torch 2.13 decomposes losses of varying sizes by functions that give other shapes."""
    excluded = torch._C._dispatch_tls_local_exclude_set()
    for key in _AUTOGRAD:
        excluded = excluded.remove(key)
    return torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(), excluded)


def _tensors(arguments: Sequence[Any]) -> list[Tensor]:
    return [x for x in arguments if isinstance(x, Tensor)]


for _name in names:
    _Ops(TABLE[_name]).register()
