"""``jit``: a function of Tensors as one compiled program for each signature it is called with."""

from __future__ import annotations

import contextlib
import sys
import threading
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np

from hologram.backends.common.storage import DeviceStorage
from hologram.backends.cpu.runtime.tracing import tracing
from hologram.backends.residence import home
from hologram.errors import ArgumentError, DeviceError, IntegerRangeError, ShapeError, TracedValueError
from hologram.ir.devices import AUTO, CPU, resolve
from hologram.ir.graph import Graph
from hologram.ir.node import Node
from hologram.ir.symbolic import Expr, substitute
from hologram.settings import settings
from hologram.support.lru_cache import Recent
from hologram.support.precision import PRECISIONS
from hologram.support.user_lines import located, user_line
from hologram.support.weak import WeakSet
from hologram.trace import compiling, misses, tree
from hologram.trace.apply import node_as, operand, pinned, weak_default, wrap
from hologram.trace.checks import as_function, choice
from hologram.trace.convert import asarray, of_storage, put
from hologram.trace.lazy import realise
from hologram.trace.pickling import by_name
from hologram.trace.recorder import Trace, current, thread_state, transforming
from hologram.trace.signature import SCALAR_TYPES, Call, Dynamic, Signature, name_of
from hologram.trace.tensor import Tensor
from hologram.trace.tree import Treedef

SPECIALISATION_LIMIT = 256  # signatures kept compiled for one function


class Traced:
    """What tracing a call gives: the graph, the structure of the results, and what was assumed of symbolic extents."""

    __slots__ = ("graph", "out_tree", "assumptions")

    def __init__(self, graph: Graph, out_tree: Treedef, assumptions: list[Expr]) -> None:
        self.graph, self.out_tree, self.assumptions = graph, out_tree, assumptions


def trace_call(name: str, function: Callable[..., Any], call: Call) -> Traced:
    """Runs ``function`` on fresh arguments of the call's types. What it raises passes through."""
    before = thread_state.trace, thread_state.levels, thread_state.stacks
    try:
        with Trace(name) as trace, _sizes_noted(call):
            leaves = [wrap(trace.input(t.shape, t.dtype), t.weak) for t in call.types]
            args, options = call.arguments(leaves)
            results, out_tree = tree.flatten(function(*args, **options))
            outputs = [_output(x, name) for x in results]
    finally:  # also where an interrupt came before the trace, or a transform in it, ended itself
        thread_state.trace, thread_state.levels, thread_state.stacks = before
    return Traced(trace.graph(outputs), out_tree, list(dict.fromkeys(trace.assumptions)))


@contextlib.contextmanager
def _sizes_noted(call: Call) -> Iterator[None]:
    """An error about symbolic extents says what they are in this call."""
    try:
        yield
    except (ShapeError, TracedValueError) as e:
        if call.sizes:
            sizes = ", ".join(f"{symbol} = {n}" for symbol, n in call.sizes.items())
            where = "" if " (at " in str(e) else f", at {user_line(e)}"
            e.add_note(f"traced for extents that are symbols, by dynamic; in this call {sizes}{where}. Different symbols never have one size.")
        raise


def holds(assumptions: list[Expr], call: Call) -> bool:
    """Whether the call's sizes keep to what its program takes for granted."""
    return all(substitute(a, call.sizes) >= 0 for a in assumptions)  # type: ignore[operator]


def _output(x: Any, name: str) -> Node:
    try:
        node, dtype, weak = operand(x, name)
    except ArgumentError:
        raise located(ArgumentError(f"{name} returned a {type(x).__name__}: results are Tensors, numbers, and containers of them")) from None
    return node_as(node, weak_default(dtype) if weak else dtype)  # results are strong


