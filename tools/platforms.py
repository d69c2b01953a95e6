"""Core tests on platforms that are not this one: ``python tools/platforms.py levels`` runs them for each level of x86-64 that this machine has,
``python tools/platforms.py arm`` on emulated AArch64 processors.

The emulator runs programs of another processor one by one (qemu-user). What they need lies in a folder of its own, made of Debian's packages and of
wheels; nothing of this system changes but that the emulator is installed where that can be done.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

# The op table, random programs, each way in which kernels are written, calls, threads and memory.
EVERYWHERE = """
    backends/cpu/test_op_table backends/native/test_pool_memory backends/native/test_threads backends/native_lang/test_language
    backends/llvm/test_guarded_loads graph/legalize/test_sorted_scatters graph/library/test_sorts graph/schedule/test_tiles trace/test_weak_types
""".split()
CORE = (
    EVERYWHERE
    + """
    backends/native/test_calls backends/llvm/test_register_transpose backends/llvm/test_strided_access control/test_control
    graph/test_random_graphs graph/legalize/test_short_reductions graph/schedule/test_row_interleave trace/test_jit
""".split()
)
LEVELS = (
    CORE
    + """
    backends/test_object_cache backends/llvm/test_interrupts nn/test_convolution primitives/test_complex primitives/test_expansions trace/test_tensor
""".split()
)

# Processors, with the features that code is made for: programs read the real processor's from the kernel, which tells them of none.
PROCESSORS = {
    "cortex-a72": ("", CORE),
    "neoverse-n1": ("+lse,+rcpc,+dotprod,+fullfp16", EVERYWHERE),
    "a64fx": ("+lse,+fullfp16,+sve", EVERYWHERE),
}
RELEASE, VERSION = "bookworm", "3.11"  # of Debian, and the Python in it
PACKAGES = "numpy llvmlite networkx ml_dtypes scipy pytest pytest-xdist hypothesis mpmath expecttest".split()
PLATFORMS = ("manylinux_2_28_aarch64", "manylinux2014_aarch64", "manylinux_2_17_aarch64")
FOLDER = ROOT / ".venv-arm"
EMULATOR = "qemu-aarch64-static"
PYTHON = """#!/bin/sh
export EMULATED_PYTHON="{python}" PYTHONPATH="{folder}/packages" PYTHONDONTWRITEBYTECODE=1
exec {emulator} -L "{folder}/root" "{folder}/root/usr/bin/python{version}" "$@"
"""
# Python takes the emulated program for itself, which the system cannot start.
SITE = 'import os\nimport sys\n\nsys.executable = os.environ["EMULATED_PYTHON"]\n'


def tests(names: list[str], python: str, workers: int, settings: dict[str, str]) -> bool:
    """Whether tests pass; those of devices are other platforms'."""
    files = [f"tests/{name}.py" for name in names]
    command = [python, "-m", "pytest", "-q", "-n", str(workers), "-p", "no:cacheprovider", "-k", "not opencl and not device", *files]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **settings}).returncode == 0


def levels(workers: int) -> list[str]:
    """The levels at which tests failed."""
    import llvmlite.binding as llvm

    from hologram.backends.llvm.toolchain.target import _LEVELS, _features_of

    if platform.machine().lower() not in ("x86_64", "amd64"):
        raise SystemExit(f"test-levels needs an x86-64 machine, not {platform.machine()}")
    here, failed = llvm.get_host_cpu_features(), []
    for level in _LEVELS:
        missing = [f for f in _features_of(level) if f in here and not here[f]]
        print(f"--- {level}" + (f": not run, this machine has no {', '.join(missing)}" if missing else ""), flush=True)
        if not missing and not tests(LEVELS, sys.executable, workers, {"HOLOGRAM_TARGET": level}):
            failed.append(level)
    return failed


def arm(workers: int, processors: list[str]) -> list[str]:
    """The processors on which tests failed."""
    install()
    if not (FOLDER / "made").exists():
        make()
    failed = []
    for name in processors:
        features, names = PROCESSORS[name]
        print(f"--- {name} {features}", flush=True)
        settings = {"QEMU_CPU": name, "HOLOGRAM_TARGET": features, "HOLOGRAM_CACHE_DIR": str(FOLDER / "cache")}
        if not tests(names, str(FOLDER / "python"), workers, settings):
            failed.append(name)
    return failed


def install() -> None:
    """The emulator and what unpacks Debian's packages."""
    wanted = {EMULATOR: "qemu-user-static", "mmdebstrap": "mmdebstrap"}
    missing = [package for command, package in wanted.items() if shutil.which(command) is None]
    if not missing:
        return
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise SystemExit(f"test-arm needs {' and '.join(missing)}: on Debian or Ubuntu, as root, apt-get install {' '.join(missing)}")
    subprocess.run(["apt-get", "update", "-q"], check=True)
    subprocess.run(["apt-get", "install", "-q", "-y", "--no-install-recommends", *missing], check=True)


def make() -> None:
    """Python of AArch64 with what the tests need, and a command that runs it."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    root, packages, python = FOLDER / "root", FOLDER / "packages", FOLDER / "python"
    system = ["--variant=extract", "--architectures=arm64", "--include=python3,libstdc++6,libgomp1", RELEASE, str(root)]
    subprocess.run(["mmdebstrap", "--quiet", *system], check=True)
    for name in ("tmp", "proc", "sys", "dev"):  # these are the real ones
        shutil.rmtree(root / name, ignore_errors=True)
    wheels = ["--target", str(packages), "--only-binary=:all:", "--python-version", VERSION]
    wheels += [option for p in PLATFORMS for option in ("--platform", p)]
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wheels, *PACKAGES], check=True)
    (packages / "sitecustomize.py").write_text(SITE)
    python.write_text(PYTHON.format(python=python, folder=FOLDER, emulator=EMULATOR, version=VERSION))
    python.chmod(0o755)
    (FOLDER / "made").touch()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["levels", "arm"])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--processors", nargs="*", choices=list(PROCESSORS), default=list(PROCESSORS))
    options = parser.parse_args()
    failed = levels(options.workers) if options.what == "levels" else arm(options.workers, options.processors)
    if failed:
        raise SystemExit(f"tests failed on {', '.join(failed)}")


if __name__ == "__main__":
    main()
