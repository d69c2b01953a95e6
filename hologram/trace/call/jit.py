"""``jit``: a function of Tensors as one compiled program for each signature it is called with."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Any

import numpy as np

from hologram.backends.native.tracing import tracing
from hologram.errors import DeviceError, is_defect
from hologram.ir.devices import AUTO, CPU, resolve
from hologram.settings import settings
from hologram.support.html import html_method
from hologram.support.lru_cache import Recent
from hologram.support.pickling import by_name
from hologram.support.precision import PRECISIONS
from hologram.support.user_lines import located
from hologram.support.weak import WeakSet
from hologram.trace import compiling, hooks, tree
from hologram.trace.call import automatic, cache_misses, shared_programs
from hologram.trace.call.abstract_eval import flatten_described_call
from hologram.trace.call.signature import AUTOMATIC, Call, Dynamic, Signature, name_of
from hologram.trace.call.specialisation import NATIVE_LIMIT, SPECIALISATION_LIMIT, VARIANT_LIMIT, Specialisation, home_of, realised_leaves
from hologram.trace.call.stages import OUTPUTS, Lowered
from hologram.trace.call.trace_call import Traced, holds, trace_call
from hologram.trace.checks import as_function, choice
from hologram.trace.convert import asarray, given_array, put
from hologram.trace.recorder import current, transforming
from hologram.trace.tensor import Tensor


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
        "_families",
        "_last_miss",
        "_output",
        "_precision",
        "_run",
        "_signature",
        "_specialisations",
    )

    def __init__(
        self,
        function: Callable[..., Any],
        static_argnums: int | Iterable[int] | None,
        static_argnames: str | Iterable[str] | None,
        donate_argnums: int | Iterable[int] | None,
        precision: str,
        dynamic: Dynamic,
        device: str | None,
        donate_argnames: str | Iterable[str] | None = (),
        output: str = "tensor",
    ) -> None:
        self._device, self._output = device, output
        self.__wrapped__ = function
        self.__name__ = name_of(function)
        self.__qualname__ = getattr(function, "__qualname__", self.__name__)
        self.__doc__ = getattr(function, "__doc__", None)
        self._signature = Signature(function, static_argnums, static_argnames, dynamic)
        self._donated: set[int | str] = {*self._signature.positions("donate_argnums", donate_argnums)}
        self._donated |= self._signature.named_places("donate_argnames", donate_argnames)
        self._precision = precision
        self._specialisations = Recent(SPECIALISATION_LIMIT)
        self._families = Recent(SPECIALISATION_LIMIT)
        self._last_miss: str | None = None
        self._dispatch: Any = None
        self._serve(self._python_call)
        _jitted.add(self)

    def _serve(self, run: Callable[..., Any]) -> None:
        """Lets ``run`` serve the calls from now on."""
        self._run = run
        self.__call__ = run if self._output == "tensor" else self._numpy_call

    def _numpy_call(self, *args: Any, **options: Any) -> Any:
        """A call with ``output="numpy"``: arrays; Tensors where it is part of another program, or is differentiated or batched."""
        made = self._run(*args, **options)
        if current() is not None or transforming():
            return made
        return given_array(made) if type(made) is Tensor else tree.map(given_array, made)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<jitted {self.__qualname__}>"

    _repr_html_ = html_method("notebook.programs:jitted_html")

    def __copy__(self) -> Jitted:
        return self

    def __deepcopy__(self, memo: Any) -> Jitted:
        return self

    def __reduce__(self) -> Any:
        """Without what was compiled: elsewhere it is compiled again, or found in the disk cache."""
        signature = self._signature
        positions, names = ({d for d in self._donated if type(d) is kind} for kind in (int, str))
        donated = signature.static_positions, signature.static_names, positions
        options = *donated, self._precision, signature.dynamic, self._device, names, self._output
        return by_name(self, self.__wrapped__) or (Jitted, (self.__wrapped__, *options))

    def _python_call(self, *args: Any, **options: Any) -> Any:
        """Serves every call that native code does not: the first of a signature, those while tracing, symbolic shapes."""
        if _disabled.depth or current() is not None or transforming():
            args, options = tree.map(self._own, (args, options))
            return self.__wrapped__(*args, **options)
        call, found = self._specialised(self._signature.flatten_call(args, options))
        if found.executable.remote:
            realised_leaves(call.leaves)
        if settings.native and not settings.nans and found.is_new(call):
            self._go_native(call, found, args, options)
        return found.run(call.leaves)

    def _own(self, x: Any) -> Any:
        """An argument where the callee is part of another program. A Tensor is the callee's own: an assignment to its elements is as unseen by the
        caller as in compiled code. Arrays are placed on the function's device, so what is computed from them is computed there."""
        if self._device not in (None, AUTO) and (type(x) is Tensor or isinstance(x, np.ndarray)):
            x = put(asarray(x), self._device)
        return copy(x) if type(x) is Tensor else x

    def _specialised(self, call: Call) -> tuple[Call, Specialisation]:
        """The program for ``call``, and the call as that program takes it, with or without symbols."""
        place = (settings.code, settings.nans), *self._device_for(call)
        if settings.nans:
            call = call.concrete()
        elif self._signature.automatic and self._specialisations.get((call.key, *place, 0)) is None:
            served = self._automatic(call, place)
            if served is not None:
                return served
        found = self._holding(call, place)
        if found is None:
            call = call.concrete()
            found = self._found(call, place)
        return call, found

    def _holding(self, call: Call, place: Any) -> Specialisation | None:
        """The program of the call's signature whose assumptions the call's sizes keep; None where it is compiled for its sizes."""
        for variant in range(VARIANT_LIMIT):
            found = self._found(call, place, variant)
            if not found.assumptions or holds(found.assumptions, call):
                return found
            if holds(found.decisions, call):
                return None
        return None

    def _found(self, call: Call, place: Any, variant: int = 0) -> Specialisation:
        """The program of the call's very signature: found, or made by one thread while others that ask for it wait."""
        key = (call.key, *place, variant)
        found = self._specialisations.get(key)
        return found or compiling.once((id(self), key), lambda: self._specialisations.get(key) or self._specialise(key, call, *place[1:]))

    def _automatic(self, call: Call, place: Any) -> tuple[Call, Specialisation] | None:
        """The program in which axes of ``call`` that vary are symbolic; None where it is compiled for its sizes."""
        key = (automatic.family_key(call), place)
        family = self._families.get(key)
        if family is None:
            family = automatic.Family()
            self._families.put(key, family)
        if family.is_static:
            return None
        family.note(call.types)
        symbolic = call.symbolic(family.axes)
        if not symbolic.sizes:
            return None
        if place[1] == AUTO:
            reason = "what runs where is decided by them"
        else:
            try:
                found = self._holding(symbolic, place)
            except Exception as e:
                if settings.verify and is_defect(e):
                    raise
                reason = "with symbols: " + str(e).partition("\n")[0]
            else:
                return None if found is None else (symbolic, found)
        self._found(call, place)  # what is wrong with the call itself is raised here
        family.is_static = True
        self._tell_miss(f"{self._last_miss}\n  its sizes stay static, because {reason}")
        return None

    def _device_for(self, call: Call) -> tuple[str | None, tuple[str, ...]]:
        """The device that a call's program is made for, and, where that is to be decided, the devices of the arguments."""
        if self._device is None:
            return home_of(call.leaves), ()
        return self._device, tuple([home_of([x]) or CPU for x in call.leaves]) if self._device == AUTO else ()

    def _specialise(self, key: Any, call: Call, device: str | None, homes: tuple[str, ...]) -> Specialisation:
        start = time.perf_counter()
        traced = self._trace(call)
        if self._signature.automatic:
            automatic.check_traced(traced)
        executable = shared_programs.compiled(traced.graph, self._precision, device, homes, self._signature.automatic, self.__name__)
        record = cache_misses.Record(self._signature, call)
        self._tell_miss(cache_misses.explain(self.__name__, record, [s.record for s in self._specialisations.values()]))
        found = Specialisation(executable, traced, self._donated_leaves(call), record, time.perf_counter() - start)
        self._specialisations.put(key, found)
        return found

    def _tell_miss(self, text: str) -> None:
        """Notes, and says if asked to, why there is another program."""
        self._last_miss = text
        if settings.explain_misses:
            print(text, file=sys.stderr)

    def _trace(self, call: Call) -> Traced:
        """The call's graph."""
        return trace_call(self.__name__, self.__wrapped__, call)

    def _go_native(self, call: Call, made: Specialisation, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Lets native code serve the calls that are like this one from now on."""
        from hologram.trace.call import native_dispatch

        if self._dispatch is None:
            self._dispatch = native_dispatch.Dispatch(self._python_call, self.__name__, NATIVE_LIMIT)
            self._serve(self._dispatch.call)
        native_dispatch.add(self._dispatch, call, made, args, options)

    def _donated_leaves(self, call: Call) -> list[int]:
        """Indices of the leaves that belong to donated arguments."""
        if not self._donated:
            return []
        args, options = tree.unflatten(call.treedef, range(call.treedef.leaves))
        positions = [i for i in range(len(args) + len(call.statics)) if i not in call.statics]
        given = [*zip(positions, args, strict=False), *options.items()]
        return [leaf for place, a in given if place in self._donated for leaf in tree.leaves(a)]

    def explain_last_miss(self) -> str | None:
        """Why this function last compiled: which argument changed, and how; None before the first call."""
        return self._last_miss

    def lower(self, *args: Any, **options: Any) -> Any:
        """Traces the call without running it: a :class:`~hologram.trace.call.stages.Lowered`. A :class:`~hologram.ShapeDtypeStruct` may stand for an
        array."""
        call = flatten_described_call(self._signature, args, options)
        traced = self._trace(call)
        return Lowered(self.__name__, self._signature, call, traced, self._precision, *self._device_for(call), output=self._output)

    def clear_cache(self) -> None:
        """Forgets what was compiled."""
        self._specialisations.clear()
        self._families.clear()
        if self._dispatch is not None:
            self._dispatch.clear()


_jitted: WeakSet[Jitted] = WeakSet()


def clear_all() -> None:
    """Forgets what was compiled for any function."""
    for function in list(_jitted):
        function.clear_cache()
    shared_programs.clear()


tree.reinterpreted.append(clear_all)


def jit(
    f: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Iterable[int] | None = (),
    static_argnames: str | Iterable[str] | None = (),
    donate_argnums: int | Iterable[int] | None = (),
    donate_argnames: str | Iterable[str] | None = (),
    device: Any = None,
    precision: str = "standard",
    dynamic: Dynamic = AUTOMATIC,
    output: str = "tensor",
    in_shardings: Any = None,
    out_shardings: Any = None,
) -> Any:
    """Compiles a function to native code; without ``f`` a decorator with these options.

    ``f`` is traced at the first call with a signature (structure, shapes and types of the arguments, values of the static ones), and run as native
    code from then on.

    - ``static_argnums``, ``static_argnames``: arguments that are plain Python values while tracing; each value is a signature.
    - ``donate_argnums``, ``donate_argnames``: arguments whose Tensors may not be used after the call; their memory may be reused. Those that are
      named are donated by position and by keyword.
    - ``device``: where it runs, one of :func:`hologram.devices`; None: where the arguments are. Results stay there (see docs/gpu.md).
    - ``precision``: ``exact``, ``standard``, ``fast``, or ``tf32``: as ``standard``, and products of float32 may round their factors to TF32 on GPUs.
    - ``dynamic``: which extents are symbols, so that one program serves every size (see docs/shapes.md): ``"auto"``, those of axes whose size
      has changed twice; True, all; a dict from argument number or name to axes, these; False, none.
    - ``output``: ``"tensor"``, or ``"numpy"`` for results that are writable ndarrays over the memory that the program wrote, for SciPy and C code.
      Inside other traced functions, and under transforms such as :func:`hologram.grad`, results are Tensors.
    - ``in_shardings``, ``out_shardings``: how arguments that are not static, and results, are divided among processes: a
      :class:`hologram.NamedSharding`, or a pytree of them that may end early, with None for what stays as it is (see docs/distributed.md).

    Raises ArgumentError for what is no function, and for an axis or argument that a call does not have; TracedValueError where ``f`` reads the value
    of a traced argument.

    >>> @hg.jit
    ... def norm(x):
    ...     return hnp.sqrt(hnp.sum(x * x))
    >>> norm(np.array([3.0, 4.0], np.float32))
    Tensor(5., dtype=float32)
    >>> hg.jit(hg.grad(norm), output="numpy")(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """
    choice(precision, "jit", "precision", PRECISIONS)
    choice(output, "jit", "output", OUTPUTS)
    try:
        runs_on = None if device is None else resolve(device)
    except DeviceError as e:
        raise located(e) from None

    def decorate(function: Callable[..., Any]) -> Jitted:
        options = static_argnums, static_argnames, donate_argnums, precision, dynamic, runs_on, donate_argnames, output
        own = as_function(function, "jit")
        if in_shardings is not None or out_shardings is not None:
            static = Signature(own, static_argnums, static_argnames, dynamic).static_positions
            own = hooks.with_shardings(own, in_shardings, out_shardings, static)
        return Jitted(own, *options)

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
    """Context manager that runs jitted functions of this thread as plain Python on lazy Tensors: breakpoints and prints work inside.

    >>> @hg.jit
    ... def f(x):
    ...     print("x is", x)
    ...     return x + 1
    >>> with hg.disable_jit():
    ...     y = f(hg.tensor(1.0))
    x is 1.0
    """
    before = _disabled.depth
    try:
        _disabled.depth = before + 1
        with tracing():
            yield
    finally:
        _disabled.depth = before