class Specialisation:
    """The compiled form of one signature."""

    __slots__ = ("executable", "out_tree", "assumptions", "donated", "record", "_forms")

    def __init__(self, executable: compiling.Executable, traced: Traced, donated: list[int], record: misses.Record) -> None:
        self.executable, self.donated, self.record = executable, donated, record
        self.out_tree, self.assumptions = traced.out_tree, traced.assumptions
        self._forms = Recent(SPECIALISATION_LIMIT)  # types of leaves, and sizes, of earlier calls by Python: how many there were

    def is_new(self, call: Call) -> bool:
        """Whether native code should now learn of calls like this one: the first, or the second where sizes vary and each costs a specialisation."""
        form = (*[_form(x) for x in call.leaves], *call.sizes.values())
        before = self._forms.get(form) or 0
        self._forms.put(form, before + 1)
        return before == (1 if call.sizes else 0)

    def run(self, leaves: Sequence[Any]) -> Any:
        """The results for the dynamic leaves of a call."""
        results = self.tensors(leaves)
        return results[0] if self.out_tree is tree.LEAF else tree.unflatten(self.out_tree, results)

    def tensors(self, leaves: Sequence[Any]) -> list[Tensor]:
        """The leaves of the results, for the dynamic leaves of a call."""
        outputs = compiling.run(self.executable, [_storage_of(x) for x in leaves])
        results = [of_storage(s) for s in outputs]
        for t in results:
            if t._storage.owner is not None:
                pinned(t)  # a borrowed argument may be returned as it is
        del outputs  # whose references a donation would count
        for i in self.donated:
            donate(leaves[i])
        return results


def _storage_of(x: Any) -> Any:
    """The storage of a leaf for the length of a call: arrays are borrowed."""
    if type(x) is Tensor:
        if x._storage is None:
            realise(x)
        return x._storage
    from hologram.backends.cpu.runtime import storage

    if isinstance(x, np.ndarray):
        return storage.borrow(x) if storage.borrowable(x) else storage.copy_of(x)
    if isinstance(x, np.generic):
        return storage.copy_of(np.asarray(x))
    try:
        return storage.copy_of(np.asarray(x, SCALAR_TYPES[type(x)].np))
    except OverflowError:
        raise located(IntegerRangeError(f"the Python integer {x} does not fit int64")) from None


def _form(x: Any) -> Any:
    """What native code tells apart, beside types and shapes: a leaf's class, and whose memory a Tensor of a device is in."""
    return x._storage.memory.pool if type(x) is Tensor and type(x._storage) is DeviceStorage else type(x)


def home_of(leaves: list[Any]) -> str | None:
    """The device that the Tensors among ``leaves`` are on; None where they are the host's. Raises DeviceError for those of two devices."""
    return home(x._storage for x in _realised(leaves))


def _realised(leaves: list[Any]) -> list[Tensor]:
    """The Tensors among ``leaves``, with their values."""
    found = [x for x in leaves if type(x) is Tensor]
    for x in found:
        if x._storage is None:
            realise(x)
    return found


def donate(x: Any) -> None:
    """Gives up a donated Tensor's buffer, unless something else reads it."""
    if type(x) is not Tensor or x._storage is None:
        return
    x._node = None
    if sys.getrefcount(x._storage) <= 2 and x._storage.exports == 0:  # the Tensor's own reference, and getrefcount's argument
        x._storage = None


