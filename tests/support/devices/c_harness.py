"""Kernels in a dialect of C, compiled by the system's compiler and run: every work-item is a coroutine, barriers and teams are theirs.

CUDA C++ and Metal are compiled as C++ beside headers (``emulation``) that supply their names.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path

import numpy as np

from hologram.backends.c.scalars import memory_name
from hologram.backends.c.source import Program
from hologram.backends.native import guarded_memory
from hologram.graph.execution_plan import ExecutionPlan
from hologram.graph.kernel.ir import Kernel
from hologram.ir.node import Node

EMULATION = Path(__file__).parent / "emulation"
COMPILERS = {name: shutil.which("c++") or shutil.which("g++") or shutil.which("clang++") for name in ("cuda", "metal")}
COMPILERS["c"] = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def _machine(name: str) -> str:
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name.lower(), name.lower())


def _missing() -> str | None:
    """Why kernels cannot be compiled and run here, if so. An emulated Python may find the compiler of the real machine."""
    if None in COMPILERS.values():
        return "there is no C and C++ compiler"
    told = subprocess.run([str(COMPILERS["c"]), "-dumpmachine"], capture_output=True, text=True).stdout
    is_own = _machine(told.partition("-")[0].strip()) == _machine(platform.machine())
    return None if is_own else f"the C compiler is one for {told.strip()}"


MISSING = _missing()
_HEADS = {"cuda": '#include "cuda.h"\n', "metal": "", "c": '#include "items.h"\n'}
_SUFFIXES = {"cuda": "cc", "metal": "cc", "c": "c"}
_FLAGS = ["-O0", "-ffp-contract=off", "-fwrapv", "-fPIC", f"-I{EMULATION}", "-Wall", "-Werror"]
_STANDARDS = {"cuda": ["-std=gnu++14"], "metal": ["-std=gnu++14"], "c": []}  # later ones include far more with <math.h>: 0.15 s a compilation
_LOOSE = [
    "-Wno-unused-variable",
    "-Wno-unused-but-set-variable",
    "-Wno-unused-function",
    "-Wno-attributes",
    "-Wno-unknown-pragmas",
    "-Wno-maybe-uninitialized",
]
_ASM = re.compile(r'asm(?: volatile)?\(("[^"]*")(.*?)\);', re.DOTALL)
_OPERAND = re.compile(r'"[=+]?[a-z]"\((\w+)\)')
SHARED_BYTES = 99 * 1024  # that a launch can supply on every device from sm_80 on
_GRID = {"cuda": [], "c": ["group", "groups", "item"], "metal": ["(uint)group", "(uint)groups", "(uint)item"]}


def _compile(compiler: str | None, *arguments: str | Path) -> None:
    assert compiler is not None
    done = subprocess.run([compiler, *_FLAGS, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@functools.cache
def _scratch() -> Path:
    folder = tempfile.mkdtemp(prefix="hologram-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def new_folder() -> Path:
    """For files that live as long as the process."""
    return Path(tempfile.mkdtemp(dir=_scratch()))


@functools.cache
def _items() -> Path:
    """The object code of the coroutines, which all libraries share."""
    out = new_folder() / "items.o"
    _compile(COMPILERS["c"], "-c", "-o", out, EMULATION / "items.c")
    return out


def trampoline(kernel: Kernel, program: Program) -> str:
    """A function of one type for every kernel."""
    n = len(kernel.params)
    args = [f"({memory_name(b.dtype)} *)args[{i}]" for i, b in enumerate(kernel.params)]
    args += [f"*(i64 *)args[{n + i}]" for i in range(len(kernel.symbols))]
    if program.mappings[kernel].workspace:
        args.append(f"(u8 *)args[{n + len(kernel.symbols)}]")
    if program.dialect.table:
        args.insert(0, "0")
    name = program.names[kernel]
    call = f"{name}({', '.join([*args, *_GRID[program.dialect.name]])});"
    return f"EXPORT void call_{name}(void **args, int64_t group, int64_t groups, int64_t item) {{ {call} }}\n"


def compile_kernels(text: str, calls: str, dialect: str, folder: Path) -> Path:
    """A shared library of a program's text and of ``calls``, functions that are marked EXPORT. Warnings of the compiler are errors."""
    export = '#define EXPORT extern "C"\n' if dialect != "c" else "#define EXPORT\n"
    if dialect == "cuda":
        text = re.sub(r"extern __shared__ (\w+) (\w+)\[\]", rf"static \1 \2[{SHARED_BYTES} / sizeof(\1)]", text)
        text = _ASM.sub(lambda m: f"hg_ptx({', '.join([m[1], *_OPERAND.findall(m[2])])});", text)
    source, library = folder / f"kernels.{_SUFFIXES[dialect]}", folder / f"{dialect}.so"
    text = re.sub(r"\bthreadgroup (?=[^;(*]*\];)", "static ", text)  # arrays that items share; elsewhere the word is an address space
    source.write_text(f'{_HEADS[dialect]}#line 1 "program.c"\n{text}\n{export}{calls}')
    _compile(COMPILERS[dialect], *_STANDARDS[dialect], *_LOOSE, "-shared", "-o", library, source, _items(), "-lm")
    return library


