"""The programs of ``benchmarks.loops``, by subject. Their sizes stand in ``sizes.py``, how a framework runs one in ``frameworks.py``."""

from __future__ import annotations

from benchmarks.loop_programs import decoding, elements, factorizations, gradients, irregular, methods, python_loops, stencils, sweeps, tables
from benchmarks.loop_programs.program import Program
from benchmarks.loop_programs.sizes import MEASURED

_SUBJECTS = elements, factorizations, stencils, sweeps, tables, irregular, methods, decoding, python_loops
_LOOPS = {p.name: p for subject in _SUBJECTS for p in subject.PROGRAMS}
_DIFFERENTIABLE = tuple(name.removeprefix("gradient of ") for name in MEASURED if name.removeprefix("gradient of ") in _LOOPS and name not in _LOOPS)

PROGRAMS: dict[str, Program] = _LOOPS | {p.name: p for p in gradients.programs(_LOOPS, _DIFFERENTIABLE)}
CASES: dict[str, tuple[Program, tuple[int, ...]]] = {
    " ".join([name, "x".join(map(str, size))]): (PROGRAMS[name], size) for name, sizes in MEASURED.items() for size in sizes
}
