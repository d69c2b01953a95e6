"""``wrap``: makes a differentiable function of torch's tensors from a function written in Hologram."""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Sequence
from importlib import import_module
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad, profiler
from torch.nn import Parameter

from hologram import dtypes
from hologram.errors import ArgumentError, DeviceError, DTypeError, HologramError, StaticArgumentError
from hologram.ir.devices import CPU, resolve
from hologram.settings import listeners, settings
from hologram.support.lru_cache import Recent
from hologram.support.user_lines import located
from hologram.trace import tree
from hologram.trace.call.signature import exactly, name_of
from hologram.trace.tree import Treedef
from hologram_torch.autograd.function import call
from hologram_torch.autograd.program import Program, Type
from hologram_torch.bridge import cuda
from hologram_torch.bridge.element_types import dtype_of
from hologram_torch.bridge.profiler import RANGES, follow

MAX_SIGNATURES = 256  # programs kept for one function
AUTOCAST = (None, "lower", "float32")

_COMPARED = (bool, int, str, type(None))  # static arguments that are the same where type and value are equal
_grad_enabled = torch.is_grad_enabled
_modes = torch._C._len_torch_dispatch_stack
_PROXY = torch._C._TorchDispatchModeKey.PROXY  # of the mode under which make_fx traces


def wrap(f: Callable[..., Any] | None = None, *, autocast: str | None = None, device: Any = None) -> Any:
    """Wraps a function of Tensors, written with :mod:`hologram.numpy` and its kin, as a function of ``torch.Tensor``. Without ``f`` a decorator.

    Arguments and results are pytrees (:mod:`hologram.tree`). Leaves that are tensors, on the CPU or on one CUDA device, become Tensors of the same
    shape and type; all others are static: plain values while ``f`` is traced. Each combination of these, and of shapes and types, is a program of
    its own. Results are new tensors.

    The function can be differentiated in both modes, to any order, by ``backward``, ``torch.autograd`` and ``torch.func`` (``grad``, ``vjp``,
    ``jvp``, ``vmap``, ``jacrev``, ``jacfwd``, ``hessian``). What is saved for the backward pass is a minimum cut of the graph: see docs/pytorch.md.

    - ``autocast``: what it does under ``torch.autocast``: ``"lower"`` computes float32 arguments in autocast's type, ``"float32"`` computes 16-bit
      floats in float32, None takes arguments as they are.
    - ``device``: where it runs, one of :func:`hologram.devices`; None is the device of the tensors. On a CUDA device it runs in PyTorch's current
      stream, and copies neither arguments nor results.

    Raises what ``f`` raises while it is traced; DeviceError for tensors of several devices, of others, or of one that Hologram cannot use;
    ArgumentError for tensors without plain strided memory; DTypeError for element types that Hologram lacks; and StaticArgumentError for other leaves
    that cannot be hashed.

    >>> @hologram_torch.wrap
    ... def energy(x):
    ...     return hnp.sum(hnp.sin(x) ** 2)
    >>> x = torch.tensor([0.5, 1.0], requires_grad=True)
    >>> energy(x).backward()
    >>> x.grad
    tensor([0.8415, 0.9093])
    """
    if autocast not in AUTOCAST:
        raise located(ArgumentError(f"wrap: autocast is one of {', '.join(map(repr, AUTOCAST))}, not {autocast!r}"))
    runs_on = CPU if device is None else resolve(device)

    def decorate(function: Callable[..., Any]) -> Wrapped:
        if not callable(function):
            raise located(ArgumentError(f"wrap takes a function, not a {type(function).__name__}"))
        return Wrapped(function, autocast, runs_on)

    return decorate if f is None else decorate(f)


