"""LAPACK and BLAS by address: where SciPy is installed, host ops of linear algebra run natively.

``scipy.linalg.cython_lapack`` and ``cython_blas`` export their routines' addresses in capsules. SciPy is imported when a graph with such an op is
first compiled or loaded. Object code names routines by symbol (``hg_dpotrf``); the addresses are this process's.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.dtypes import DType
from hologram.graph.lower.host_step import HostStep, work
from hologram.ir.symbolic import Int, is_static, prod
from hologram.primitives.host.factorizations import smaller_extent, wanted_of
from hologram.support.forks import in_child
from hologram.support.once import once

PREFIX = "hg_"
THREADS = "hg_library_threads"  # the symbol of the record by which routines are kept to the calling thread
_LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_MAX_INTEGER = 2**31 - 1  # of a routine's integers
_FLOP_NS = 0.2
_MATRIX_NS = 1_000.0
_BLOCK = 64  # columns that blocked routines work on at one time
_THREADS_NS = 300_000.0  # of one matrix, from which the library may wake threads of its own: to wait for them takes longer where cores are busy
_FEW = 2  # matrices, which would leave most cores without work


@dataclass(frozen=True)
class Native:
    """How a host op runs natively: the runtime's kernel, and what its arguments hold: addresses of ``routines`` (None: no address), the first of them
    :data:`THREADS`, ``integers``
    that routines read as C ints and chars, words of ``bits`` that they read as something else, and then the operands and results of which
    ``arrays`` gives the numbers. ``chunks`` matrices of ``cost`` rough nanoseconds each."""

    kernel: str
    routines: tuple[str | None, ...]
    integers: tuple[Int, ...]
    bits: tuple[int, ...]
    arrays: tuple[int, ...]
    chunks: Int
    cost: float


# --- addresses -------------------------------------------------------------------------------------------------------


@cache
def _modules() -> tuple[Any, ...]:
    """SciPy's capsules, LAPACK's and BLAS's; nothing without SciPy, or where its integers are not C ints."""
    try:
        found = tuple(importlib.import_module(f"scipy.linalg.cython_{name}").__pyx_capi__ for name in ("lapack", "blas"))
    except (ImportError, AttributeError):
        return ()
    return found if b"(char *, int *, " in _signature(found[0]["dpotrf"]) else ()


_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


def _signature(capsule: Any) -> bytes:
    return _name(capsule) or b""


def available() -> bool:
    """Whether routines can be had."""
    return bool(_modules())


def addresses(symbols: Iterable[str]) -> dict[str, int]:
    """The routines' addresses. Raises KeyError for one that is not there."""
    out = {}
    for symbol in symbols:
        if symbol == THREADS:
            out[symbol] = ctypes.addressof(_library_threads())
            continue
        name = symbol.removeprefix(PREFIX)
        capsule = next((m[name] for m in _modules() if name in m), None)
        if capsule is None:
            raise KeyError(symbol)
        out[symbol] = int(_pointer(capsule, _signature(capsule)))
    return out


class _LibraryThreads(ctypes.Structure):
    """:class:`hologram.backends.native.code.kernels.library_threads.LibraryThreads`."""

    _fields_ = [("set", ctypes.c_void_p), ("lock", ctypes.c_int64), ("users", ctypes.c_int64), ("before", ctypes.c_int64)]


@once
def _library_threads() -> _LibraryThreads:
    """The process's record. OpenBLAS has a function that sets its number of threads; other libraries are left to themselves."""
    found = None
    with contextlib.suppress(OSError, AttributeError, ImportError):
        library = ctypes.CDLL(importlib.import_module("scipy.linalg.cython_blas").__file__)
        found = ctypes.cast(library.openblas_set_num_threads_local, ctypes.c_void_p).value
    return _LibraryThreads(found)


@in_child
def renew() -> None:
    """After a fork: users of the record were other threads, which the child lacks."""
    if _library_threads.is_made:
        record = _library_threads()
        if record.users and record.set:
            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(record.set)(record.before)
        record.lock = record.users = 0


# --- calls -----------------------------------------------------------------------------------------------------------


def native(step: HostStep) -> Native | None:
    """How a step runs natively; None where it goes through Python."""
    describe = _DESCRIBED.get(step.op.name)
    arrays = (*step.node.inputs, *step.results)
    if describe is None or step.node.inputs[0].dtype.name not in _LETTERS or any(x.size == 0 for x in arrays) or not available():
        return None
    found = describe(step)
    return None if found is None or any(is_static(n) and n > _MAX_INTEGER for n in found.integers) else found  # type: ignore[operator]


def _made(
    step: HostStep, kernel: str, routines: tuple[str | None, ...], integers: tuple[Int, ...], arrays: tuple[int, ...], bits: tuple[int, ...] = ()
) -> Native:
    x = step.node.inputs[0]
    chunks = prod(x.shape[:-2])
    whole = _FLOP_NS * work(step.node)
    cost = _MATRIX_NS + (whole / max(1, chunks) if isinstance(chunks, int) else 10 * _MATRIX_NS)
    letter = _LETTERS[x.dtype.name]
    names = tuple(None if r is None else PREFIX + letter + r for r in routines)
    is_shared = isinstance(chunks, int) and chunks <= _FEW and whole >= chunks * _THREADS_NS
    threads = None if is_shared else THREADS
    return Native(PREFIX + "lapack_" + kernel, (threads, *names), integers, bits, arrays, chunks, cost)


