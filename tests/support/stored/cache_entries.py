"""Entries of the disk cache whose metadata is changed, under checksums that are right."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hologram.backends import object_cache as cache
from hologram.errors import CacheWarning

GONE = object()
WRONG = (GONE, None, -1, 2**40, 1.5, "x", [], {}, [[]])
Place = tuple[Any, ...]


def rewritten(path: Path, key: str, change: Callable[[Any], Any]) -> None:
    """The entry with another document, under a checksum that is right."""
    document, data = _parts(path.read_bytes())
    document = json.dumps(change(json.loads(document))).encode()
    header = cache._HEADER.pack(cache._MAGIC, cache._FORMAT, len(document), len(data), cache._checksum(key, document, data))
    path.write_bytes(header + document + data)


def _parts(content: bytes) -> tuple[bytes, bytes]:
    _, _, document_bytes, _, _ = cache._HEADER.unpack_from(content)
    split = cache._HEADER.size + document_bytes
    return content[cache._HEADER.size : split], content[split:]


def changes(path: Path) -> Iterator[tuple[Place, Any]]:
    """Each place in an entry's metadata with each wrong value; GONE takes it out. What could be true is left out: fewer constants or intermediates,
    and other sizes of these."""
    document = json.loads(_parts(path.read_bytes())[0])
    for place in _places(document["meta"], ("meta",)):
        yield from ((place, new) for new in WRONG if not _could_be_true(place, new))


def _could_be_true(place: Place, new: Any) -> bool:
    if place[:2] == ("meta", "constants"):
        return new is GONE or new == []
    if place == ("meta", "arena"):
        return new == 2**40  # type: ignore[no-any-return]
    is_size = place[4:] == (0,) and new == 2**40 or len(place) > 5
    return place[:3] == ("meta", "sizes", "lifetimes") and (new is GONE or new == [] or is_size)


def _places(value: Any, path: Place) -> Iterator[Place]:
    yield path
    for k in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from _places(value[k], (*path, k))


def changed(value: Any, place: Place, new: Any) -> Any:
    """``value`` with another at ``place``."""
    if not place:
        return new
    items = dict(value) if isinstance(value, dict) else dict(enumerate(value))
    items[place[0]] = changed(items[place[0]], place[1:], new)
    items = {k: x for k, x in items.items() if x is not GONE}
    return items if isinstance(value, dict) else list(items.values())


def assert_refused(path: Path, place: Place, new: Any, run: Callable[[], Sequence[np.ndarray]], expected: Sequence[np.ndarray]) -> None:
    """Asserts that ``run()`` gives what is expected with another value at a place of an entry, which is put back."""
    content = path.read_bytes()
    rewritten(path, path.stem, lambda d: changed(d, place, new))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)
        for got, want in zip(run(), expected, strict=True):
            np.testing.assert_array_equal(got, want, err_msg=f"{place} {new}")
    path.write_bytes(content)