class Wrapped:
    # What wrap gives. The slot __call__ holds what runs, so that a call costs a function's and not a method's. (No docstring: __doc__ is the wrapped
    # function's, in a slot.)
    __slots__ = ("__call__", "__doc__", "__name__", "__qualname__", "__weakref__", "__wrapped__", "_device", "_policy", "_programs", "_ready")

    def __init__(self, function: Callable[..., Any], policy: str | None, device: str) -> None:
        self.__wrapped__, self.__name__, self.__doc__ = function, name_of(function), getattr(function, "__doc__", None)
        self.__qualname__ = getattr(function, "__qualname__", self.__name__)
        self._policy, self._device = policy, device
        self._programs = Recent(MAX_SIGNATURES)
        self._ready: dict[Any, _Signature] = {}  # of calls with positional tensors and plain options
        self.__call__ = self._caller()
        _wrapped.add(self)

    def __repr__(self) -> str:
        return f"<wrapped {self.__qualname__}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __copy__(self) -> Wrapped:
        return self

    def __deepcopy__(self, memo: Any) -> Wrapped:
        return self

    def __reduce__(self) -> Any:
        """Pickles as the name that it is imported by, as functions do."""
        return _imported, (self.__wrapped__.__module__, self.__qualname__)

    def _caller(self) -> Callable[..., Any]:
        """The function that serves calls: known calls without derivatives or transforms go straight to native code, others to ``_general``."""
        general, ready = self._general, self._ready
        may_cast = self._policy is not None

        def call_wrapped(*args: Any, **options: Any) -> Any:
            key: list[Any] = []
            addresses: list[int] = []  # of the tensors with plain memory that nothing asks to record
            try:
                for x in args:
                    kind = type(x)
                    if kind is Tensor or kind is Parameter:
                        key.append(x.shape)
                        key.append(x.dtype)
                        if not x.is_cpu:
                            return general(args, options)
                        if x.is_contiguous() and not x.is_neg() and not (x.requires_grad and _grad_enabled()):
                            addresses.append(x.data_ptr())
                    elif kind in _COMPARED:
                        key += (kind, x)
                    else:
                        return general(args, options)
            except RuntimeError:  # a tensor of a transform, which has no address
                return general(args, options)
            if options:
                for name, x in options.items():
                    if type(x) not in _COMPARED:
                        return general(args, options)
                    key += (name, type(x), x)
            signature = ready.get(tuple(key))
            if signature is None or _modes() or (may_cast and torch.is_autocast_enabled("cpu")):
                return general(args, options, tuple(key))
            if profiler._is_profiler_enabled is not RANGES.is_on:
                follow()
            # torch's zeros without memory have the address 0
            if len(addresses) != signature.addresses or 0 in addresses or forward_ad._current_level >= 0:
                return signature.call([x for x in args if isinstance(x, Tensor)])
            result = signature.make()
            signature.run(*addresses, result.data_ptr())
            return result

        _keep_dynamo_out(call_wrapped)
        return call_wrapped

    def _general(self, args: tuple[Any, ...], options: dict[str, Any], key: Any = None) -> Any:
        """Serves any call; ``key`` is the key under which ``_caller`` will know this one."""
        if torch._C._get_tracing_state() is not None or torch._C._get_dispatch_mode(_PROXY) is not None:
            advice = "wrap what is around it too, or use torch.compile with the ops of torch.ops.hologram"
            raise located(ArgumentError(f"{self.__name__}: torch.jit.trace and make_fx do not see what it computes: {advice}"))
        leaves, structure = tree.flatten((args, options))
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        given = [self._type(x, args, options) for x in tensors]
        device, kind = self._where(tensors)
        cast = self._cast(kind)
        full_key = (structure, *[self._static(x) for x in leaves], *given, cast, device, settings.code)
        signature: _Signature | None = self._programs.get(full_key)
        if signature is None:
            signature = _Signature(self, leaves, structure, given, cast, device)
            self._programs.put(full_key, signature)
        if (
            key is not None and cast is None and any(shape for shape, _ in given)
        ):  # torch.jit.trace gives those with axes, and no others, shapes of its own
            if len(self._ready) >= MAX_SIGNATURES:
                self._ready.clear()
            self._ready[key] = signature
        return signature.call(tensors)

    def _type(self, x: Tensor, args: Any, options: Any) -> Type:
        """The type of a tensor. Raises, naming the argument, where Hologram cannot take it."""
        if x.device.type not in ("cpu", "cuda"):
            raise located(DeviceError(f"{self.__name__}: {self._place(x, args, options)} is on {x.device}: it takes tensors on the CPU or on CUDA"))
        if x.layout is not torch.strided:
            raise located(
                ArgumentError(f"{self.__name__}: {self._place(x, args, options)} has layout {x.layout}, not torch.strided: call to_dense()")
            )
        try:
            return tuple(x.shape), dtype_of(x.dtype)
        except DTypeError as e:
            raise located(DTypeError(f"{self.__name__}: {self._place(x, args, options)}: {e}")) from None

    def _where(self, tensors: list[Tensor]) -> tuple[str, str]:
        """The device that a call runs on, and torch's kind of device of the tensors.

        The device is that of the tensors, or for tensors on the CPU the function's.
        """
        try:
            there = cuda.common_device(tensors)
            device = self._device if there is None else cuda.name_of(there)
        except DeviceError as e:
            raise located(DeviceError(f"{self.__name__}: {e}")) from None
        if there is not None and self._device not in (CPU, device):
            raise located(DeviceError(f"{self.__name__}: it computes on {self._device}, and its arguments are on {there}"))
        return device, "cpu" if there is None else "cuda"

    def _place(self, x: Tensor, args: Any, options: Any) -> str:
        found = [*tree.paths(args, "argument "), *[p for n, v in options.items() for p in tree.paths(v, n)]]
        return next(path for path, leaf in found if leaf is x)

    def _static(self, x: Any) -> Any:
        """The part of the cache key that a leaf makes up."""
        if isinstance(x, Tensor):
            return Tensor
        try:
            hash(x)
        except TypeError:
            what = f"an argument is a {type(x).__name__}, which is no torch.Tensor and so static, but cannot be hashed"
            raise located(StaticArgumentError(f"{self.__name__}: {what}: pass a tensor, a tuple or another immutable value")) from None
        return exactly(x)

    def _cast(self, kind: str) -> torch.dtype | None:
        """The type that autocast on a kind of device gives to float arguments; None where it leaves them."""
        if self._policy is None or not torch.is_autocast_enabled(kind):
            return None
        return torch.float32 if self._policy == "float32" else torch.get_autocast_dtype(kind)