def _cholesky(step: HostStep) -> Native | None:
    x = step.node.inputs[0]
    return _made(step, "cholesky", ("potrf",), (x.shape[-1], x.dtype.itemsize, ord("U")), (0, 1))


def _lu(step: HostStep) -> Native | None:
    x = step.node.inputs[0]
    return _made(step, "lu", ("getrf",), (x.shape[-1], x.dtype.itemsize), (0, 1, 2, 3))


def _lu_solve(step: HostStep) -> Native | None:
    b = step.node.inputs[3]
    trans = "N" if step.node.attrs[0] else "T"  # what was factored is the transpose
    return _made(step, "lu_solve", ("getrs",), (b.shape[-1], b.shape[-2], b.dtype.itemsize, int(not b.dtype.is_complex), ord(trans)), (1, 2, 3, 4))


def _triangular_solve(step: HostStep) -> Native | None:
    b = step.node.inputs[1]
    lower, transposed, unit = step.node.attrs
    letters = "R", "U" if lower else "L", "T" if transposed else "N", "U" if unit else "N"
    one = np.zeros(2, np.int64)
    one.view(np.uint8)[: b.dtype.itemsize] = np.ones(1, b.dtype.np).view(np.uint8)
    integers = (b.shape[-2], b.shape[-1], b.dtype.itemsize, *map(ord, letters))
    return _made(step, "triangular_solve", ("trsm",), integers, (0, 1, 2), bits=tuple(map(int, one)))


def _lq(step: HostStep) -> Native | None:
    x, rows = step.node.inputs[0], step.results[1].shape[-2]
    n, m = x.shape[-2:]
    expand = "ungqr" if x.dtype.is_complex else "orgqr"
    return _made(step, "lq", ("geqrf", expand), (n, m, rows, x.dtype.itemsize, _BLOCK * rows), (0, 1, 2))


def _svd(step: HostStep) -> Native | None:
    x = step.node.inputs[0]
    m, n = x.shape[-2:]
    mode, least = wanted_of(step.node.attrs[0]), smaller_extent(x.shape, step.node.attrs[0])
    most = m + n - least
    sides: dict[str, tuple[Int, Int]] = {"values": (0, 0), "reduced": (least, least), "full": (m, n)}
    columns, rows = sides[mode]
    lwork = 4 * least * least + 7 * least + most + _BLOCK * (m + n)
    lrwork: Int = 0
    if x.dtype.is_complex:
        lrwork = 7 * least if mode == "values" else 2 * most * least + 7 * least * least + 7 * least
    routines = (None, "gesdd") if x.dtype.is_complex else ("gesdd", None)
    real = step.results[0].dtype.itemsize
    job = ord({"values": "N", "reduced": "S", "full": "A"}[mode])
    integers = (m, n, columns, rows, 1 if mode == "values" else columns, x.dtype.itemsize, real, job, lwork, lrwork)
    return _made(step, "svd", routines, integers, (0, 1, 1, 1) if mode == "values" else (0, 1, 2, 3))


def _eigh(step: HostStep) -> Native | None:
    x, n = step.node.inputs[0], step.node.inputs[0].shape[-1]
    job = ord("V" if step.node.attrs[0] else "N")
    if x.dtype.is_complex:
        lwork, lrwork = (2 + _BLOCK) * n + n * n, 1 + 5 * n + 2 * n * n
        routines: tuple[str | None, ...] = (None, "heevd")
    else:
        lwork, lrwork = 1 + (6 + _BLOCK) * n + 2 * n * n, 0
        routines = ("syevd", None)
    integers = (n, x.dtype.itemsize, step.results[0].dtype.itemsize, job, ord("U"), lwork, lrwork, 3 + 5 * n)
    return _made(step, "eigh", routines, integers, (0, 1, 2))


def _eig(step: HostStep) -> Native | None:
    x, n = step.node.inputs[0], step.node.inputs[0].shape[-1]
    real = dtypes.real_of(x.dtype).itemsize
    job = ord("V" if step.node.attrs[0] else "N")
    lwork = (4 + 2 * _BLOCK) * n
    routines = (None, "geev") if x.dtype.is_complex else ("geev", None)
    integers = (n, x.dtype.itemsize, real, ord("N"), job, lwork, 2 * n, int(x.dtype.is_complex))
    return _made(step, "eig", routines, integers, (0, 1, 2))


_DESCRIBED: dict[str, Callable[[HostStep], Native | None]] = {
    "cholesky": _cholesky,
    "lu": _lu,
    "lu_solve": _lu_solve,
    "triangular_solve": _triangular_solve,
    "lq": _lq,
    "svd": _svd,
    "eigh": _eigh,
    "eig": _eig,
}


def runs_natively(op_name: str, dtype: DType) -> bool:
    """Whether a host op may go to LAPACK: code compiled for it depends on whether that is there."""
    return op_name in _DESCRIBED and dtype.name in _LETTERS