def build(program: Program, folder: Path) -> ctypes.CDLL:
    """The kernels of a program as a shared library."""
    once = {program.names[k]: trampoline(k, program) for k in program.names}
    return ctypes.CDLL(str(compile_kernels(program.text, "".join(once.values()), program.dialect.name, folder)))


def launch(library: ctypes.CDLL, name: str, pointers: Sequence[int], groups: int, items: int) -> None:
    args = (ctypes.c_void_p * len(pointers))(*pointers)
    library.hg_run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
    stuck = library.hg_run(ctypes.cast(getattr(library, f"call_{name}"), ctypes.c_void_p), args, groups, items)
    assert not stuck, f"{name}: items wait at different barriers"


@contextmanager
def _guarded() -> Iterator[Callable[[tuple[int, ...], np.dtype], np.ndarray]]:
    """Makes arrays between pages that nobody may touch: a kernel that reads or writes beyond one stops the process, as it might on a device."""
    taken: list[int] = []

    def new(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        nbytes = max(1, prod(shape) * dtype.itemsize)
        taken.append(guarded_memory.allocate(nbytes))
        assert taken[-1], "no guarded memory"
        return np.ndarray(shape, dtype, memoryview((ctypes.c_char * nbytes).from_address(taken[-1])))

    yield new
    for address in taken:
        guarded_memory.free(address)


def run(
    schedule: ExecutionPlan, arrays: Sequence[np.ndarray], folder: Path, precision: str = "exact", groups: int = 3, dialect: str = "c"
) -> list[np.ndarray]:
    """The results of a schedule of static shapes."""
    program = Program({k.kernel: None for k in schedule.kernels}, dialect, precision)
    library = build(program, folder)
    with _guarded() as new:
        memory: dict[Node, np.ndarray] = {}
        for n, a in zip(schedule.inputs, arrays, strict=True):
            memory[n] = new(np.shape(a), np.asarray(a).dtype)
            memory[n][...] = a
        for step in schedule.kernels:
            for n in step.bindings:
                if n not in memory:
                    memory[n] = new(n.shape, n.dtype.np)  # type: ignore[arg-type]
            mapping = program.mappings[step.kernel]
            workspace = new((groups * mapping.workspace,), np.dtype(np.uint8))
            pointers = [memory[n].ctypes.data for n in step.bindings] + [workspace.ctypes.data]
            launch(library, program.names[step.kernel], pointers, groups, mapping.items)
        sources = {"input": schedule.inputs, "computed": schedule.computed}
        return [memory[sources[o.kind][o.index]].reshape(o.node.shape).copy() for o in schedule.outputs]
