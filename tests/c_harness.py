"""Kernels in the plain C dialect, compiled by the system's compiler and run: every work-item is a thread, a group's barrier is theirs."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hologram.backends.c.dialects import C
from hologram.backends.c.scalars import memory_name
from hologram.backends.c.source import Program
from hologram.graph.kernel_ir import Kernel
from hologram.graph.schedule import Schedule
from hologram.trace.node import Node

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
_THREADS = """
#include <pthread.h>
typedef void (*hg_call)(void **, i64, i64, i64);
static pthread_barrier_t hg_all;
static struct { hg_call call; void **args; i64 groups; } hg_work;
void hg_barrier(void) { pthread_barrier_wait(&hg_all); }
static void *hg_run_item(void *item) {
  for (i64 g = 0; g < hg_work.groups; ++g) {
    hg_work.call(hg_work.args, g, hg_work.groups, (i64)item);
    hg_barrier();
  }
  return 0;
}
void hg_run(hg_call call, void **args, i64 groups, i64 items) {
  pthread_t threads[1024];
  pthread_barrier_init(&hg_all, 0, (unsigned)items);
  hg_work.call = call; hg_work.args = args; hg_work.groups = groups;
  for (i64 i = 0; i < items; ++i) pthread_create(&threads[i], 0, hg_run_item, (void *)i);
  for (i64 i = 0; i < items; ++i) pthread_join(threads[i], 0);
  pthread_barrier_destroy(&hg_all);
}
"""


def _trampoline(kernel: Kernel, program: Program) -> str:
    """A function of one type for every kernel."""
    n = len(kernel.params)
    args = [f"({memory_name(b.dtype)} *)args[{i}]" for i, b in enumerate(kernel.params)]
    args += [f"*(i64 *)args[{n + i}]" for i in range(len(kernel.symbols))]
    if program.mappings[kernel].workspace:
        args.append(f"(u8 *)args[{n + len(kernel.symbols)}]")
    name = program.names[kernel]
    return f"void call_{name}(void **args, i64 group, i64 groups, i64 item) {{ {name}({', '.join([*args, 'group', 'groups', 'item'])}); }}\n"


def build(schedule: Schedule, precision: str, folder: Path) -> tuple[Program, ctypes.CDLL]:
    """The kernels of a schedule as a shared library. Warnings of the compiler are errors."""
    assert COMPILER is not None
    kernels = {k.kernel: None for k in schedule.kernels}
    program = Program(kernels, "c", precision)
    once = {program.names[k]: _trampoline(k, program) for k in kernels}
    source, library = folder / "kernels.c", folder / "kernels.so"
    source.write_text(program.text + _THREADS + "".join(once.values()))
    flags = [
        "-std=gnu99",
        "-O1",
        "-Wall",
        "-Werror",
        "-Wno-unused-variable",
        "-Wno-unused-but-set-variable",
        "-Wno-unused-function",
        "-shared",
        "-fPIC",
        "-pthread",
    ]
    done = subprocess.run([COMPILER, *flags, *C.options, "-o", library, source, "-lm"], capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stderr}\n{program.text}"
    return program, ctypes.CDLL(str(library))


def run(schedule: Schedule, arrays: Sequence[np.ndarray], folder: Path, precision: str = "exact", groups: int = 3) -> list[np.ndarray]:
    """The results of a schedule of static shapes."""
    program, library = build(schedule, precision, folder)
    memory: dict[Node, np.ndarray] = {n: np.ascontiguousarray(a) for n, a in zip(schedule.inputs, arrays, strict=True)}
    for step in schedule.kernels:
        for n in step.bindings:
            memory.setdefault(n, np.empty(n.shape, n.dtype.np))  # type: ignore[arg-type]
        mapping = program.mappings[step.kernel]
        workspace = np.empty(groups * mapping.workspace, np.uint8)
        pointers = [memory[n].ctypes.data for n in step.bindings] + [workspace.ctypes.data]
        call = getattr(library, f"call_{program.names[step.kernel]}")
        args = (ctypes.c_void_p * len(pointers))(*pointers)
        library.hg_run(call, args, ctypes.c_int64(groups), ctypes.c_int64(mapping.items))
    sources = {"input": schedule.inputs, "computed": schedule.computed}
    return [memory[sources[o.kind][o.index]].reshape(o.node.shape) for o in schedule.outputs]
