"""Installs each wheel and sdist of a folder into a fresh environment and runs a program with it: ``python tools/try_packages.py dist``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

PROGRAM = """
import importlib.metadata, pathlib, sys
import numpy as np
import hologram as hg, hologram.numpy as hnp

assert importlib.metadata.version("hologram-compute") == hg.__version__
assert pathlib.Path(hg.__file__).is_relative_to(sys.prefix), hg.__file__
f = hg.jit(lambda x: hnp.sum(hnp.exp(-x * x)))
x = np.linspace(-4, 4, 10_001, dtype=np.float32)
assert abs(float(f(x)) - float(np.exp(-x.astype(np.float64) ** 2).sum())) < 1e-2
print("hologram", hg.__version__, "works")
"""


def main(folder: Path) -> None:
    packages = sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])
    if not packages:
        raise SystemExit(f"no package in {folder}")
    for package in packages:
        print(package.name, flush=True)
        with tempfile.TemporaryDirectory() as place:
            venv.create(place, with_pip=True)
            python = next(p for p in (Path(place, "bin", "python"), Path(place, "Scripts", "python.exe")) if p.exists())
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package.resolve()], check=True)
            subprocess.run([python, "-c", PROGRAM], cwd=place, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
