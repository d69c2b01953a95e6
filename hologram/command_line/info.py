"""Tells of this installation and machine: versions, devices and their drivers, rates, caches, the page pool, threads."""

from __future__ import annotations

import argparse
import platform
import stat
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hologram.command_line.options import add_json
from hologram.command_line.result import Result, Table
from hologram.errors import HologramError
from hologram.version import __version__

HELP = "versions, devices and their drivers, rates, caches, the pool, threads"
Row = tuple[str, str]
_PACKAGES = ("numpy", "llvmlite", "networkx", "ml_dtypes", "torch", "pyopencl", "pyobjc-framework-Metal")
_CUPY = ("cupy", "cupy-cuda12x", "cupy-cuda13x", "cupy-cuda11x")  # one package, whose wheels are named after the CUDA that they are for


def add_arguments(command: argparse.ArgumentParser) -> None:
    add_json(command)
    command.add_argument("--measure", action="store_true", help="measure the rates of devices that have none yet, and the network between processes")


def run(options: argparse.Namespace) -> Result:
    found = sections(options.measure)
    return Result({title: dict(rows) for title, rows in found.items()}, [Table(title, rows) for title, rows in found.items()])


def sections(measure: bool = False) -> dict[str, list[Row]]:
    """Rows of name and value under their headings. ``measure``: also rates of devices that no process has measured yet, and the network."""
    return {
        "Hologram": list(_versions()),
        "devices": list(_devices()),
        "rates, for placement": list(_rates(measure)),
        "network, for collectives": list(_network(measure)),
        "threads and memory": list(_memory()),
        "disk cache": list(_disk()),
    }


def _versions() -> Iterator[Row]:
    yield "hologram", __version__
    yield "Python", f"{platform.python_version()} ({platform.python_implementation()}) on {platform.platform()}"
    for name in _PACKAGES:
        yield name, _version(name) or "not installed"
    yield "cupy", next((f"{v} ({name})" for name in _CUPY if (v := _version(name)) is not None), "not installed")
    from hologram.backends.llvm.toolchain import target
    from hologram.backends.native.module import why_not_native

    yield "target", " ".join(target.host().id.split()[:2])
    yield "native calls", why_not_native() or "yes"


def _version(package: str) -> str | None:
    """The installed version of a package; None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _devices() -> Iterator[Row]:
    from hologram.ir.devices import CPU, devices, find

    found = devices()
    for name, what in found.details.items():
        yield name, what if name == CPU else f"{what}, {find(name).memory_bytes / 2**30:,.1f} GiB, {find(name).units} units"
    for name, reason in found.missing.items():
        yield name, f"not available: {reason}"


def _rates(measure: bool) -> Iterator[Row]:
    from hologram.backends.rates import known, rates
    from hologram.ir.devices import devices

    for name in devices():
        try:
            found = rates(name) if measure else known(name)
        except HologramError as e:  # a device that cannot run what is measured, or fails at it, is no reason not to tell of the others
            yield name, f"cannot be measured: {e}"
            continue
        yield name, str(found) if found is not None else "not measured yet: `hologram info --measure`, or jit(device='auto')"


def _network(measure: bool) -> Iterator[Row]:
    from hologram.distributed.local_measurement import measure_here
    from hologram.distributed.network import known

    name = "2 processes of this machine"
    try:
        found = measure_here() if measure else known(2, is_local=True)
    except HologramError as e:  # where there is no torch, which carries the messages
        yield name, f"cannot be measured: {e}"
        return
    if found is None:
        yield name, "not measured yet: `hologram info --measure`"
    else:
        latency, more, large = found.latency * 1e6, found.message * 1e6, found.rendezvous * 1e6
        rate = found.bandwidth / 1e9
        yield name, f"latency {latency:,.1f} us, of large messages {large:,.1f} us more, {rate:,.2f} GB/s, each further message {more:,.1f} us"


def _memory() -> Iterator[Row]:
    from hologram.backends.device.runtime import runtimes
    from hologram.backends.native import storage
    from hologram.backends.native.processors import usable_processors
    from hologram.graph.memory.arena import PAGE_BYTES, POOL_PAGES
    from hologram.settings import settings
    from hologram.trace.lazy_programs.cache import programs

    yield "threads", f"{settings.num_threads or usable_processors()} of {usable_processors()} usable processors"
    yield "lazy programs", f"{len(programs)}, about {programs.nbytes:,} of {settings.program_limit:,} bytes"
    yield "page pool", f"{POOL_PAGES} pages of {PAGE_BYTES:,} bytes, {POOL_PAGES * PAGE_BYTES:,} bytes a call in flight"
    yield "results", _counted(storage.statistics())
    for r in runtimes():
        yield f"results on {r.device.name}", _counted(r.pool.statistics())


def _counted(statistics: dict[str, int]) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in statistics.items()) + " bytes"


def _disk() -> Iterator[Row]:
    from hologram.backends import object_cache as cache
    from hologram.settings import settings

    folder = cache.folder()
    if not settings.cache or folder is None:
        yield "folder", "off"
        return
    sizes = [n for f in folder.rglob("*") if (n := _size(f)) is not None]
    yield "folder", str(folder)
    yield "used", f"{sum(sizes):,} of {settings.cache_limit:,} bytes in {len(sizes)} files"


def _size(path: Path) -> int | None:
    """The bytes of a file; None for what is none, or not any more: other processes evict entries meanwhile."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None
