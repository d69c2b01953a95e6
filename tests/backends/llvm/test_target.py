"""Code for this machine and for others."""

from __future__ import annotations

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.llvm.toolchain import target
from hologram.backends.native.module import _exports
from hologram.backends.native_lang.translate import module_ir
from hologram.errors import CompileError
from hologram.ir.aval import Aval
from hologram.settings import override
from tests.support.runtime_programs import ADD_8, F8, natively

pytestmark = natively


def test_code_for_other_machines():
    text = ADD_8.replace("8 x float", "4 x float")
    for triple in ("x86_64-unknown-linux-gnu", "x86_64-pc-windows-msvc", "aarch64-unknown-linux-gnu", "arm64-apple-macosx11.0"):
        assert b"graph" in target.compile_ir(text, target.Target(triple))
    assert "fadd" in target.assembly(text, target.Target("aarch64-unknown-linux-gnu"))
    with pytest.raises(CompileError):
        target.compile_ir(text, target.Target("z80-none-none"))


def test_the_runtime_compiles_for_other_machines():
    for triple in ("aarch64-unknown-linux-gnu", "arm64-apple-macosx11.0", "x86_64-pc-windows-msvc", "x86_64-apple-macosx11.0"):
        of = target.Target(triple)
        assert b"hg_dispatch_call" in target.compile_ir(module_ir(_exports(), of.architecture)[0], of, "quick")


def test_bad_code_is_a_compile_error():
    with pytest.raises(CompileError):
        target.compile_ir("define i64 @graph() { ret i64 }")
    with pytest.raises(CompileError):
        target.link(target.compile_ir("declare i64 @nowhere()\ndefine i64 @graph() { %r = call i64 @nowhere()\n ret i64 %r }"), {})


def test_settings_change_the_target():
    with override(target="x86-64-v3,-fma"):
        t = target.host()
        assert t.cpu == "x86-64-v3" and t.has("avx2") and not t.has("fma") and not t.has("avx512f") and t.vector_bytes == 32
    with override(target="z80"), pytest.raises(ValueError, match="settings.target"):
        target.host()
    assert type(F8) is Aval


def test_levels_of_the_code_generator_have_code_of_their_own() -> None:
    """The compiled program of one level is not taken for another's, nor is the native runtime's code changed."""
    code, ids = {}, set()
    f = hg.jit(lambda x: hnp.sort(hnp.sin(x) * 3 + x, axis=0))
    for level in (0, 2):
        with override(codegen_level=level):
            code[level] = f.lower(np.ones((40, 3), np.float32)).compile().as_text("asm")
            ids.add(target.host().id)
            assert target.machine(target.host(), target._level("quick", target.host())) is target.machine(target.host(), 1)
    assert len(ids) == 2 and code[0] != code[2]
    for level in (-1, 3, "fast"):
        with pytest.raises(ValueError, match="codegen_level is a number from 0 to 2"), override(codegen_level=level):
            pass
