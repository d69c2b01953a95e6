"""The runtime's native module: compiled once for a machine, linked once in a process, set up with this interpreter's addresses."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from hologram.backends import object_cache as disk
from hologram.backends.llvm.toolchain import target
from hologram.backends.native import guarded_memory, progress_bars, tracing
from hologram.backends.native.code import address as address_code
from hologram.backends.native.code import arrow as arrow_code
from hologram.backends.native.code import call as call_code
from hologram.backends.native.code import capi, number_code, object_layout
from hologram.backends.native.code import checked as checked_code
from hologram.backends.native.code import expressions as expression_code
from hologram.backends.native.code import heap as heap_code
from hologram.backends.native.code import pool as pool_code
from hologram.backends.native.code import progress as progress_code
from hologram.backends.native.code import readers as readers_code
from hologram.backends.native.code import reading as reading_code
from hologram.backends.native.code import recording as recording_code
from hologram.backends.native.code import scalars as scalar_code
from hologram.backends.native.code import step_trials as trial_code
from hologram.backends.native.code import steps as step_code
from hologram.backends.native.code.dispatch import dispatch as dispatch_code
from hologram.backends.native.code.dispatch import fingerprint as fingerprint_code
from hologram.backends.native.code.expression_records import expressions, recorder
from hologram.backends.native.code.kernels import copies as copies_code
from hologram.backends.native.code.kernels import fft as fft_code
from hologram.backends.native.code.kernels import lapack as lapack_code
from hologram.backends.native.code.kernels import sort as sort_code
from hologram.backends.native.code.records import SIZE_CLASSES, Context, heap, pool, process, progress, readers, remote
from hologram.backends.native_lang.language import Routine, Struct, fields_of
from hologram.backends.native_lang.translate import module_ir
from hologram.errors import BoundsError, OutOfMemory
from hologram.ir.aval import MAX_BYTES
from hologram.primitives.host import lanes
from hologram.settings import listeners, settings
from hologram.support import forks
from hologram.support.user_lines import located, where

_SOURCES = (
    heap_code,
    pool_code,
    trial_code,
    progress_code,
    checked_code,
    call_code,
    scalar_code,
    reading_code,
    fingerprint_code,
    dispatch_code,
    address_code,
    expression_code,
    step_code,
    number_code,
    readers_code,
    recording_code,
    arrow_code,
    sort_code,
    copies_code,
    lapack_code,
    fft_code,
)
METH_VARARGS, METH_FASTCALL, METH_KEYWORDS, METH_O = 1, 0x80, 2, 8


class Record:
    """Python's access to a record of native memory: fields are attributes."""

    _struct: Any
    address: int

    def __init__(self, struct: type[Struct], address: int) -> None:
        self.__dict__.update(_struct=struct, address=address)

    def _cell(self, name: str) -> ctypes.c_int64:
        field = fields_of(self._struct).get(name)
        if field is None:
            raise AttributeError(name)
        return ctypes.c_int64.from_address(self.address + field.offset)

    def __getattr__(self, name: str) -> int:
        return self._cell(name).value

    def __setattr__(self, name: str, value: int) -> None:
        self._cell(name).value = value


class Module:
    """The linked native module. Its code stays for as long as the process lives: objects that it frees may outlive everything."""

    def __init__(self, code: target.Code) -> None:
        self._code = code
        immortal(code)
        immortal(target.linker())
        self.heap = self._record(heap)
        self.pool = self._record(pool)
        self.process = self._record(process)
        self.readers = self._record(readers)
        self.remote = self._record(remote)
        self.progress = self._record(progress)
        self.expressions = self._record(expressions)
        self.recorder = self._record(recorder)

    def _record(self, instance: Any) -> Record:
        return Record(instance.struct, self.address(instance.symbol))

    def address(self, symbol: str) -> int:
        return self._code.address(symbol)

    def function(self, symbol: str, result: Any, *arguments: Any, gil: bool = True) -> Callable[..., Any]:
        """An exported native as a ctypes function; one that may set an exception needs the GIL."""
        return (ctypes.PYFUNCTYPE if gil else ctypes.CFUNCTYPE)(result, *arguments)(self.address(symbol))

    def builtin(self, symbol: str, name: str, flags: int, self_object: Any = None, doc: str | None = None) -> Any:
        """An exported native as a builtin function; ``self_object`` is its first argument. ``doc`` may start with a signature, as C functions' do."""
        return _new_builtin(ctypes.addressof(_method(self.address(symbol), name, flags, doc)), self_object, None)


