"""From a graph to something that runs; one compilation for one key, however many threads ask."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from hologram.backends.residence import home, on_host
from hologram.errors import DeviceError, OutOfMemory
from hologram.ir.aval import MAX_BYTES
from hologram.ir.devices import CPU, backend
from hologram.ir.graph import Graph
from hologram.ir.leaves import leaf
from hologram.settings import settings
from hologram.support import forks
from hologram.support.precision import guarantee
from hologram.support.progress import bars
from hologram.support.user_lines import located


class Executable(Protocol):
    """What :func:`hologram.backends.compile.compile_graph` gives."""

    constants: list[Any]
    long: bool
    remote: bool  # whether it takes storages of devices
    placement: str | None  # what runs where, if on several devices
    initializer: str | None  # the graph of what is computed once

    def run(self, inputs: list[Any], donated: Mapping[int, int] | None = None, sizes: Mapping[str, int] | None = None) -> list[Any]: ...
    def replays(self, inputs: list[Any]) -> Any: ...  # captured calls that native code may replay, of a remote one; None for none
    def as_text(self, stage: str) -> str: ...


class _Job:
    __slots__ = ("lock", "result")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.result: Any = None


_jobs: dict[Any, _Job] = {}
_jobs_lock = threading.RLock()  # a finaliser may run inside
_importing = forks.guard(forks.IMPORTS, threading.RLock())  # a module that is half imported at a fork could never be imported in the child


@forks.in_child
def _after_fork() -> None:
    """Compilations that other threads had begun are not under way in the child."""
    global _jobs_lock
    _jobs_lock = threading.RLock()
    _jobs.clear()


def once(key: Any, make: Callable[[], Any]) -> Any:
    """``make()``, shared by all threads that ask for ``key`` while it runs; the result is not remembered afterwards."""
    with _jobs_lock:
        job = _jobs.get(key)
        if job is None:
            job = _jobs[key] = _Job()
    with job.lock:
        if job.result is None:
            try:
                job.result = make()
            finally:
                with _jobs_lock:
                    if _jobs.get(key) is job:
                        del _jobs[key]
        return job.result


def compile_graph(
    graph: Graph, precision: str = "standard", device: str | None = None, homes: Sequence[str] = (), blocked: bool = False, name: str = ""
) -> Executable:
    """The pipeline; it and what it needs (LLVM) are imported when a graph is first compiled.

    Without ``device`` a program runs where the values are that it closes over, or on the CPU; ``homes`` are the devices of the arguments, for
    ``auto``, and ``name`` is the function's. A compilation that takes long is shown (``settings.progress``). Raises DeviceError, with the user's
    line, for what the device does not run, with ``blocked`` also for attention of symbolic extents, which would have all of its scores in the
    device's memory.
    """
    with bars.work(f"compiling {name}".rstrip()):
        return _compiled(graph, precision, device, homes, blocked)


def _compiled(graph: Graph, precision: str, device: str | None, homes: Sequence[str], blocked: bool) -> Executable:
    with _importing:
        from hologram.backends.compile import compile_graph as pipeline

    if device is None:
        device = home(n.attrs[0] for n in graph.nodes() if n.op is leaf) or CPU
    _require_addressable(graph)
    try:
        return pipeline(graph, precision=precision, device=device, homes=homes, blocked=blocked)
    except DeviceError as e:
        raise located(e) from None
    except MemoryError as e:  # of constants, such as the factors of a long transform
        raise out_of_memory(e) from None


def _require_addressable(graph: Graph) -> None:
    """Raises OutOfMemory where no process can have a result: passes would go through its digits, or count to its extents."""
    for x in graph.outputs:
        nbytes = x.size * x.dtype.itemsize
        if isinstance(nbytes, int) and nbytes > MAX_BYTES:
            raise located(OutOfMemory(f"a result of {nbytes:,} bytes cannot be allocated: {x.dtype}{list(x.shape)}"))


def size_conditions(graph: Graph) -> Mapping[Any, tuple[int, int]]:
    """For programs of ``graph`` on the CPU, in ``standard``: which sizes must be in which ranges, both ends included, so that static programs sum in
    the same order."""
    from hologram.graph.pipeline import size_conditions as found

    return found(graph, guarantee("standard"), backend(CPU).tile).ranges


def are_alike(by_value: Graph, with_arguments: Graph, values: Sequence[Any], precision: str) -> bool:
    """Whether programs of both graphs for the CPU compute the same in the same order. ``with_arguments`` has further inputs, behind those of
    ``by_value``, for some of its constants, which have these ``values``."""
    from hologram.graph.likeness import are_alike as found

    return found(by_value, with_arguments, values, guarantee(precision), backend(CPU).tile, settings.hold_limit)


def op_by_op(graph: Graph, max_ns: float) -> Any:
    """The program of a graph of static shapes that runs one op at a time, on the CPU; None where an op has no kernel for all sizes, or a run takes
    longer than ``max_ns``. Raises as :func:`compile_graph`."""
    global _in_one_pass
    with _importing:
        from hologram.backends.op_by_op.one_pass import in_one_pass
        from hologram.backends.op_by_op.program import op_by_op as found

    _in_one_pass = in_one_pass
    return found(graph, max_ns)


_in_one_pass: Callable[..., Any] | None = None  # once a graph has run op by op


def op_by_op_in_one_pass(order: Sequence[Any], sources: Sequence[Any], roots: Sequence[Any], max_ns: float) -> Any:
    """As :func:`op_by_op` for the graph of the pending nodes ``roots``: ``order`` are all that they need, ``sources`` those that are arguments. None,
    too, where the graph is not in normal form, or needs what is not compiled yet: it is made while others wait for the nodes."""
    return None if _in_one_pass is None else _in_one_pass(order, sources, roots, max_ns)


def op_by_op_for_sizes(graph: Graph, sizes: Mapping[str, int], max_ns: float) -> Any:
    """As :func:`op_by_op` for a graph with symbols, whose values are ``sizes`` where a run is to take ``max_ns`` at most."""
    with _importing:
        from hologram.backends.op_by_op.for_sizes import op_by_op_for_sizes as found

    return found(graph, sizes, max_ns)


def native_steps(program: Any, compiles: bool) -> Any:
    """The form in which native code runs a program that :func:`op_by_op` gave; None where it has none, or would need kernels to be compiled and
    ``compiles`` is false. Raises as :func:`compile_graph`."""
    from hologram.backends.op_by_op.native_steps import native_program

    return native_program(program, compiles)


def learn_peepholes(roots: Sequence[Any], order: Sequence[Any], program: Any) -> None:
    """Tells native code of the steps of pending nodes, of which :func:`op_by_op_in_one_pass` made a program, that are the same in all expressions."""
    if program.peepholes is not None:
        from hologram.backends.op_by_op.native_peepholes import known_peepholes

        known_peepholes().learn(roots, order, program.peepholes)
        program.peepholes = None


def forget_peepholes() -> None:
    """Native code forgets all that :func:`learn_peepholes` told it."""
    from hologram.backends.op_by_op.native_peepholes import known_peepholes

    known_peepholes().clear()


def run(executable: Executable, storages: list[Any], donated: Mapping[int, int] | None = None, sizes: Mapping[str, int] | None = None) -> list[Any]:
    """The results of one run.

    ``donated`` says of results whose storage they take (:mod:`hologram.trace.lazy_programs.donation`), ``sizes`` are the values of all symbols of a
    program for the CPU. Raises OutOfMemory, with the user's line, where results cannot be had, and DeviceError for a device that fails.
    """
    try:
        if sizes is not None:
            return executable.run([on_host(s) for s in storages], None, sizes)
        if donated:
            return executable.run(storages, donated)
        return executable.run(storages if executable.remote else [on_host(s) for s in storages])
    except DeviceError as e:
        raise located(e) from None
    except MemoryError as e:
        raise out_of_memory(e) from None


def out_of_memory(e: MemoryError) -> Exception:
    """The error of a program whose results, or whose arena, cannot be had, with the user's line."""
    return located(e if isinstance(e, OutOfMemory) else OutOfMemory(str(e) or "a result is too large to allocate"))


def compile_once(key: Any, graph: Callable[[], Graph], precision: str = "standard", device: str | None = None) -> Executable:
    """The executable of ``graph()``, which is called by one thread only."""
    return once((key, precision, settings.code, device), lambda: compile_graph(graph(), precision, device))
