"""What the threads of the pool share: every access is atomic, stores that a load must follow are sequentially consistent, no cache line is
shared; and their clock, in each machine's code."""

from __future__ import annotations

import ast
import inspect
import itertools
import re

import pytest

from hologram.backends.llvm.toolchain import target
from hologram.backends.native.code import pool as pool_code
from hologram.backends.native.code import team as team_code
from hologram.backends.native.code.records import CACHE_LINE, Job, Pool, Worker
from hologram.backends.native_lang.intrinsics import ARCHITECTURES
from hologram.backends.native_lang.language import fields_of, size_of
from hologram.backends.native_lang.translate import RECORD_ALIGNMENT, module_ir

# Fields that one thread may write while another reads or writes them.
SHARED = {"state", "joined", "next", "back", "chunks", "longest", "sleeping", "stop", "open", "n_workers", "unmet", "last_unmet", "guests", "done"}
ATOMICS = {"acquire", "release", "exchange", "fetch_add", "compare_exchange"}
# By which the thread that writes a field also looks at what another wrote: there the weaker store may come too late.
ORDERED = {"state", "joined", "sleeping", "stop", "open", "guests"}
# Before the region's threads are there.
ALONE = {("team", "context.done = 0")}


def accesses(module: object) -> list[tuple[str, str, str | None]]:
    """Of every access to a shared field its name, its statement, and the atomic by which it is made."""
    tree, found = ast.parse(inspect.getsource(module)), []  # type: ignore[arg-type]
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in SHARED:
            call = parents[node]
            how = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.args[0] is node else None
            while not isinstance(node, ast.stmt):
                node = parents[node]
            found.append((ast.unparse(node), call.args[0].attr if how in ATOMICS else "", how))  # type: ignore[union-attr,attr-defined]
    return found


@pytest.mark.parametrize("module", [pool_code, team_code])
def test_every_access_to_what_threads_share_is_atomic(module: object) -> None:
    name = module.__name__.rpartition(".")[2]  # type: ignore[attr-defined]
    found = accesses(module)
    assert len(found) > 3
    assert not [text for text, _, how in found if how not in ATOMICS and (name, text) not in ALONE]
    seats = {"release(seat.sleeping, 0)"}  # whoever leaves a seat looks at nothing after that
    assert not [text for text, field, how in found if how == "release" and field in ORDERED and text not in seats]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_atomics_are_sequentially_consistent(architecture: str) -> None:
    text = module_ir([pool_code.worker_main, pool_code.parallel_for, pool_code.stop_workers], architecture)[0]
    assert all("seq_cst" in line for line in text.splitlines() if re.search(r"atomicrmw|cmpxchg|load atomic", line))
    if architecture == "aarch64":
        assembly = target.assembly(text, target.Target("aarch64-unknown-linux-gnu"), "quick")
        assert "ldar" in assembly and "ldapr" not in assembly  # a weaker load may be made before an earlier store


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_counter_of_time_is_read(architecture: str) -> None:
    text = module_ir([pool_code.now], architecture)[0]
    for cpu in ("", "generic"):
        assembly = target.assembly(text, target.Target(f"{architecture}-unknown-linux-gnu", cpu), "quick")
        assert {"x86_64": "rdtsc", "aarch64": "CNTVCT_EL0"}[architecture].lower() in assembly.lower()


def test_what_is_contended_shares_no_cache_line() -> None:
    lines = {name: field.offset // CACHE_LINE for name, field in fields_of(Job).items()}
    assert len({lines["state"], lines["next"], lines["kernel"]}) == 3 and lines["kernel"] == lines["chunks"]
    lines = {name: field.offset // CACHE_LINE for name, field in fields_of(Pool).items()}
    written, read = {lines["open"], lines["guests"]}, {lines[name] for name in ("jobs", "workers", "n_workers", "stop")}
    estimates = {lines["unmet"], lines["last_unmet"]}
    assert all(not a & b for a, b in itertools.combinations((written, read, estimates), 2))
    assert all(size_of(record) % CACHE_LINE == 0 for record in (Job, Pool, Worker))
    assert RECORD_ALIGNMENT % CACHE_LINE == 0
