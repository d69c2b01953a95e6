"""Whether Hologram works here: its dependencies are imported, and a small program is compiled and run."""

from __future__ import annotations

import json
import sys
from importlib import import_module

from hologram.command_line.doctor.findings import Finding, ok, problem
from hologram.command_line.doctor.machine import COMMAND_SECONDS, Machine

MODULES = ("numpy", "ml_dtypes", "networkx", "llvmlite.binding")
# Vectors, threads, a product, and code that no cache holds. What goes wrong is told as data; what ends the process is not.
_PROGRAM = """
import json, time
start = time.perf_counter()
try:
    import numpy as np
    import hologram as hg, hologram.numpy as hnp
    hg.settings.cache = False
    x = np.linspace(-2, 2, 64 * 1024, dtype=np.float32).reshape(256, 256)
    found = np.asarray(hg.jit(lambda x: hnp.sum(hnp.exp(-x * x), axis=1) + (x @ x)[:, 0])(x))
    wanted = np.exp(-x.astype(float) ** 2).sum(1) + (x.astype(float) @ x)[:, 0]
    wrong = "" if np.allclose(found, wanted, rtol=1e-4) else f"a wrong result, by up to {np.abs(found - wanted).max():g}"
except BaseException as e:
    wrong = f"{type(e).__name__}: {e}"
print(json.dumps([wrong, time.perf_counter() - start]))
"""


def imports(machine: Machine) -> Finding:
    """Whether what Hologram needs can be imported."""
    wrong = []
    for name in MODULES:
        try:
            import_module(name)
        except Exception as e:  # a package that is there and broken may raise anything
            wrong.append(f"{name}: {type(e).__name__}: {e}")
    if wrong:
        return problem("; ".join(wrong), "Hologram cannot do without.", 'pip install --force-reinstall "hologram-compute"')
    return ok(", ".join(MODULES))


def runs(machine: Machine) -> Finding:
    """Whether a program gives the right result, in a process of its own: instructions that the processor lacks would end it."""
    said = machine.command([sys.executable, "-c", _PROGRAM])
    if said is None:
        return problem(
            f"a small program ended its process, or took more than {COMMAND_SECONDS:.0f} s",
            "The processor may lack instructions that it is said to have, as on some virtual machines, or a native library is broken.",
            "HOLOGRAM_TARGET=x86-64-v2 asks for less; HOLOGRAM_CHECKED=1 looks for wrong accesses. Please report it.",
        )
    wrong, seconds = json.loads(said.strip().splitlines()[-1])
    if wrong:
        return problem(wrong, "A small program does not work.", "See what the other checks say. If they find nothing, please report it.")
    return ok(f"compiled and right, in {seconds:.1f} s with all imports")