class Jitted:
    # A jitted function. The slot __call__ holds what runs: a native callable where there is one, so that no Python frame stands
    # between the caller and the kernels; else the bound Python path. (No docstring: __doc__ is the wrapped function's, in a slot.)
    __slots__ = (
        "__call__",
        "__doc__",
        "__name__",
        "__qualname__",
        "__weakref__",
        "__wrapped__",
        "_device",
        "_dispatch",
        "_donated",
        "_last_miss",
        "_precision",
        "_signature",
        "_specialisations",
    )

    def __init__(
        self,
        function: Callable[..., Any],
        static_argnums: int | Iterable[int],
        static_argnames: str | Iterable[str],
        donate_argnums: int | Iterable[int],
        precision: str,
        dynamic: Dynamic,
        device: str | None,
    ) -> None:
        self._device = device
        self.__wrapped__ = function
        self.__name__ = name_of(function)
        self.__qualname__ = getattr(function, "__qualname__", self.__name__)
        self.__doc__ = getattr(function, "__doc__", None)
        self._signature = Signature(function, static_argnums, static_argnames, dynamic)
        self._donated = self._signature.positions("donate_argnums", donate_argnums)
        self._precision = precision
        self._specialisations = Recent(SPECIALISATION_LIMIT)
        self._last_miss: str | None = None
        self._dispatch: Any = None
        self.__call__ = self._python_call
        _jitted.add(self)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<jitted {self.__qualname__}>"

    def __copy__(self) -> Jitted:
        return self

    def __deepcopy__(self, memo: Any) -> Jitted:
        return self

    def __reduce__(self) -> Any:
        """Without what was compiled: elsewhere it is compiled again, or found in the disk cache."""
        signature = self._signature
        options = signature.static_positions, signature.static_names, sorted(self._donated), self._precision, signature.dynamic, self._device
        return by_name(self, self.__wrapped__) or (Jitted, (self.__wrapped__, *options))

    def _python_call(self, *args: Any, **options: Any) -> Any:
        """Serves every call that native code does not: the first of a signature, those while tracing, symbolic shapes."""
        if _disabled.depth or current() is not None or transforming():
            args, options = tree.map(self._own, (args, options))
            return self.__wrapped__(*args, **options)
        call = self._signature.take_apart(args, options)
        found = self._specialised(call)
        if found.executable.remote:
            _realised(call.leaves)
        if settings.native and found.is_new(call):
            self._go_native(call, found)
        return found.run(call.leaves)

    def _own(self, x: Any) -> Any:
        """An argument where the callee is part of another program. A Tensor is the callee's own: an assignment to its elements is as unseen by the
        caller as in compiled code. Arrays are placed on the function's device, so what is computed from them is computed there."""
        if self._device not in (None, AUTO) and (type(x) is Tensor or isinstance(x, np.ndarray)):
            x = put(asarray(x), self._device)
        return copy(x) if type(x) is Tensor else x

    def _specialised(self, call: Call) -> Specialisation:
        """The program for ``call``: found, or made by one thread while others that ask for it wait."""
        device, homes = self._device_for(call)
        key = (call.key, settings.code, device, homes)
        found = self._specialisations.get(key)
        if found is None:
            found = compiling.once((id(self), key), lambda: self._specialisations.get(key) or self._specialise(key, call, device, homes))
        if found.assumptions and not holds(found.assumptions, call):
            return self._specialised(call.concrete())
        return found

    def _device_for(self, call: Call) -> tuple[str | None, tuple[str, ...]]:
        """The device that a call's program is made for, and, where that is to be decided, the devices of the arguments."""
        if self._device is None:
            return home_of(call.leaves), ()
        return self._device, tuple([home_of([x]) or CPU for x in call.leaves]) if self._device == AUTO else ()

    def _specialise(self, key: Any, call: Call, device: str | None, homes: tuple[str, ...]) -> Specialisation:
        record = misses.Record(self._signature, call)
        self._last_miss = misses.explain(self.__name__, record, [s.record for s in self._specialisations.values()])
        if settings.explain_misses:
            print(self._last_miss, file=sys.stderr)
        traced = self._trace(call)
        executable = compiling.compile_graph(traced.graph, self._precision, device, homes)
        found = Specialisation(executable, traced, self._donated_leaves(call), record)
        self._specialisations.put(key, found)
        return found

    def _trace(self, call: Call) -> Traced:
        """The call's graph."""
        return trace_call(self.__name__, self.__wrapped__, call)

    def _go_native(self, call: Call, made: Specialisation) -> None:
        """Lets native code serve the calls that are like this one from now on."""
        from hologram.trace import native  # loads the native runtime, which nothing before the first call needs

        if self._dispatch is None:
            self._dispatch = native.Dispatch(self._python_call, self.__name__, SPECIALISATION_LIMIT)
            self.__call__ = self._dispatch.call
        native.add(self._dispatch, call, made)

    def _donated_leaves(self, call: Call) -> list[int]:
        """Indices of the leaves that belong to donated positional arguments."""
        if not self._donated:
            return []
        args, _ = tree.unflatten(call.treedef, range(call.treedef.leaves))
        positions = [i for i in range(len(args) + len(call.statics)) if i not in call.statics]
        return [leaf for i, a in zip(positions, args, strict=False) if i in self._donated for leaf in tree.leaves(a)]

    def explain_last_miss(self) -> str | None:
        """Why this function last compiled: which argument changed, and how; None before the first call."""
        return self._last_miss

    def lower(self, *args: Any, **options: Any) -> Any:
        """Traces the call without running it: a :class:`~hologram.trace.stages.Lowered`. A :class:`~hologram.ShapeDtypeStruct` may stand for an
        array."""
        from hologram.trace.described import taken_apart
        from hologram.trace.stages import Lowered

        call = taken_apart(self._signature, args, options)
        traced = self._trace(call)
        return Lowered(self.__name__, self._signature, call, traced, self._precision, *self._device_for(call))

    def clear_cache(self) -> None:
        """Forgets what was compiled."""
        self._specialisations.clear()
        if self._dispatch is not None:
            self._dispatch.clear()


