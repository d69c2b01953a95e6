"""The machine that code is generated for, from LLVM IR text to object code, and from object code to addresses.

LLVM's code generator is driven through llvmlite: text is parsed, verified, optimised by a pass pipeline and emitted as an object, for the
host or for any other machine that LLVM knows. Objects are linked into the process by LLVM's ORC (LLJIT).
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from hologram.backends.llvm.toolchain.parallel_emit import Work, emit
from hologram.backends.llvm.toolchain.signal_free import free_after, signal_free
from hologram.errors import CompileError
from hologram.graph.schedule.tiles import CpuTileConfig
from hologram.settings import MAX_CODEGEN_LEVEL, settings
from hologram.support import forks
from hologram.support.cached_property import cached_property

# Pass pipelines by name: the code generator's level, and passes in turn or, in their place, LLVM's own pipeline of that level with vectorisers.
# Kernels arrive as vector code with equal instructions made once, so a few passes do for them what the long pipelines do in twice the time.
# Loops around inlined kernels keep small arrays in stack memory, which more passes turn into registers.
_CLEAN = ("instruction_combine", "simplify_cfg", "global_dead_code_eliminate")
PIPELINES: dict[str, tuple[int, tuple[str, ...] | None]] = {
    "none": (0, ()),
    "quick": (1, ("always_inliner", "sroa", "simplify_cfg", *_CLEAN)),
    "kernel": (2, ("always_inliner", *_CLEAN)),
    "loops": (2, ("always_inliner", "instruction_combine", "simplify_cfg", "loop_rotate", "loop_unroll", "sroa", "dead_store_elimination", *_CLEAN)),
    "full": (3, None),
}


# Processors whose instruction for pairs of bfloat16 takes four times as long as a multiply-add (measured on emeraldrapids, 0.83 and 0.20 ns; the
# others have cores of its kind)
_SLOW_PAIRS = ("sapphirerapids", "emeraldrapids", "graniterapids")


@dataclass(frozen=True)
class Target:
    """A machine: LLVM triple, cpu name and feature string (``+avx2,-avx512f``). ``codegen_level``: as ``settings`` has it, for code of programs."""

    triple: str
    cpu: str = ""
    features: str = ""
    codegen_level: int = MAX_CODEGEN_LEVEL

    @property
    def id(self) -> str:
        """All that code depends on, in one string."""
        level = f" level {self.codegen_level}" if self.codegen_level < MAX_CODEGEN_LEVEL else ""
        return f"{self.triple} {self.cpu} {self.features}{level}"

    @property
    def architecture(self) -> str:
        return self.triple.partition("-")[0].replace("arm64", "aarch64")

    @cached_property
    def _feature_set(self) -> frozenset[str]:
        on: set[str] = set()
        for f in filter(None, self.features.split(",")):
            on.add(f[1:]) if f[0] == "+" else on.discard(f[1:])
        return frozenset(on)

    def has(self, feature: str) -> bool:
        """Whether an instruction-set feature, by LLVM's name, is there."""
        return feature in self._feature_set

    @cached_property
    def vector_bytes(self) -> int:
        """Width of the vectors that kernels use."""
        return 64 if self.has("avx512f") else 32 if self.has("avx2") else 16

    @cached_property
    def registers(self) -> int:
        """How many vector registers there are."""
        return 32 if self.has("avx512f") or self.architecture == "aarch64" else 16

    @cached_property
    def adds_bfloat16_pairs(self) -> bool:
        """Whether an instruction that adds products of pairs of bfloat16 is faster than multiplying and adding them as float32."""
        return self.has("avx512bf16") and not self.cpu.startswith(_SLOW_PAIRS)

    @cached_property
    def tile(self) -> CpuTileConfig:
        """Accumulators for three quarters of the registers, in rows that share their reads."""
        rows = 6 if self.vector_bytes > 16 or self.registers > 16 else 3
        return CpuTileConfig(rows, self.vector_bytes * (self.registers * 3 // 4 // rows), self.adds_bfloat16_pairs, self.vector_bytes)

    @cached_property
    def native_half(self) -> bool:
        """Whether conversions between float16 and float32 are instructions."""
        return self.architecture == "aarch64" or self.has("f16c") or self.has("avx512f")

    @cached_property
    def rounds(self) -> bool:
        """Whether rounding floats to whole numbers is an instruction."""
        return self.architecture == "aarch64" or self.has("sse4.1")

    @property
    def saturates(self) -> bool:
        """Whether conversions of vectors of floats to integers that saturate are instructions."""
        return self.architecture == "aarch64"

    @cached_property
    def splits_masks(self) -> bool:
        """Whether masks are vectors of the elements' width, of which LLVM splits those that are longer than a register."""
        return self.architecture == "x86_64" and self.has("avx") and not self.has("avx512f")

    @cached_property
    @signal_free
    def data_layout(self) -> str:
        return str(machine(self).target_data)

    @cached_property
    def l2_bytes(self) -> int:
        """Second-level cache of one core (the host's own, or what is usual)."""
        return _l2_cache_bytes() or 2**20


def _l2_cache_bytes() -> int | None:
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            if int((folder / "level").read_text()) == 2 and (folder / "type").read_text().strip() != "Instruction":
                text = (folder / "size").read_text().strip()
                return int(text[:-1]) * {"K": 2**10, "M": 2**20}[text[-1]]
        except (OSError, ValueError, KeyError):
            continue
    return None


def host() -> Target:
    """This machine, as ``settings.target`` changes it: a level of x86-64, features (``+f,-g``), or both (``x86-64-v3,-fma``)."""
    return _host(settings.target, settings.codegen_level)


@cache
@signal_free
def _host(override: str, level: int) -> Target:
    words = [w.strip() for w in override.split(",") if w.strip()]
    names, changes = [w for w in words if w[0] not in "+-"], [w for w in words if w[0] in "+-"]
    if len(names) > 1 or not set(names) <= _LEVELS.keys():
        raise ValueError(f"settings.target {override!r}: it is one of {', '.join(_LEVELS)} and then features such as +fma,-avx512f")
    triple = llvm.get_process_triple()
    if names and not triple.startswith("x86_64"):
        raise ValueError(f"settings.target {override!r}: {names[0]} is a level of x86-64, and this machine is {triple.partition('-')[0]}")
    features = _features_of(names[0]) if names else dict(llvm.get_host_cpu_features())
    for w in changes:
        features[w[1:]] = w[0] == "+"
    if features.get("avx512f"):
        features["prefer-256-bit"] = False  # tunings of Intel cores would halve the vectors
    text = ",".join(("+" if on else "-") + f for f, on in sorted(features.items()))
    return Target(triple, names[0] if names else llvm.get_host_cpu_name(), text, level)


_LEVELS = {  # of x86-64, cumulative
    "x86-64": "cx8 fxsr mmx sse sse2",
    "x86-64-v2": "cx16 popcnt sahf sse3 ssse3 sse4.1 sse4.2",
    "x86-64-v3": "avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave",
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}


def _features_of(level: str) -> dict[str, bool]:
    names = list(_LEVELS)
    return {f: True for name in names[: names.index(level) + 1] for f in _LEVELS[name].split()}


# --- compiling ----------------------------------------------------------------------------------------------------------------------------

_machine_lock = forks.guard(forks.MACHINES, threading.Lock())
_machines: dict[tuple[Target, int, int], Any] = {}


def machine(target: Target, level: int = MAX_CODEGEN_LEVEL, number: int = 0) -> Any:
    """LLVM's TargetMachine, made once; ``level`` is the code generator's own optimisation level. Those of other numbers are for other threads."""
    with _machine_lock:
        found = _machines.get((target, level, number))
        if found is None:
            found = _machines[target, level, number] = _new_machine(target, level)
    return found


def _new_machine(target: Target, level: int) -> Any:
    _initialise(target.architecture == llvm.get_process_triple().partition("-")[0])
    triple = target.triple
    if os.name == "nt" and triple == llvm.get_process_triple():
        triple += "-elf"  # the in-process linker takes ELF objects
    try:
        found = llvm.Target.from_triple(triple)
        return found.create_target_machine(target.cpu, target.features, level, reloc="pic", codemodel="small")
    except RuntimeError as e:
        raise CompileError(f"LLVM has no target {target.id}: {e}") from e


@cache
def _initialise(native: bool) -> None:
    if native:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()


def compile_ir(text: str, target: Target | None = None, opt: str = "kernel") -> bytes:
    """Object code of an LLVM IR module. ``opt`` names one of :data:`PIPELINES`. Raises CompileError."""
    return compile_modules([text], target, [opt])[0]


@signal_free
def compile_modules(texts: Sequence[str], target: Target | None, opts: Sequence[str]) -> list[bytes]:
    """As :func:`compile_ir`, for modules that are linked together, each with passes of its own: they are compiled in parallel."""
    of = target or host()
    work = [_work(text, of, opt, 0 if len(texts) == 1 else 1 + i) for i, (text, opt) in enumerate(zip(texts, opts, strict=True))]
    return emit(work)


@signal_free
def assembly(text: str, target: Target | None = None, opt: str = "kernel") -> str:
    """As :func:`compile_ir`, but the assembly text."""
    target = target or host()
    return machine(target, _level(opt, target)).emit_assembly(_optimised(text, target, opt))


@signal_free
def optimised_ir(text: str, target: Target | None = None, opt: str = "kernel") -> str:
    """The LLVM IR text after the pass pipeline."""
    return str(_optimised(text, target or host(), opt))


def _level(opt: str, target: Target) -> int:
    """The code generator's level: the target's is for what is compiled for speed, as programs are."""
    level = PIPELINES[opt][0]
    return level if level < MAX_CODEGEN_LEVEL else target.codegen_level


def _optimised(text: str, target: Target, opt: str) -> Any:
    work = _work(text, target, opt, 0)
    if work.passes is not None:
        work.passes.run(work.module, work.builder)
    return work.module


def _work(text: str, target: Target, opt: str, number: int) -> Work:
    """A module, and what is to be done with it, by the machine of this ``number``."""
    of = machine(target, _level(opt, target), number)
    try:
        module = llvm.parse_assembly(text, llvm.create_context())
        module.triple, module.data_layout = of.triple, target.data_layout
        module.verify()
    except RuntimeError as e:
        raise CompileError(f"LLVM refuses this module: {e}\n{text}") from e
    level, passes = PIPELINES[opt]
    if passes == ():
        return Work(module, of, None, None)
    builder = llvm.create_pass_builder(of, llvm.create_pipeline_tuning_options(speed_level=level))
    return Work(module, of, builder, builder.getModulePassManager() if passes is None else _manager(passes))


def _manager(passes: Iterable[str]) -> Any:
    manager = llvm.create_new_module_pass_manager()
    for name in passes:
        getattr(manager, f"add_{name}_pass")()
    return manager


# --- linking ------------------------------------------------------------------------------------------------------------------------------


class Code:
    """Linked code; its addresses hold as long as this object lives, and so does ``kept``."""

    __slots__ = ("_addresses", "kept", "__weakref__")

    def __init__(self, tracker: Any, addresses: Mapping[str, int], kept: Any = None) -> None:
        self._addresses, self.kept = dict(addresses), kept
        free_after(self, tracker)

    def address(self, name: str) -> int:
        """The address of an exported symbol."""
        return self._addresses[name]


_library_numbers = itertools.count()


_linkers: list[Any] = []


@signal_free
def linker() -> Any:
    """LLVM's linker of this process, made once.

    JITLink puts the sections of an object next to each other. LLVM's older linker asks for memory section by section; in a process with much memory
    these can be further apart than code reaches, 2 GiB, and then it aborts. JITLink knows too little of Windows' object files yet."""
    near = sys.platform != "win32"
    with _machine_lock:
        if not _linkers:
            _linkers.append(llvm.create_lljit_compiler(_new_machine(host(), MAX_CODEGEN_LEVEL), use_jit_link=near, suppress_errors=True))
        return _linkers[0]


@signal_free
def link(objects: bytes | Sequence[bytes], symbols: Mapping[str, int], exports: Iterable[str] = ("graph",), kept: Any = None) -> Code:
    """Links object code, of one module or of several, into the process.

    ``symbols`` gives addresses to external names; what it lacks comes from the process (libc). ``kept`` is what the code refers to.
    Raises CompileError where a symbol is nowhere.
    """
    builder = llvm.JITLibraryBuilder()
    for image in [objects] if isinstance(objects, bytes) else objects:
        builder.add_object_img(image)
    builder.add_current_process()
    for name, address in symbols.items():
        builder.import_symbol(name, address)
    names = list(exports)
    for name in names:
        builder.export_symbol(name)
    try:
        tracker = builder.link(linker(), f"hologram{next(_library_numbers)}")
    except RuntimeError as e:
        raise CompileError(f"the object code does not link: {e}") from e
    return Code(tracker, {name: tracker[name] for name in names}, kept)
