"""The disk cache of object code.

An entry is one file, named by its key: a header, a small JSON document, the object code. The checksum guards against damage, not against
tampering: code that is loaded is trusted, so the folder must belong to the effective user, and nobody else may be able to write to it or to
replace it through one of its parents. Where that does not hold, or no folder can be had, the process says so once and does without a cache;
no other folder takes its place.

Entries are written beside their place and moved into it, so a reader sees all of one or nothing. A read marks its entry as used; when the
entries exceed ``settings.cache_limit`` bytes, those that were not used for longest go.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import struct
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from hologram.backends.llvm.toolchain import target
from hologram.errors import CacheWarning
from hologram.settings import settings
from hologram.version import __version__

SUFFIX = ".hgo"
_TEMPORARY = ".writing-"
_ABANDONED_SECONDS = 3600.0  # a temporary file this old was left by a process that died
_FORMAT = 2
_HEADER = struct.Struct("<8sIIQ16s")  # magic, format, bytes of JSON, bytes of code, checksum
_MAGIC = b"hologram"
OPEN_FLAGS = os.O_RDONLY
for _flag in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY", "O_NONBLOCK", "O_NOCTTY"):  # not to wait for the other end of a FIFO, before it is refused
    OPEN_FLAGS |= getattr(os, _flag, 0)
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_KEEP_AFTER_EVICTION = 0.9  # of the limit, so that a full cache is not scanned at every store


def key(*parts: str | bytes) -> str:
    """The name of the entry that depends on ``parts``, on Hologram's own code, on LLVM and on the target. The parts' boundaries count."""
    h = hashlib.blake2b(digest_size=20)
    for part in (toolchain(), this_target(), *parts):
        raw = part.encode() if isinstance(part, str) else part
        h.update(len(raw).to_bytes(8, "little"))
        h.update(raw)
    return h.hexdigest()


def python_abi() -> str:
    """What object code that reads fields of Python and NumPy objects depends on: a part of :func:`key` for such code."""
    import numpy as np

    major = np.__version__.partition(".")[0]
    return f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')} {sys.maxsize.bit_length() + 1} bits, numpy {major}"


def load(key: str) -> bytes | None:
    """The object code stored under ``key``, or None."""
    entry = load_entry(key)
    return None if entry is None else entry[0]


def load_entry(key: str, valid: Callable[[bytes, Any], bool] = lambda data, meta: True) -> tuple[bytes, dict[str, Any]] | None:
    """Object code and metadata stored under ``key``, or None. An entry that cannot be trusted is deleted, with a :class:`CacheWarning`: one that is
    damaged, or whose code and metadata are not ``valid``."""
    folder = _usable_folder()
    if folder is None:
        return None
    path = _path(folder, key)
    try:
        fd = os.open(path, OPEN_FLAGS)
    except FileNotFoundError:
        return None
    except OSError as e:
        _refuse(path, "it is a symbolic link" if path.is_symlink() else f"it cannot be opened: {e.strerror}")
        return None
    try:
        with os.fdopen(fd, "rb") as file:
            check_file(os.fstat(fd))
            document, data = unpack(key, file.read())
            entry = data, document["meta"]
            if document["target"] != this_target():
                raise Refused(f"its code is for {document['target']}, this is {this_target()}")
            if not valid(*entry):
                raise Refused("its metadata does not describe its code")
            with contextlib.suppress(OSError):  # a folder that may only be read
                os.utime(fd if os.utime in os.supports_fd else path)
    except Refused as reason:
        _refuse(path, str(reason))
        return None
    except OSError as e:
        _refuse(path, f"it cannot be read: {e.strerror}")
        return None
    return entry


def refuse(key: str, reason: str) -> None:
    """Deletes the entry of ``key``, which turned out to be of no use, with a :class:`CacheWarning`."""
    folder = _usable_folder()
    if folder is not None:
        _refuse(_path(folder, key), reason)


def fits(value: Any, form: Any) -> bool:
    """Whether a value of JSON has a form: a type, of which ``object`` is any; a list of one form, for any number of such values; a tuple of forms,
    for as many values in turn; or a dict of forms, for an object that has these keys and may have more."""
    if isinstance(form, list):
        return type(value) is list and all(fits(x, form[0]) for x in value)
    if isinstance(form, tuple):
        return type(value) is list and len(value) == len(form) and all(map(fits, value, form))
    if isinstance(form, dict):
        return type(value) is dict and all(name in value and fits(value[name], f) for name, f in form.items())
    return form is object or type(value) is form


def store(key: str, data: bytes, meta: dict[str, Any] | None = None, kind: str = "other") -> None:
    """Stores object code and metadata (what JSON can hold) under ``key``. Where it cannot, the process does without, with one warning. ``kind`` says
    what it is to people who list the cache."""
    folder = _usable_folder()
    if folder is None:
        return
    content = _pack(key, data, meta or {}, kind)
    if len(content) > settings.cache_limit:
        return
    try:
        _write(_path(folder, key), content)
        _make_room(folder, len(content))
    except OSError as e:
        _warn_once(f"the disk cache {folder} cannot be written ({e.strerror}); every process compiles anew")


def folder() -> Path | None:
    """Where entries live: ``settings.cache_dir``, else ``hologram`` in the user's cache folder; None where the user has no home."""
    if settings.cache_dir is not None:
        return Path(os.path.abspath(settings.cache_dir))
    with contextlib.suppress(RuntimeError):  # no home
        return _user_caches() / "hologram"
    return None


