"""What native code is told of a captured call: the driver's functions, addresses that do not change, and Python's objects that it reads and fills."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from hologram.backends.common.executable import Sized
from hologram.backends.common.memory import size_class
from hologram.backends.cpu.runtime import records
from hologram.backends.cpu.runtime.language import fields_of
from hologram.backends.cpu.runtime.layout import UnknownLayout, slot_offset
from hologram.backends.cpu.runtime.module import why_not_native
from hologram.backends.cpu.runtime.replays import Replays
from hologram.backends.cuda.device import Block, Device, Event

if TYPE_CHECKING:
    from hologram.backends.cuda.executable import Replay

LAUNCHES = "launches"  # a count of devices


class Natively(NamedTuple):
    """A program at given sizes, and its captured calls as native code knows them."""

    sized: Sized
    replays: Replays


def can_be_replayed(device: Device) -> bool:
    """Whether native code can read this interpreter's objects, and call the device's driver."""
    if why_not_native() is not None or device.cuda.addresses is None:
        return False
    try:
        _slots()
    except UnknownLayout:
        return False
    return True


@cache
def _slots() -> dict[str, int]:
    names = {"event_device_slot": "device", "event_api_slot": "cuda", "event_slot": "event"}
    return {field: slot_offset(Event, name) for field, name in names.items()} | {"address_slot": slot_offset(Block, "address")}


def record(replay: Replay, sized: Sized, constants: list[Any]) -> tuple[Any, Any]:
    """A table with a :class:`records.Replay`, and what must live as long."""
    from hologram.backends.cpu.runtime.tables import table  # whose memory is a native Storage

    queue, table_ = replay.queue, replay.table
    device, runtime = queue.device, queue.device.runtime
    pool, block = runtime.pool, sized.block
    addresses = device.cuda.addresses
    assert addresses is not None
    homes = [pool.home(size_class(a.nbytes, device.largest_buffer), queue) for a in sized.computed]
    results = [(a, home, a.nbytes, name) for a, home, name in zip(sized.computed, homes, sized.results, strict=True)]
    objects = {
        "queue": queue,
        "pool": pool,
        "returned": pool.returned,
        "scratch": pool.scratches(queue),
        "spare_events": device.spare_events,
        "under_way": runtime.under_way,
        "begun": runtime.under_way.append,
        "collect": runtime.collect,
        "turn_over": table_.turn_over,
        "acquire": device.lock.acquire,
        "release": device.lock.release,
        "counts": device.counts,
        "launches": LAUNCHES,
        "event_type": Event,
        "event_device": device,
        "event_api": device.cuda,
    }
    arrays = {
        "constants": [id(c) for c in constants],
        "results": [id(x) for r in results for x in r],
        "own": replay.own,
        "fresh": [0] * table_.count,
    }
    assert len(fields_of(records.ReplayResult)) == 4
    values = {
        **addresses._asdict(),
        **_slots(),
        **{name: id(x) for name, x in objects.items()},
        "context": replay.context,
        "current": 0,
        "busy": 0,
        "graph": replay.graph,
        "stream": queue.stream,
        "n_inputs": table_.count - 2 - len(constants) - len(results) - len(replay.own),
        "n_constants": len(constants),
        "n_results": len(results),
        "n_own": len(replay.own),
        "arena_bytes": block.arena if block.arena or table_.count == 2 + len(replay.own) else -1,
        "workspace_bytes": block.workspace or -1,
        "state": table_.state_address,
        "copies": table_.host,
        "n_copies": table_.copies,
        "device_table": table_.address,
    }
    return table(records.Replay, values, arrays), (objects, results, constants)