def immortal(obj: Any) -> Any:
    """``obj``, never to be freed."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(obj))
    return obj


class _MethodDef(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]


@cache
def _method(code: int, name: str, flags: int, doc: str | None) -> _MethodDef:
    """A method table entry. Builtins refer to it for as long as they live, so it stays, one for each name."""
    return immortal(_MethodDef(name.encode(), code, flags, None if doc is None else doc.encode()))


_new_builtin: Any = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(("PyCFunction_NewEx", ctypes.pythonapi))

_lock = forks.guard(forks.RUNTIME, threading.RLock())
_module: Module | None = None


def module() -> Module:
    """The native module; it is compiled, or taken from the disk cache, at the first call."""
    global _module
    with _lock:
        if _module is None:
            made = Module(_load())
            _set_up(made)
            _module = made
    return _module


@cache
def why_not_native() -> str | None:
    """Why calls go through Python; None where they are native."""
    return object_layout.why_not_native() if settings.native else "settings.native is off"


def _exports() -> list[Routine]:
    found = [x for source in _SOURCES for x in vars(source).values() if isinstance(x, Routine) and x.exported]
    return list({r.symbol: r for r in found}.values())


def _load() -> target.Code:
    """The linked code of all natives."""
    routines, of = _exports(), target.host()
    key = disk.key("runtime", disk.python_abi(), str(object_layout.layout.tuple_items)) if settings.cache else None
    found = disk.load(key) if key is not None else None
    if found is None:
        found = target.compile_ir(module_ir(routines, of.architecture)[0], of, opt="quick")
        if key is not None:
            disk.store(key, found, kind="runtime")
    names = [x.symbol for x in (*routines, expressions, heap, pool, process, progress, readers, recorder, remote)]  # type: ignore[attr-defined]
    return target.link(found, _externals(), names)


def _externals() -> dict[str, int]:
    names = [x.symbol for x in vars(capi).values() if isinstance(x, Routine)]
    return {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in names}


def _set_up(m: Module) -> None:
    free_lists = immortal((ctypes.c_void_p * SIZE_CLASSES)())
    m.heap.free = ctypes.addressof(free_lists)
    m.heap.advise = _madvise()
    m.heap.raise_out_of_memory = id(immortal(_raise_out_of_memory))
    p = m.process
    for name, obj in {"none": None, "true": True, "false": False, "ellipsis": Ellipsis}.items():
        setattr(p, name, id(obj))
    p.exception_type = id(Exception)
    for kind in (float, int, str, tuple, list, dict, slice):
        setattr(p, kind.__name__ + "_type", id(kind))
    p.ndarray_type = id(np.ndarray)
    p.host = id(immortal(_call_host))
    p.settle = id(immortal(lanes.settle))
    p.tracing = ctypes.addressof(tracing.open_traces)
    p.violation = id(immortal(_raise_violation))
    m.heap.guarded_free = id(immortal(guarded_memory.free))
    immortal(progress_bars.Slots(m.progress))
    follow = partial(_guard_blocks, m)
    follow()
    listeners.append(follow)


def _guard_blocks(m: Module) -> None:
    """Fresh memory is between guard pages while checked programs are made. What was free before is of the other kind and goes."""
    if bool(m.heap.guarded_new) != settings.checked:
        m.heap.guarded_new = id(immortal(guarded_memory.allocate)) if settings.checked else 0
        m.function("hg_heap_trim", None)()
        m.function("hg_context_trim", None)()


def _call_host(args: int) -> None:
    from hologram.backends.llvm.graph.host_calls import call  # which knows the op table

    call(args)


def check_size(nbytes: int) -> None:
    """Raises OutOfMemory for a size beyond any machine, against which native code does not guard."""
    if nbytes > MAX_BYTES:
        _raise_out_of_memory(nbytes)


def _raise_out_of_memory(nbytes: int) -> None:
    state = module().heap
    limit = f"the limit is {state.limit:,} bytes, " if state.limit else ""
    raise located(OutOfMemory(f"a result or arena of {nbytes:,} bytes cannot be allocated: {limit}{state.live:,} bytes are in use"))


def _raise_violation(address: int) -> None:
    context = Record(Context, address)
    statement, kernel = (ctypes.string_at(text).decode() for text in (context.statement, context.kernel))
    buffer, _, line = statement.partition("\n")
    done = "written" if context.writes else "read"
    trouble = f"element {context.index} of {buffer}, which has {context.size}, would have been {done} by a kernel{where()}: {line}"
    raise BoundsError(f"{trouble}\n{kernel}")


def _madvise() -> int:
    """The address of madvise where it knows about huge pages."""
    if os.name != "posix" or not os.path.exists("/sys/kernel/mm/transparent_hugepage"):
        return 0
    try:
        return ctypes.cast(ctypes.CDLL(None).madvise, ctypes.c_void_p).value or 0
    except (OSError, AttributeError):
        return 0
