"""The compilers of CUDA that there are, none of which needs a GPU: nvcc, and NVRTC (``pip install nvidia-cuda-nvrtc``)."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from hologram.backends.c.dialects import CUDA

MAX_SPILLED_BYTES = 64  # bytes of a thread
NVCC = shutil.which("nvcc")


def _nvrtc_path() -> str | None:
    """``HOLOGRAM_NVRTC`` names the library, else it is the system's or that of a package."""
    spec = importlib.util.find_spec("nvidia")
    folders = [Path(f) for f in (spec.submodule_search_locations or [])] if spec is not None else []
    packaged = [str(p) for f in folders for p in f.glob("**/libnvrtc.so.*")]
    return os.environ.get("HOLOGRAM_NVRTC") or ctypes.util.find_library("nvrtc") or next(iter(packaged), None)


NVRTC = _nvrtc_path()


def compile_with_nvcc(source: str, arch: str) -> dict[str, int]:
    """Bytes that each kernel spills. Raises AssertionError with the compiler's words."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.cu"
        path.write_text(source)
        flags = [*CUDA.options, f"-arch={arch}", "-std=c++17", "-diag-suppress=177,550", "-Werror=all-warnings", "-Xptxas=-v", "-cubin"]
        done = subprocess.run([str(NVCC), *flags, "-o", Path(folder) / "program.cubin", path], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"Function properties for (\w+)\s.*?(\d+) bytes spill stores", done.stderr, re.DOTALL)
    return {name: int(n) for name, n in found}


@functools.cache
def _nvrtc() -> ctypes.CDLL:
    return ctypes.CDLL(str(NVRTC))


def compile_with_nvrtc(source: str, arch: str) -> None:
    """Raises AssertionError with the compiler's words."""
    library, program = _nvrtc(), ctypes.c_void_p()
    assert library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"program.cu", 0, None, None) == 0
    options = [o.encode() for o in (*CUDA.options, f"--gpu-architecture={arch}")]
    status = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    size = ctypes.c_size_t()
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    assert status == 0, log.value.decode()
