"""Operations: wrapped functions with the signatures of torch's own, which accept an executor in front, and their table."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from hologram.errors import ArgumentError, DTypeError, ShapeError
from hologram.ir.devices import CPU
from hologram.sdk.executor import Executor
from hologram.support.user_lines import located
from hologram_torch.api.wrapping import Wrapped

WRITTEN = ("out", "inplace")  # parameters that say where a result goes
_TENSOR, _NUMBER_TOO = "torch.Tensor", "torch.Tensor | complex"  # annotations of arguments


class Row(NamedTuple):
    """An operation and its meaning: ``function`` computes what ``peer``, a function of torch, computes. Parameters with defaults have the names of
    torch's."""

    function: Operation
    peer: Callable[..., Any]

    def reference(self, *args: Any, **options: Any) -> Any:
        """Calls ``peer`` with arguments of ``function``."""
        bound = self.function.__signature__.bind(*args, **options)
        parameters = self.function.__signature__.parameters
        required = [x for name, x in bound.arguments.items() if parameters[name].default is inspect.Parameter.empty]
        return self.peer(*required, **{name: x for name, x in bound.arguments.items() if parameters[name].default is not inspect.Parameter.empty})


TABLE: dict[str, Row] = {}


def operation(peer: Callable[..., Any], autocast: str | None = None) -> Callable[[Callable[..., Any]], Operation]:
    """Decorator: makes an operation of a function written in Hologram, and a row of TABLE. Annotations are those of the function of torch's
    tensors."""

    def decorate(function: Callable[..., Any]) -> Operation:
        made = Operation(function, autocast, CPU)
        TABLE[made.__name__] = Row(made, peer)
        return made

    return decorate


class Operation(Wrapped):
    # A wrapped function that an executor may come before, and which may write its result to a tensor that is given. (No docstring: see Wrapped.)
    __slots__ = ("__doc__", "__signature__", "_elsewhere", "_written")

    def __init__(self, function: Callable[..., Any], policy: str | None, device: str) -> None:
        super().__init__(function, policy, device)
        self.__signature__ = inspect.signature(function)
        self._written = next((p for p in self.__signature__.parameters if p in WRITTEN), None)
        self._elsewhere: dict[str, Operation] = {}

    def on(self, executor: Executor) -> Operation:
        """The operation on the executor's device. Raises ClosedExecutorError where that has ended."""
        device = executor._require_live(self.__name__)
        if device == self._device:
            return self
        if device not in self._elsewhere:
            self._elsewhere[device] = Operation(self.__wrapped__, self._policy, device)
        return self._elsewhere[device]

    def _general(self, args: tuple[Any, ...], options: dict[str, Any], key: Any = None) -> Any:
        if args and type(args[0]) is Executor:
            return self.on(args[0])(*args[1:], **options)
        try:
            bound = self.__signature__.bind(*args, **options)
        except TypeError as e:
            raise located(ArgumentError(f"{self.__name__}: {e}")) from None
        self._check(bound.arguments)
        if self._written is None:
            return super()._general(args, options, key)
        to = bound.arguments.pop(self._written, None)
        if to is None or to is False:
            return super()._general(bound.args, bound.kwargs, key)
        return self._write_over(bound.args[0], bound.args[1:]) if to is True else self._write(to, bound.args)

    def _check(self, arguments: dict[str, Any]) -> None:
        """Raises ArgumentError for arguments that should be tensors, or numbers, and are not."""
        for name, x in arguments.items():
            wanted = self.__signature__.parameters[name].annotation
            if (
                isinstance(x, torch.Tensor)
                or wanted not in (_TENSOR, _NUMBER_TOO)
                or (wanted == _NUMBER_TOO and isinstance(x, (int, float, complex)))
            ):
                continue
            expected = "a torch.Tensor" if wanted == _TENSOR else "a torch.Tensor or a number"
            raise located(ArgumentError(f"{self.__name__}: {name} is {expected}, not a {type(x).__name__}"))

    def _write_over(self, x: torch.Tensor, rest: tuple[Any, ...]) -> torch.Tensor:
        """Writes the result to the memory of ``x``; a copy of ``x`` is kept where a derivative may need it."""
        return x.copy_(self(x.clone() if torch.is_grad_enabled() and x.requires_grad else x, *rest))

    def _write(self, out: Any, args: tuple[Any, ...]) -> torch.Tensor:
        if not isinstance(out, torch.Tensor):
            raise located(ArgumentError(f"{self.__name__}: out is a torch.Tensor, not a {type(out).__name__}"))
        if torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in (*args, out)):
            raise located(ArgumentError(f"{self.__name__}: a result written to out has no gradient, and an argument requires one: leave out away"))
        result = self(*args)
        if out.shape != result.shape:
            raise located(ShapeError(f"{self.__name__}: out has shape {list(out.shape)}, the result {list(result.shape)}"))
        if not torch.can_cast(result.dtype, out.dtype):
            raise located(DTypeError(f"{self.__name__}: out has type {out.dtype}, to which the result's, {result.dtype}, is not cast"))
        return out.copy_(result)
