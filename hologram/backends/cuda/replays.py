"""What native code is told of a captured call: the driver's functions, addresses that do not change, and Python's objects that it reads and fills."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from hologram.backends.cuda.device import Block, Device, Event, Queue
from hologram.backends.device.executable import Sized
from hologram.backends.device.memory import size_class
from hologram.backends.native.code import records
from hologram.backends.native.code.object_layout import UnknownLayout, slot_offset
from hologram.backends.native.module import why_not_native
from hologram.backends.native.replays import Replays
from hologram.backends.native_lang.language import fields_of

LAUNCHES = "launches"  # a count of devices
BESIDE = 2  # places of a table beside operands, results and the captured call's own memory: an arena and a workspace


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


def record(replay: Any, sized: Sized, constants: list[Any]) -> tuple[Any, Any]:
    """A table with a :class:`records.Replay`, and what must live as long."""
    from hologram.backends.native.tables import table  # whose memory is a native Storage

    objects, results = _objects(replay), _results(replay.queue, sized)
    arrays = {
        "constants": [id(c) for c in constants],
        "results": [id(r[name]) for r in results for name in fields_of(records.ReplayResult)],
        "own": replay.own,
        "fresh": [0] * replay.table.count,
    }
    values = {
        **{name: id(x) for name, x in objects.items()},
        **_numbers(replay, sized),
        **_slots(),
        "n_inputs": replay.table.count - len(constants) - len(results) - BESIDE - len(replay.own),
        **{"n_" + name: len(arrays[name]) for name in ("constants", "own")},
        "n_results": len(results),
    }
    return table(records.Replay, values, arrays), (objects, results, constants)


def _numbers(replay: Any, sized: Sized) -> dict[str, int]:
    queue, table, block = replay.queue, replay.table, sized.block
    addresses = queue.device.cuda.addresses
    assert addresses is not None
    is_unfusible = table.count == BESIDE + len(replay.own)  # so that no other place will do for an arena
    return {
        **addresses._asdict(),
        "context": replay.context,
        "current": 0,
        "busy": 0,
        "graph": replay.graph,
        "stream": queue.stream,
        "arena_bytes": block.arena if block.arena or is_unfusible else -1,
        "workspace_bytes": block.workspace or -1,
        "state": table.state_address,
        "copies": table.host,
        "n_copies": table.copies,
        "device_table": table.address,
    }


def _objects(replay: Any) -> dict[str, Any]:
    queue, device = replay.queue, replay.queue.device
    runtime, pool = device.runtime, device.runtime.pool
    return {
        "queue": queue,
        "pool": pool,
        "returned": pool.returned,
        "scratch": pool.scratches(queue),
        "spare_events": device.spare_events,
        "under_way": runtime.under_way,
        "begun": runtime.under_way.append,
        "collect": runtime.collect,
        "turn_over": replay.table.turned_over,
        "acquire": device.lock.acquire,
        "release": device.lock.release,
        "counts": device.counts,
        "launches": LAUNCHES,
        "event_type": Event,
        "event_device": device,
        "event_api": device.cuda,
    }


def _results(queue: Queue, sized: Sized) -> list[dict[str, Any]]:
    """Of each result what a :class:`records.ReplayResult` has."""
    device = queue.device
    homes = [device.runtime.pool.home(size_class(a.nbytes, device.largest_buffer), queue) for a in sized.computed]
    found = zip(sized.computed, homes, sized.results, strict=True)
    return [{"aval": a, "home": home, "nbytes": a.nbytes, "what": name} for a, home, name in found]
