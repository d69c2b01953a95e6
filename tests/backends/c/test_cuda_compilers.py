"""What CUDA's own compilers say of the kernels of the test programs, for sm_80 and sm_90."""

from __future__ import annotations

import re

import pytest

from hologram.backends.c.analysis.gemm import GPU_TILE, MATRIX_UNIT_TILE
from hologram.backends.c.source import Program
from hologram.backends.cuda.recording import COPY_TEXT
from hologram.graph.pipeline import compile_to_plan
from hologram.settings import settings
from tests.support.building import Draft, kernels, product
from tests.support.devices.cuda_compilers import MAX_SPILLED_BYTES, NVCC, NVRTC, compile_with_nvcc, compile_with_nvrtc
from tests.support.graphs.products import MATRIX_UNITS, PRODUCTS
from tests.support.graphs.programs import PROGRAMS
from tests.support.graphs.scatters import scattered
from tests.support.graphs.sorts import graph_of

ARCHITECTURES = ["sm_80", "sm_90"]


def texts() -> dict[str, str]:
    """Each program in a namespace of its own."""
    out = {"copy": COPY_TEXT}
    for name, (make, precision) in PROGRAMS.items():
        d = Draft()
        out[name] = Program(kernels(d.schedule(*make(d), precision=precision)), "cuda", precision).text
    for name, make_product in {**PRODUCTS, **MATRIX_UNITS}.items():
        d = Draft()
        out[name] = Program(kernels(compile_to_plan(d.graph(*make_product(d)), "standard", MATRIX_UNIT_TILE)), "cuda", "standard").text
    for name in ("many_short_rows", "long_rows", "order_of_wide_keys"):
        out[name] = Program(kernels(compile_to_plan(graph_of(name), "exact", GPU_TILE)), "cuda", "exact").text
    for name, precision in (("sums", "standard"), ("in_pieces", "exact"), ("last_stays", "exact")):
        out[f"scatter_{name}"] = Program(kernels(compile_to_plan(scattered(name)[0], precision, MATRIX_UNIT_TILE)), "cuda", precision).text
    for dtype, op in (("float32", "sort"), ("uint8", "argsort")):
        d = Draft()
        long = d.graph(d(op, d.input(2**22, dtype=dtype), 0, False))
        out[f"long_{op}"] = Program(kernels(compile_to_plan(long, "standard", MATRIX_UNIT_TILE)), "cuda", "standard").text
    return {name: re.sub(r"\bkernel(\d+)(?=\()", rf"{name}_\1", text) for name, text in out.items()}


def together() -> str:
    return "".join(f"namespace {name}_program {{\n{text}\n}}\n" for name, text in texts().items())


@pytest.mark.skipif(NVCC is None, reason="there is no nvcc")
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_nvcc_compiles_everything_and_keeps_it_in_registers(arch: str, everything: bool) -> None:
    if arch != ARCHITECTURES[-1] and not everything:
        pytest.skip("one of the architectures that --all compiles for")
    spilled = compile_with_nvcc(together(), arch)
    assert len(spilled) > 30 and max(spilled.values()) <= MAX_SPILLED_BYTES, spilled


@pytest.mark.skipif(NVRTC is None, reason="there is no NVRTC: pip install nvidia-cuda-nvrtc")
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_nvrtc_compiles_everything(arch: str) -> None:
    compile_with_nvrtc(together(), arch)


@pytest.mark.skipif(NVCC is None, reason="there is no nvcc")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "tf32"])
def test_a_large_product_stays_in_registers(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "tf32", dtype == "tf32")
    dtype = "float32" if dtype == "tf32" else dtype
    d = Draft()
    x, y = (d("cast", d.input(*shape, dtype=dtype), "float32") for shape in ((2048, 512), (512, 2048)))
    text = Program(kernels(compile_to_plan(d.graph(product(d, x, y)), "standard", MATRIX_UNIT_TILE)), "cuda", "standard").text
    assert f"__launch_bounds__(256, {1 if dtype == 'bfloat16' else 2})" in text and ("mma.sync" in text) == (dtype == "bfloat16" or settings.tf32)
    assert max(compile_with_nvcc(text, "sm_90").values()) <= MAX_SPILLED_BYTES
