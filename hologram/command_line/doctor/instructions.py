"""Vector instructions, and whether LLVM knows the processor."""

from __future__ import annotations

import re

from hologram.command_line.doctor.findings import Finding, note, ok, unknown, warning
from hologram.command_line.doctor.machine import Machine

UNNAMED = ("", "generic", "x86-64", "i686")
# as the kernel, and LLVM, names instruction sets on which speed depends
FLAGS = {"avx512f": "avx512f", "avx2": "avx2", "fma": "fma", "avx": "avx", "f16c": "f16c", "asimd": "neon", "sve": "sve"}


def vectors(machine: Machine) -> Finding:
    """The widest vectors that code is made for."""
    from hologram.backends.llvm.toolchain import target

    if machine.is_mac and (machine.command(["sysctl", "-n", "sysctl.proc_translated"]) or "").strip() == "1":
        return warning(
            "this Python is for x86-64 and is translated (Rosetta 2)", "Translated vectors are narrow and slow.", "Install a Python for arm64."
        )
    host = target.host()
    seen = f"{host.architecture}, vectors of {host.vector_bytes * 8} bits"
    if host.architecture != "x86_64":
        return ok(seen)
    lacking = [name for name in ("avx", "avx2", "fma") if not host.has(name)]
    if lacking:
        return warning(
            f"{seen}, without {', '.join(lacking)}",
            "Kernels do a half or a quarter of the work in an instruction, and results of `standard` are rounded more often.",
            "A virtual machine may hide them: let its CPU be that of the host (QEMU: -cpu host). HOLOGRAM_TARGET may leave them out, too.",
        )
    level = "AVX-512" if host.has("avx512f") else "AVX2"
    return ok(f"{seen} ({level}, fused multiply-adds)")


def llvm_host(machine: Machine) -> Finding:
    """Whether LLVM knows the processor by name, and takes all that it can do."""
    from hologram.backends.llvm.toolchain import target

    chosen = machine.environment.get("HOLOGRAM_TARGET", "")
    if chosen:
        return note(f"HOLOGRAM_TARGET={chosen}", "Code is made for that, whatever the processor could do.")
    host = target.host()
    if host.cpu in UNNAMED:
        return warning(
            f"LLVM does not know this processor (it says {host.cpu or 'nothing'!r})",
            "Its order of instructions and its costs are guessed; features are still asked of the processor.",
            "pip install --upgrade llvmlite",
        )
    missing = [kernel for kernel, llvm in FLAGS.items() if kernel in _flags(machine) and not host.has(llvm)]
    if missing:
        return warning(
            f"LLVM's {host.cpu} does without {', '.join(missing)}, which the kernel shows",
            "Vectors are narrower than they could be.",
            "pip install --upgrade llvmlite; on a virtual machine the hypervisor may have them switched off.",
        )
    return ok(str(host.cpu)) if _flags(machine) or not machine.is_linux else unknown(f"{host.cpu}; /proc/cpuinfo does not tell what it can do")


def _flags(machine: Machine) -> set[str]:
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", machine.text("proc/cpuinfo") or "", re.MULTILINE)
    return set(found[1].split()) if found else set()