def _user_caches() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    named = os.environ.get("XDG_CACHE_HOME", "")
    return Path(named) if os.path.isabs(named) else Path.home() / ".cache"  # a relative one is to be ignored, says the XDG specification


# What the code depends on besides the caller's parts.


@cache
def toolchain() -> str:
    """Versions, and the state of Hologram's own files: an edit of the compiler must not find code that the one before made."""
    import llvmlite
    import llvmlite.binding as llvm

    root = Path(__file__).resolve().parents[1]  # the package: what stands beside it does not count
    h = hashlib.blake2b(digest_size=16)
    for directory, subfolders, files in os.walk(root):
        subfolders.sort()
        for name in sorted(f for f in files if f.endswith(".py")):
            s = os.stat(os.path.join(directory, name))
            h.update(f"{os.path.relpath(directory, root)}/{name} {s.st_size} {s.st_mtime_ns}\n".encode())
    llvm_version = ".".join(map(str, llvm.llvm_version_info))
    return f"hologram {__version__} {h.hexdigest()} llvmlite {llvmlite.__version__} llvm {llvm_version} format {_FORMAT}"


def this_target() -> str:
    """The machine that code is made for. Kept in each entry: a folder may be shared by machines, or copied from one to another."""
    return _described(target.host())


@cache
def _described(machine: target.Target) -> str:
    features = hashlib.blake2b(machine.features.encode(), digest_size=8).hexdigest()
    return f"{machine.triple} {machine.cpu} features {features}"


# The format of an entry.


class Refused(Exception):
    """Why an entry is not used."""


class OtherFormat(Refused):
    """An entry in the format of another version."""


def _pack(key: str, data: bytes, meta: dict[str, Any], kind: str) -> bytes:
    described = {"target": this_target(), "toolchain": toolchain(), "kind": kind, "meta": meta}
    document = json.dumps(described, separators=(",", ":")).encode()
    return b"".join((_HEADER.pack(_MAGIC, _FORMAT, len(document), len(data), _checksum(key, document, data)), document, data))


def unpack(key: str, content: bytes) -> tuple[dict[str, Any], bytes]:
    """The document of an entry (``target``, ``toolchain``, ``kind``, ``meta``) and its object code. Raises Refused for what is damaged or of another
    format."""
    document_bytes, data_bytes, checksum = _header(content)
    split = _HEADER.size + document_bytes
    if len(content) != split + data_bytes:
        raise Refused("it is truncated")
    document, data = content[_HEADER.size : split], content[split:]
    if _checksum(key, document, data) != checksum:
        raise Refused("its checksum does not fit")
    return _parsed(document), data