class _Signature:
    """The program of all calls with one key, and the structure of its results."""

    __slots__ = ("structure", "program", "_function", "_leaves", "_arguments", "_cast", "addresses", "run", "make")

    def __init__(
        self, wrapped: Wrapped, leaves: Sequence[Any], arguments: Treedef, given: Sequence[Type], cast: torch.dtype | None, device: str
    ) -> None:
        self._function, self._arguments = wrapped.__wrapped__, arguments
        self._leaves = [Tensor if isinstance(x, Tensor) else x for x in leaves]
        self._cast = None if cast is None else dtype_of(cast)
        self.structure: Treedef = tree.LEAF
        self.program = Program(wrapped.__name__, self._flat, given, device)
        self._trace()
        # of a program that can be called with no more ado: how many arguments it has, the native function, and what makes its result's memory
        self.addresses: int | None = None
        self.run: Any = None
        self.make: Any = None

    def _trace(self) -> None:
        """Traces at once, so that the structure of results is known, and errors are raised before autograd begins."""
        try:
            self.program.graph  # noqa: B018
        except HologramError as e:
            if (placed := located(e)) is e:
                raise
            raise placed from e

    def call(self, tensors: Sequence[Tensor]) -> Any:
        """Runs the program on tensors of its types; autograd and transforms record it."""
        results = call(self.program, tensors)
        if self.structure is not tree.LEAF:
            return tree.unflatten(self.structure, results)
        if self.addresses is None and self.program.is_plain:
            self.run, self.make = self.program.bound, self.program.makers[0]
            self.addresses = len(self.program.types)
        return results[0]

    def _flat(self, *tensors: Any) -> list[Any]:
        """The function of the tensors alone. Returns the leaves of the results."""
        given = iter(tensors)
        leaves = [self._converted(next(given)) if x is Tensor else x for x in self._leaves]
        args, options = tree.unflatten(self._arguments, leaves)
        results, self.structure = tree.flatten(self._function(*args, **options))
        return results

    def _converted(self, x: Any) -> Any:
        """A float argument in the type that autocast asks for; wider floats stay."""
        dtype = dtypes.of(x.dtype)
        return x.astype(self._cast.np) if self._cast is not None and dtype.is_float and dtype.bits <= 32 else x


def _imported(module: str, name: str) -> Any:
    return attrgetter(name)(import_module(module))


def _keep_dynamo_out(function: Any) -> None:
    """Makes ``torch.compile`` break its graph at the function's calls and compile nothing inside: tracing has to run as it is."""
    frames = torch._C._dynamo.eval_frame
    skip = frames._FrameAction.SKIP
    frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(skip, skip))


# --- settings --------------------------------------------------------------------------------------------------------

_wrapped: weakref.WeakSet[Wrapped] = weakref.WeakSet()


def _forget_ready_calls() -> None:
    """Clears the calls that ``_caller`` knows, since they were compiled under other settings."""
    for w in list(_wrapped):
        w._ready.clear()


listeners.append(_forget_ready_calls)
