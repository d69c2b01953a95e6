"""The compiler's thresholds, and setting them for a while.

A threshold is a named number at the top of a module of the compiler: :func:`thresholds` finds them all in the source, and every module that imports
one by name. :func:`overridden` sets some of them everywhere, forgets what was compiled or remembered under other values, and puts all of it back.
The disk cache, whose keys know nothing of them, is off meanwhile.

:data:`FIXED` are numbers of another sort: the canonical order of reductions, layouts of memory and registers, formats.
They stay as they are, and so do the members of enumerations."""

from __future__ import annotations

import ast
import functools
import importlib
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple

import hologram
from hologram.settings import override
from hologram.support.lru_cache import Recent

PACKAGES = (
    "hologram.graph",
    "hologram.backends.llvm",
    "hologram.backends.cpu",
    "hologram.backends.native.code.submissions",
    "hologram.backends.device",
    "hologram.primitives.indexing",
    "hologram.nn.attention",
)
LEFT_OUT = (
    "hologram.backends.llvm.abi",  # layouts of what native code reads
    "hologram.backends.object_cache",
    "hologram.graph.library.sort.radix",
    "hologram.graph.kernel.parser",
    "hologram.graph.kernel.verify",  # bounds of proofs, and of passes, which defects alone meet
    "hologram.graph.bounded",
)

FIXED = {
    "hologram.graph.memory.arena.PAGE_BYTES": "a page of the arena, which scratch is counted in",
    "hologram.graph.memory.arena.LINE_BYTES": "a line of the cache",
    "hologram.backends.llvm.memory.CACHE_LINE": "a line of the cache",
    "hologram.backends.llvm.fft.program._LINE": "a line of the cache",
    "hologram.backends.llvm.abi.SCRATCH_AT": "a field of a record",
    "hologram.backends.llvm.abi.ARENA_AT": "a field of a record",
    "hologram.backends.llvm.abi.ARENA_BYTES_AT": "a field of a record",
    "hologram.graph.lower.canonical_order.LAST": "beyond any hash",
    "hologram.graph.lower.code_placement.TOP": "a name",
    "hologram.graph.legalize.sorts.INDEX_BITS": "width of indices",
    "hologram.graph.legalize.gram_products.ALIGNED": "a line of the cache",
    "hologram.graph.schedule.tiles.SIDE": "items of a group of 256",
    "hologram.graph.schedule.tiles.PAD": "banks of shared memory",
    "hologram.graph.schedule.nest.UNBOUNDED": "infinity",
    "hologram.graph.canonical.loop_splitting._FIRST_OWN": "a number that no input has",
    "hologram.graph.placement.min_cut.NEVER": "infinity",
    "hologram.backends.llvm.bfloat16_pairs.MAX_LANES": "lanes of an instruction",
    "hologram.backends.llvm.bfloat16_pairs.MIN_LANES": "lanes of an instruction",
    "hologram.graph.canonical.licm._MAX_WORK": "infinity",
    "hologram.graph.pass_manager.MAX_ROUNDS": "a bound, met by defects only",
    "hologram.graph.rewrite.rewriter.MAX_NESTED_REWRITES": "a bound, met by defects only",
    "hologram.backends.llvm.graph.loops.POLL_NS": "how soon signals are seen",
    "hologram.graph.library.attention.kernel.GFLOPS": "a rate",
    "hologram.backends.llvm.graph.lapack._MAX_INTEGER": "what a routine's integers hold",
    "hologram.backends.device.maker.MAX_GROUPS": "a limit of devices",
} | {
    f"hologram.graph.legalize.radix_plan.{name}": "the layout of written kernels"
    for name in ("DIGIT_BITS", "MAX_ITEMS", "MAX_COUNTED", "COUNTING_ITEMS", "MAX_READ_AHEAD", "COUNTER_ROWS", "COUNTED_BITS", "MAX_TILE_BYTES")
}
MIN_VALUES = {  # the least values that have a meaning; 1 for the others
    "hologram.graph.library.attention.match.MIN_KEYS": 2,
    "hologram.graph.fusion.materialize.SPREAD": 2,  # uses are counted up to it: at 1 nothing is used twice, and all is made again for each use
    "hologram.graph.library.sort.merge.TILE_BYTES": 256,  # some keys of any type, a power of two
    "hologram.graph.legalize.gram_products.MIN_STRIP_ROWS": 16,  # of fewer no strip is a matrix product
    "hologram.graph.schedule.choose.COLUMNS": 16,
    "hologram.graph.schedule.row_interleave.MAX_INTERLEAVED_ROWS": 2,
}
MULTIPLES = {"hologram.graph.schedule.choose.COLUMNS": 16, "hologram.graph.schedule.choose.SQUARE": 16}  # which others take for granted


