"""The CPU as a backend: object code of a program from the disk cache, or generated through LLVM, and its executable."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from hologram import dtypes
from hologram.backends import folded_constants
from hologram.backends import object_cache as cache
from hologram.backends.cpu import metadata
from hologram.backends.cpu.compile import ObjectCode, Source
from hologram.backends.cpu.executable import Executable
from hologram.backends.llvm.graph import lapack
from hologram.backends.llvm.graph.host_calls import is_bound
from hologram.backends.llvm.toolchain import target
from hologram.backends.native import calls, storage
from hologram.backends.residence import on_host
from hologram.graph.compilation import Compilation
from hologram.graph.lower.host_step import host_nodes
from hologram.ir.aval import aval
from hologram.primitives.host.collectives import COLLECTIVES
from hologram.settings import settings
from hologram.support.world import current_world


class Generated(NamedTuple):
    """What loading a program takes: its object code, where that comes from, and the storages of the graph's leaves."""

    compilation: Compilation
    machine: target.Target
    checked: bool
    leaves: list[Any]
    settled: tuple[str, ...] | None  # what keys of the disk cache say besides the program; None where its code is not stored
    source: Source
    code: ObjectCode


class CpuBackend:
    """Generates code for this machine's processor, and loads it."""

    @property
    def tile(self) -> Any:
        return target.host().tile

    def generate(self, compilation: Compilation) -> Generated:
        """Object code of a program. One that functions of the host keep from being stored is generated each time."""
        machine, checked, profiled = target.host(), settings.checked, settings.profile
        leaves = metadata.leaves_of(compilation.traced)
        settled = _settled(compilation, checked, profiled)
        source = Source(
            None if settled is None else cache.key("graph", str(compilation.traced), *settled),
            lambda: compilation.execution_plan,
            compilation.guarantee,
            machine,
            checked,
            profiled,
            compilation.traced.name,
            lambda s: metadata.of(s, compilation.guarantee, leaves),
            lambda known: metadata.describes(known, compilation.traced, leaves),
        )
        code = source.generate()
        if settings.verify:
            metadata.verify(code.known, compilation.traced, leaves)
        return Generated(compilation, machine, checked, leaves, settled, source, code)

    def load(self, generated: Generated) -> Executable:
        """The executable: linked code, and the storages of its constants, those that are folded computed now unless some program holds them."""
        code, known = generated.source.link(generated.code)
        folded = _folded(generated, known["folded"])
        sources = {"leaf": generated.leaves, "folded": [x.storage for x in folded]}
        constants = [on_host(sources[kind][i]) for kind, i in known["constants"]]
        return Executable(generated.compilation, generated.machine, generated.checked, code, known, constants, folded, generated.source)

    def storage(self, source: Any) -> Any:
        """A storage of the host."""
        return on_host(source)


BACKEND = CpuBackend()


def _settled(compilation: Compilation, checked: bool, profiled: bool) -> tuple[str, ...] | None:
    """What the object code of a program depends on besides its graph; None where the disk cache cannot have it."""
    traced = compilation.traced
    host = host_nodes(traced)
    if any(is_bound(x.attrs) for x in host):
        return None
    natively = any(x.inputs and lapack.runs_natively(x.op.name, x.inputs[0].dtype) for x in host) and lapack.available()
    return (
        compilation.guarantee,
        ",".join(settings.disabled_passes),
        str(compilation.hold),
        "lapack" if natively else "",
        "checked" if checked else "",
        "verified" if settings.verify else "",
        "profiled" if profiled else "",
        str(current_world().network) if any(x.op in COLLECTIVES for x in host) else "",
        *sorted(f"{a.name} from {a.low} to {a.high}" for a in traced.variables()),
    )


def _folded(generated: Generated, wanted: Sequence[Any]) -> list[folded_constants.Value]:
    """The folded constants, ``(text, leaves, type)`` each as metadata has them."""
    if not wanted:
        return []
    leaves = generated.leaves
    types = [list(type) for *_, type in wanted]
    return folded_constants.shared([(text, [leaves[i] for i in sources]) for text, sources, _ in wanted], partial(_computed, generated, types))


def _computed(generated: Generated, types: list[Any]) -> list[Any]:
    """Storages of what the initializer computes, which has these ``types``."""
    compilation, leaves, settled = generated.compilation, generated.leaves, generated.settled

    def plan() -> Any:
        assert compilation.execution_plan.initializer is not None
        return compilation.execution_plan.initializer

    source = Source(
        None if settled is None else cache.key("initializer", str(compilation.traced), *settled),
        plan,
        compilation.guarantee,
        generated.machine,
        generated.checked,
        generated.source.profiled,
        f"{compilation.traced.name or 'expression'}, constants",
        lambda s: metadata.of_initializer(s, leaves),
        lambda known: metadata.describes_initializer(known, types, leaves),
    )
    code, known = source.link(source.generate())
    constants = [on_host(leaves[i]) for _, i in known["constants"]]
    outs = [storage.empty(aval(dtypes.of(d), tuple(s))) for d, s in known["computed"]]
    calls.run(code.address("graph"), constants, outs, (), known["arena"], known["long"], known["parallel"])
    return [outs[i] for _, i in known["outputs"]]
