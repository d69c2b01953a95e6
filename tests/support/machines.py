"""Machines that code is made for: systems, levels of x86-64, AArch64; the LLVM text of a graph for one; and what an assembly text calls."""

from __future__ import annotations

import dataclasses
import re

import llvmlite.binding as llvm

from hologram.backends.llvm.graph.module import render_module
from hologram.backends.llvm.toolchain import target
from hologram.backends.llvm.toolchain.target import Target
from hologram.graph.pipeline import compile_to_plan
from hologram.ir.graph import Graph
from hologram.settings import override

LEVELS = ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"]
TRIPLES = {
    "linux": ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"),
    "macos": ("x86_64-apple-macosx13.0", "arm64-apple-macosx13.0"),
    "windows": ("x86_64-pc-windows-msvc", "aarch64-pc-windows-msvc"),
}
# What code may call beside the runtime: what every C library has. Without the underscores that some object formats put before names.
EXTERNAL = {"memcpy", "memset", "memmove", "bzero", "fmod", "fmodf", "chkstk", "chkstk_ms"}


def machine(level: str, system: str) -> Target:
    x86, arm = TRIPLES[system]
    if level == "aarch64":
        return Target(arm, "generic", "+neon")
    with override(target=level):
        return dataclasses.replace(target.host(), triple=x86)


def module_text(graph: Graph, precision: str, machine: Target) -> str:
    schedule = compile_to_plan(graph, precision, machine.tile)
    return render_module(schedule, schedule.allocate({}) if schedule.static else None, precision, machine)


def called(assembly: str) -> set[str]:
    """What an assembly text calls that neither it nor the runtime defines."""
    names = re.findall(r"^\s+(?:callq?|bl|jmp|b)\s+([\w.$@]+)", assembly, re.MULTILINE)
    defined = {d.lstrip("_") for d in re.findall(r'^"?([\w.$]+)"?:', assembly, re.MULTILINE)}
    symbols = {n.removesuffix("@PLT").lstrip("_") for n in names if not n.startswith((".", "L"))}
    return {n for n in symbols - defined if not n.startswith("hg_")}


def runnable() -> list[str]:
    """The host's own target, and the levels of x86-64 that it has."""
    if not llvm.get_process_triple().startswith("x86_64"):
        return [""]
    features = llvm.get_host_cpu_features()
    having = {"x86-64": True, "x86-64-v2": features.get("sse4.2"), "x86-64-v3": features.get("avx2"), "x86-64-v4": features.get("avx512bw")}
    return ["", *(level for level, there in having.items() if there)]