class Threshold(NamedTuple):
    name: str
    value: float | int
    users: tuple[tuple[str, str], ...]  # modules, and the name there


def _modules() -> list[ModuleType]:
    found = []
    for package in PACKAGES:
        module = importlib.import_module(package)
        names = [package] + [m.name for m in pkgutil.walk_packages(getattr(module, "__path__", []), package + ".")]
        found += [importlib.import_module(n) for n in names if not n.startswith(LEFT_OUT)]
    return found


def _tree(module: ModuleType) -> ast.Module:
    with open(module.__file__ or "", encoding="utf-8") as file:
        return ast.parse(file.read())


def _enumerates(node: ast.stmt) -> bool:
    """Whether a statement names the members of an enumeration: ``A, B = range(2)``."""
    value = node.value if isinstance(node, ast.Assign) else None
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "range"


@functools.cache
def thresholds() -> dict[str, Threshold]:
    """Every threshold by its full name."""
    modules = _modules()
    defined: dict[str, float | int] = {}
    for m in modules:
        for node in _tree(m).body:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
            if _enumerates(node):
                continue
            for t in [e for x in targets for e in (x.elts if isinstance(x, ast.Tuple) else [x])]:
                if isinstance(t, ast.Name) and t.id.upper() == t.id and type(value := getattr(m, t.id, None)) in (int, float):
                    defined[f"{m.__name__}.{t.id}"] = value
    users: dict[str, list[tuple[str, str]]] = {}
    for m in [m for n, m in sorted(sys.modules.items()) if n.partition(".")[0] == hologram.__name__ and getattr(m, "__file__", None)]:
        for node in ast.walk(_tree(m)):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if (full := f"{node.module}.{alias.name}") in defined:
                        users.setdefault(full, []).append((m.__name__, alias.asname or alias.name))
    return {
        name: Threshold(name, value, ((name.rpartition(".")[0], name.rpartition(".")[2]), *users.get(name, [])))
        for name, value in defined.items()
        if name not in FIXED
    }


def draw_overrides(rng: Any) -> dict[str, Any]:
    """Some thresholds with other values: mostly small ones, so that what is meant for large arrays runs on small ones."""
    every = sorted(thresholds())
    out: dict[str, Any] = {}
    many = rng.random() < 0.25
    for name in every:
        if rng.random() < (0.3 if many else 0.06):
            out[name] = _another(rng, name)
    return out


def _another(rng: Any, name: str) -> Any:
    t = thresholds()[name]
    least = MIN_VALUES.get(name, 1)
    if isinstance(t.value, float):
        return t.value * float(rng.choice([0.0, 0.01, 0.25, 4.0, 100.0])) if t.value > 2 else t.value * float(rng.choice([0.5, 1.0, 2.0]))
    options = [least, least, max(least, 2), max(least, 3), max(least, t.value // 64), max(least, t.value // 8), max(least, t.value // 2), t.value * 8]
    value = int(options[int(rng.integers(0, len(options)))])
    step = MULTIPLES.get(name, 1)
    return max(step, value // step * step)


@contextmanager
def overridden(values: Mapping[str, Any]) -> Iterator[None]:
    """Sets thresholds for a block."""
    if not values:
        yield
        return
    known = thresholds()
    before = [(sys.modules[m], n, getattr(sys.modules[m], n)) for name in values if name in known for m, n in known[name].users]
    with override(cache=False):
        forget()
        try:
            for name, value in values.items():
                for m, n in known[name].users if name in known else ():
                    setattr(sys.modules[m], n, value)
            yield
        finally:
            for m, n, value in before:
                setattr(m, n, value)
            forget()


@functools.cache
def _caches() -> list[Any]:
    """What the compiler remembers of programs."""
    found: dict[int, Any] = {}
    for name, m in sorted(sys.modules.items()):
        if name.startswith(("hologram.graph", "hologram.backends.llvm.graph.host_calls", "hologram.backends.device")) and m is not None:
            for x in vars(m).values():
                if isinstance(x, Recent):
                    found[id(x)] = x.clear
                elif hasattr(x, "cache_clear"):
                    found[id(x)] = x.cache_clear
    return list(found.values())


def forget() -> None:
    """Forgets compiled programs, and what was remembered on the way to them."""
    hologram.clear_caches()
    for clear in _caches():
        clear()
