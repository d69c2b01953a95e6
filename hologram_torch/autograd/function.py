"""The ``autograd.Function`` of Hologram's programs: derivatives of every order, forward mode, and ``torch.func``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from hologram_torch.autograd.forward_backward import ForwardBackward
from hologram_torch.autograd.program import Program, Type
from hologram_torch.bridge.element_types import torch_dtype_of

_transforming = torch._C._are_functorch_transforms_active
_unwrapped = torch._C._functorch.unwrap_if_dead


def call(program: Program, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Runs the program on tensors of its types. Autograd and ``torch.func`` record the call where they ask for it."""
    if _transforming():
        # a tensor may need a gradient at an outer level only, of which the tensor at hand does not tell
        return _recorded(_Call.apply, program, tuple([torch.is_grad_enabled() and _is_differentiable(x) for x in tensors]), tensors)
    if not torch.is_grad_enabled():
        differentiated = (False,) * len(tensors)
    else:
        differentiated = tuple([x.requires_grad for x in tensors])
    tensors = [_unwrapped(x) for x in tensors]
    if True in differentiated or forward_ad._current_level >= 0:
        return _recorded(_apply, program, differentiated, tensors)
    return program.run(tensors)


def _is_differentiable(x: torch.Tensor) -> bool:
    return x.is_floating_point() or x.is_complex()


def _recorded(apply: Any, program: Program, differentiated: tuple[bool, ...], tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    halves: ForwardBackward | None = program.forward_backward.get(differentiated)
    if halves is None:
        halves = ForwardBackward(program, differentiated)
        program.forward_backward.put(differentiated, halves)
    return list(apply(halves, *tensors)[: halves.count])


class _Call(torch.autograd.Function):
    """Runs the forward half and records the backward half.

    What the backward half reads is among the results, so that a second derivative sees it as a function of the arguments.
    """

    @staticmethod
    def forward(halves: ForwardBackward, *tensors: torch.Tensor) -> Any:
        return tuple(halves.forward.run(tensors))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        halves, *tensors = inputs
        ctx.halves = halves
        ctx.set_materialize_grads(False)
        if halves.non_differentiable:
            ctx.mark_non_differentiable(*[output[i] for i in halves.non_differentiable])
        kept = [tensors[i] for i in halves.kept_arguments] + [output[i] for i in halves.kept_results]
        # where results are kept, a second derivative starts from the arguments
        ctx.save_for_backward(*kept, *(tensors if halves.kept_results else ()))
        if forward_ad._current_level >= 0:
            ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        halves: ForwardBackward = ctx.halves
        saved, n = ctx.saved_tensors, len(halves.kept_arguments) + len(halves.kept_results)
        differentiable = [c for c, s in zip(cotangents, halves.differentiable, strict=True) if s] if halves.non_differentiable else cotangents
        own = halves.own
        if all([c is None for c in differentiable]):
            return (None,) * (1 + len(halves.differentiated))
        if all([c is None for c in differentiable[own:]]):
            program, given = halves.backward, saved[:n]
        else:
            program, given, own = halves.complete, saved[n:], len(differentiable)
        types = program.types[len(given) :]
        where = next(c.device for c in differentiable if c is not None)
        pulled = iter(call(program, [*given, *[_present(c, t, where) for c, t in zip(differentiable[:own], types, strict=True)]]))
        return None, *[next(pulled) if w else None for w in halves.differentiated]

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        halves: ForwardBackward = ctx.halves
        moving = tuple([t is not None for t in tangents])
        program = halves.forward.tangent(moving)
        pushed = iter(call(program, [*ctx.saved_tensors, *[t for t in tangents if t is not None]]))
        return tuple([next(pushed) if differentiable else None for differentiable in halves.differentiable])

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], halves: ForwardBackward, *tensors: torch.Tensor) -> Any:
        axes = tuple([d if d is None else d % x.ndim for d, x in zip(in_dims[1:], tensors, strict=True)])
        results = call(halves.forward.stacked(axes, info.batch_size), tensors)
        return tuple(results), (0,) * len(results)


# Function.apply looks at forward's signature on every call, at three times the cost of the rest; what it wraps does the work where no transform
# of torch.func is under way
_apply = super(torch.autograd.Function, _Call).apply


def _present(cotangent: torch.Tensor | None, of: Type, where: torch.device) -> torch.Tensor:
    """The cotangent; zeros of its type for None, which stands for zero."""
    shape, dtype = of
    return torch.zeros(shape, dtype=torch_dtype_of(dtype), device=where) if cotangent is None else cotangent  # type: ignore[arg-type]