_jitted: WeakSet[Jitted] = WeakSet()


def clear_all() -> None:
    """Forgets what was compiled for any function."""
    for function in list(_jitted):
        function.clear_cache()


def jit(
    f: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    donate_argnums: int | Iterable[int] = (),
    device: Any = None,
    precision: str = "standard",
    dynamic: Dynamic = False,
) -> Any:
    """``f`` compiled: traced at the first call with a signature (structure, shapes and types of the arguments, values of the static
    ones), run as native code from then on. Without ``f`` a decorator with these options.

    - ``static_argnums``, ``static_argnames``: arguments that are plain Python values while tracing; each value is a signature.
    - ``donate_argnums``: arguments whose Tensors may not be used after the call; their memory may be reused.
    - ``device``: where it runs, one of :func:`hologram.devices`; None: where the arguments are. Results stay there (see docs/gpu.md).
    - ``precision``: ``exact``, ``standard``, ``fast``, or ``tf32``: as ``standard``, and products of float32 may round their factors to TF32 on GPUs.
    - ``dynamic``: True, or a dict from argument number or name to axes: extents that are symbols, so one program serves every size
      (see docs/shapes.md). An axis or argument that a call does not have is an ArgumentError.
    """
    choice(precision, "jit", "precision", PRECISIONS)
    try:
        runs_on = None if device is None else resolve(device)
    except DeviceError as e:
        raise located(e) from None

    def decorate(function: Callable[..., Any]) -> Jitted:
        return Jitted(as_function(function, "jit"), static_argnums, static_argnames, donate_argnums, precision, dynamic, runs_on)

    return decorate if f is None else decorate(f)


# --- running without compiling ---------------------------------------------------------------------------------------


class _Disabled(threading.local):
    depth = 0


_disabled = _Disabled()


def jit_is_disabled() -> bool:
    """Whether this thread is in a block under :func:`disable_jit`."""
    return _disabled.depth > 0


@contextlib.contextmanager
def disable_jit() -> Iterator[None]:
    """For a block, jitted functions of this thread run as plain Python on lazy Tensors: breakpoints and prints work inside."""
    before = _disabled.depth
    try:
        _disabled.depth = before + 1
        with tracing():
            yield
    finally:
        _disabled.depth = before
