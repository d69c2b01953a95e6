"""The calls of CuPy that the CUDA backend makes, on the CuPy that is installed: names, and numbers and types of arguments. No GPU is needed.

Where there is no device each call gets as far as CUDA, and fails there.
"""

from __future__ import annotations

import contextlib
import inspect
from typing import Any

import pytest

pytest.importorskip("cupy", reason="CuPy is not installed")

from hologram.backends.cuda import device as cuda_device  # noqa: E402
from hologram.backends.cuda.api import Api, CompilerError, Matrix, api  # noqa: E402
from hologram.backends.cuda.recording import COPY_TEXT  # noqa: E402

DEVICES, REASON = cuda_device.found()
pytestmark = pytest.mark.skipif(bool(DEVICES), reason="there is a GPU, on which handles that nobody made could do anything")
METHODS = {name: f for name, f in vars(Api).items() if inspect.isfunction(f) and not name.startswith("_")}
NO_LIBRARY = "libcuda.so.1"  # what CuPy says of functions of a driver that is not installed


class Foreign:
    """An array of a device, as DLPack has it."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("no memory")


ARGUMENTS: dict[str, Any] = {
    "int": 0,
    "bool": True,
    "bytes": b"\x7fELF",
    "str": "hg_copy",
    "BaseException": RuntimeError("cudaErrorMemoryAllocation: out of memory"),
    "Sequence[str]": ("--gpu-architecture=sm_90", "--fmad=false"),
    "tuple[int, ...]": (4,),
    "Matrix": Matrix(0, "float32", 4, False),
    "Any": Foreign(),
}


def called(name: str) -> Any:
    """The method's result, for arguments that its annotations ask for."""
    cuda = api()
    parameters = list(inspect.signature(METHODS[name]).parameters.values())[1:]
    given = {p.name: ARGUMENTS[str(p.annotation)] for p in parameters}
    if "source" in given and "options" in given:
        given["source"] = COPY_TEXT
    if "dtype" in given:
        given["dtype"] = "float32"
    result = getattr(cuda, name)(**given)
    if isinstance(result, contextlib.AbstractContextManager):
        with result:
            pass
    return result


def is_of_cuda(e: Exception) -> bool:
    return isinstance(e, (*api().errors, BufferError)) or (isinstance(e, RuntimeError) and NO_LIBRARY in str(e))


@pytest.mark.parametrize("name", METHODS)
def test_every_call_gets_to_cuda(name: str) -> None:
    if name == "multiply" and not api().multiplies:
        pytest.skip("cuBLAS is not installed")
    try:
        called(name)
    except Exception as e:
        assert is_of_cuda(e), f"{type(e).__name__}: {e}"


def test_what_needs_no_device() -> None:
    assert called("is_out_of_memory") and called("compiler_version") and "CuPy" in called("versions")
    assert called("compile").startswith(b"\x7fELF")
    with pytest.raises(CompilerError, match="undefined"):
        api().compile("__global__ void f() { undefined(); }", ["--gpu-architecture=sm_90"])
    with pytest.raises(CompilerError, match="nonsense"):
        api().compile(COPY_TEXT, ["--nonsense"])


def test_products_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as the stream that they go to."""
    if not api().multiplies:
        pytest.skip("cuBLAS is not installed")
    from cupy.cuda import device

    monkeypatch.setattr(Api, "_stream", lambda self, stream: contextlib.nullcontext())
    monkeypatch.setattr(device, "get_cublas_handle", lambda: 0)
    for count in (1, 2):
        monkeypatch.setitem(ARGUMENTS, "int", count)
        with pytest.raises(api().errors, match="cuda"):
            called("multiply")


def test_streams_of_others_make_no_warning() -> None:
    assert api()._external(0).ptr == 0


def test_events_that_failed_are_not_events_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """CuPy gives the status of a query, and does not raise."""
    status = {"now": 600}

    class Runtime:
        CUDARuntimeError = api()._runtime.CUDARuntimeError

        def eventQuery(self, event: int) -> int:
            return status["now"]

    monkeypatch.setattr(api(), "_runtime", Runtime())
    assert not api().is_done(0)
    status["now"] = 0
    assert api().is_done(0)
    status["now"] = 700
    with pytest.raises(api().errors, match="IllegalAddress"):
        api().is_done(0)


def test_why_there_are_no_devices() -> None:
    assert DEVICES == [] and REASON is not None and "no driver or no device" in REASON
