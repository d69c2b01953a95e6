"""``python tests/gpu [--device NAME]``: the tests of this folder on a GPU, and a sample of them under compute-sanitizer where there is one.

Without ``--device`` it is the first GPU of Metal, CUDA or OpenCL. Where there is none it says why, and fails.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

SANITIZER_TOOLS = ("memcheck", "racecheck", "synccheck")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="such as cuda:1; opencl runs them on any OpenCL device")
    options = parser.parse_args()
    import hologram as hg
    from hologram.backends.devices import accelerator

    name = options.device or accelerator()
    if name is None:
        print(f"there is no GPU to test:\n{hg.devices()}", file=sys.stderr)
        return 1
    print(f"testing {name}: {hg.devices().details.get(name, '')}")
    environment = {**os.environ, "HOLOGRAM_TEST_DEVICE": name}
    command = [sys.executable, "-m", "pytest", "-q", str(Path(__file__).parent)]
    failed = subprocess.run([*command, "--all"], env=environment).returncode
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None or not name.startswith("cuda"):
        print("no compute-sanitizer for this device: its part is left out")
        return failed
    for tool in SANITIZER_TOOLS:
        failed |= subprocess.run([sanitizer, "--tool", tool, "--error-exitcode", "1", *command, "-k", "sample"], env=environment).returncode
    return failed


if __name__ == "__main__":
    sys.exit(main())