def document_of(path: Path) -> dict[str, Any]:
    """The document of an entry alone, without a look at its code. Raises Refused, and OSError."""
    with open(os.open(path, OPEN_FLAGS), "rb") as file:
        document_bytes, *_ = _header(file.read(_HEADER.size))
        return _parsed(file.read(min(document_bytes, os.fstat(file.fileno()).st_size)))


def _header(content: bytes) -> tuple[int, int, bytes]:
    """Bytes of the document, bytes of the code, checksum."""
    if len(content) < _HEADER.size:
        raise Refused("it is truncated")
    magic, version, document_bytes, data_bytes, checksum = _HEADER.unpack_from(content)
    if magic != _MAGIC:
        raise Refused("it is not an entry of this cache")
    if version != _FORMAT:
        raise OtherFormat(f"it has format {version}, not {_FORMAT}")
    return document_bytes, data_bytes, checksum


def _parsed(document: bytes) -> dict[str, Any]:
    try:
        described = json.loads(document)
    except (ValueError, RecursionError):
        described = None
    if not fits(described, {"target": str, "toolchain": str, "kind": str, "meta": dict}):
        raise Refused("its metadata cannot be read")
    return described


def _checksum(key: str, document: bytes, data: bytes) -> bytes:
    h = hashlib.blake2b(key.encode(), digest_size=16)
    h.update(document)
    h.update(data)
    return h.digest()


# Files.


def _path(folder: Path, key: str) -> Path:
    if not key.isalnum():
        raise ValueError(f"{key!r} is not a key of the disk cache")
    return folder / (key + SUFFIX)


def _write(path: Path, content: bytes) -> None:
    fd, temporary = tempfile.mkstemp(prefix=_TEMPORARY, dir=path.parent)  # readable and writable by the owner only
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def check_file(s: os.stat_result) -> None:
    if not stat.S_ISREG(s.st_mode):
        raise Refused("it is not a regular file")
    if hasattr(os, "geteuid"):
        if s.st_uid != os.geteuid():
            raise Refused("it belongs to another user")
        if s.st_mode & _WRITABLE_BY_OTHERS:
            raise Refused(f"others may write to it (mode {stat.S_IMODE(s.st_mode):o})")


def _refuse(path: Path, reason: str) -> None:
    """Deletes the entry, which is safe in a folder that is ours, and says why."""
    with contextlib.suppress(OSError):
        path.unlink()
    warnings.warn(f"entry {path} of the disk cache was refused: {reason}; its code is compiled again", CacheWarning, stacklevel=3)


# The limit.


class Entry(NamedTuple):
    """A file of the cache: when it was last used, in seconds of the epoch."""

    used: float
    nbytes: int
    path: str


MAX_MEASURED = 256  # entries whose sizes a process asks for when it first stores one; a disk may hold tens of thousands
_FAR_BELOW_LIMIT = 0.75  # of the limit: where an estimate lies below, eviction can wait
_bytes_known: dict[Path, int] = {}  # an estimate by folder: scanned once, then counted up; other processes write there too


def _make_room(folder: Path, added: int) -> None:
    known = _bytes_known.get(folder)
    total = _estimated_size(folder) if known is None else known + added
    if total > settings.cache_limit:
        total = _evict(sorted(entries(folder)))
    _bytes_known[folder] = total


def _estimated_size(folder: Path) -> int:
    """The bytes of all entries; of many, by the sizes of some, unless that comes near the limit."""
    names = os.listdir(folder)
    if len(names) > MAX_MEASURED:
        measured = [_file_size(os.path.join(folder, name)) for name in names[:: len(names) // MAX_MEASURED]]
        estimate = sum(measured) * len(names) // len(measured)
        if estimate < settings.cache_limit * _FAR_BELOW_LIMIT:
            return estimate
    return _size(entries(folder))


def _file_size(path: str) -> int:
    try:
        return os.stat(path, follow_symlinks=False).st_size
    except OSError:  # gone meanwhile
        return 0


def _evict(oldest_first: list[Entry]) -> int:
    total = _size(oldest_first)
    for entry in oldest_first:
        if total <= settings.cache_limit * _KEEP_AFTER_EVICTION:
            break
        with contextlib.suppress(OSError):
            os.unlink(entry.path)
        total -= entry.nbytes
    return total


def _size(entries: Iterable[Entry]) -> int:
    return sum(e.nbytes for e in entries)


def is_abandoned(name: str, written: float) -> bool:
    """Whether a file, by its name and the time when it was last written, was left by a process that died while it wrote an entry."""
    return name.startswith(_TEMPORARY) and written < time.time() - _ABANDONED_SECONDS


def entries(folder: Path) -> list[Entry]:
    """All entries; what a dead process left half-written is deleted on the way."""
    out = []
    with os.scandir(folder) as files:
        for file in files:
            with contextlib.suppress(OSError):  # gone meanwhile
                s = file.stat(follow_symlinks=False)
                if file.name.endswith(SUFFIX):
                    out.append(Entry(s.st_mtime, s.st_size, file.path))
                elif is_abandoned(file.name, s.st_mtime):
                    os.unlink(file.path)
    return out


# Trust in the folder.

_verdicts: dict[Path, tuple[tuple[int, ...], str]] = {}  # by folder: its state when it was judged, and why it is not usable ("" where it is)
_said: set[str] = set()


def _usable_folder() -> Path | None:
    """The folder, made where it was missing, or None where the cache is off or nothing safe can be had (which is said once)."""
    if not settings.cache:
        return None
    path = folder()
    if path is None:
        _warn_once("the user has no home folder for the disk cache: set HOLOGRAM_CACHE_DIR; every process compiles anew")
        return None
    verdict = _verdicts.get(path)
    if verdict is None or verdict[0] != _state(path):
        reason = _make(path) or distrust(path)
        verdict = _verdicts[path] = (_state(path), reason)
    if verdict[1]:
        _warn_once(f"the disk cache {path} is not used: {verdict[1]}; every process compiles anew")
        return None
    return path


def _state(path: Path) -> tuple[int, ...]:
    try:
        s = os.lstat(path)
    except OSError:
        return ()
    return s.st_ino, s.st_uid, s.st_mode


def _make(path: Path) -> str:
    """Makes the folder and its parents, closed to others. The reason why not, or nothing."""
    missing = []
    while not os.path.lexists(path):
        missing.append(path)
        path = path.parent
    for p in reversed(missing):
        try:
            p.mkdir(mode=0o700)
        except FileExistsError:  # another process was faster
            continue
        except OSError as e:
            return f"{p} cannot be made ({e.strerror})"
    return ""


def distrust(path: Path) -> str:
    """Why somebody else could put files into the folder, or nothing."""
    try:
        s = os.lstat(path)
        if not stat.S_ISDIR(s.st_mode):
            return "it is a symbolic link" if stat.S_ISLNK(s.st_mode) else "it is not a folder"
        if not hasattr(os, "geteuid"):  # Windows: the user's folders are closed to others by their access lists
            return ""
        if s.st_uid != os.geteuid():
            return f"it belongs to user {s.st_uid}, not to {os.geteuid()}"
        if s.st_mode & _WRITABLE_BY_OTHERS:
            return f"others may write to it (mode {stat.S_IMODE(s.st_mode):o})"
        return _distrust_parents(path)
    except OSError as e:
        return f"it cannot be examined ({e.strerror})"


def _distrust_parents(path: Path) -> str:
    """A parent may belong to the user or to root; others may write to it only under the sticky bit, which keeps them from replacing entries."""
    for parent in dict.fromkeys((*path.parents, *Path(os.path.realpath(path)).parents)):
        s = os.lstat(parent)
        if s.st_uid not in (0, os.geteuid()):
            return f"its parent {parent} belongs to user {s.st_uid}"
        if not stat.S_ISLNK(s.st_mode) and s.st_mode & _WRITABLE_BY_OTHERS and not s.st_mode & stat.S_ISVTX:
            return f"others may write to its parent {parent} (mode {stat.S_IMODE(s.st_mode):o})"
    return ""


def _warn_once(message: str) -> None:
    if message not in _said:
        _said.add(message)
        warnings.warn(message, CacheWarning, stacklevel=4)
