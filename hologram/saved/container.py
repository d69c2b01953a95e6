"""The file around a program: an uncompressed zip archive of ``program.json`` and arrays as ``.npy`` members.

Nothing in it is executed or unpickled, and no more memory is taken than the file has bytes: members are stored, not compressed, and what they say
of their sizes is compared with the archive before anything is read.
"""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import numpy as np

from hologram import dtypes
from hologram.errors import ArgumentError, HologramError, ProgramFileError
from hologram.support.files import replacing
from hologram.support.user_lines import located

FORMAT = "hologram program"
VERSION = 2  # 1 had gathers and scatters along one axis (:mod:`hologram.saved.version_1`)
READABLE = (1, VERSION)
HEADER = "program.json"
MAX_HEADER_BYTES = 2**28
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same program gives the same bytes

Source = str | os.PathLike[str] | bytes | BinaryIO


def _member(index: int) -> str:
    return f"arrays/{index}.npy"


def _stored_type(dtype: dtypes.DType) -> np.dtype:
    """Of the bits, where .npy files have no name for the type."""
    return (dtype.bit_type or dtype.np).newbyteorder("<")


# --- writing ---------------------------------------------------------------------------------------------------------


def pack(to: BinaryIO, header: dict[str, Any], arrays: Sequence[np.ndarray]) -> None:
    """Writes the archive. ``header`` gets the format's name and version, and the types of ``arrays``."""
    types = [[list(a.shape), dtypes.of(a.dtype).name] for a in arrays]
    whole = {"format": FORMAT, "version": VERSION, **header, "arrays": types}
    text = json.dumps(whole, separators=(",", ":"), allow_nan=False).encode()
    with zipfile.ZipFile(to, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(HEADER, _EPOCH), text)
        for i, a in enumerate(arrays):
            with archive.open(zipfile.ZipInfo(_member(i), _EPOCH), "w", force_zip64=a.nbytes >= 2**31) as member:
                _write_array(member, a)


def _write_array(member: Any, array: np.ndarray) -> None:
    dtype = dtypes.of(array.dtype)
    plain = np.ascontiguousarray(array)
    stored = plain.view(dtype.bit_type) if dtype.bit_type is not None else plain
    stored = np.asarray(stored, _stored_type(dtype))
    np.lib.format.write_array_header_1_0(member, {"descr": stored.dtype.str, "fortran_order": False, "shape": array.shape})
    member.write(stored.reshape(-1).view(np.uint8).data)


def store(path: str | os.PathLike[str], contents: Callable[[BinaryIO], None]) -> None:
    """Writes the file ``path`` whole or not at all; ``contents(file)`` writes into it."""
    with replacing(path) as temporary, open(temporary, "xb") as file:
        contents(file)


# --- reading ---------------------------------------------------------------------------------------------------------

# what zipfile, json and numpy.lib.format raise for damaged files
_DAMAGE = (
    zipfile.BadZipFile, zipfile.LargeZipFile, struct.error, EOFError, KeyError, ValueError, OverflowError, NotImplementedError, RuntimeError,
    TypeError, SyntaxError, MemoryError,
)  # fmt: skip


def unpack(source: Source) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The header and the arrays.

    Raises ProgramFileError for what is no such archive, ArgumentError for what is no file, OSError for one that cannot be read.
    """
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as opened:
            return unpack(opened)
    file = io.BytesIO(source) if isinstance(source, (bytes, bytearray, memoryview)) else source
    if not (hasattr(file, "read") and hasattr(file, "seek")):
        raise located(ArgumentError(f"load: file is a path, bytes or a binary file, not a {type(source).__name__}"))
    try:
        size = file.seek(0, os.SEEK_END)
        with zipfile.ZipFile(file) as archive:
            return _contents(archive, size)
    except HologramError:
        raise
    except (RecursionError, *_DAMAGE) as e:
        raise ProgramFileError(f"load: the file is damaged, or no program: {type(e).__name__}: {e}") from None


def _contents(archive: zipfile.ZipFile, size: int) -> tuple[dict[str, Any], list[np.ndarray]]:
    members = archive.infolist()
    for m in members:
        if m.compress_type != zipfile.ZIP_STORED or m.flag_bits & 1 or m.file_size > size or m.file_size != m.compress_size:
            raise ProgramFileError(f"load: the member {m.filename[:40]!r} is compressed, encrypted, or larger than the file")
    names = [m.filename for m in members]
    if names != [HEADER, *[_member(i) for i in range(len(names) - 1)]]:
        raise ProgramFileError(f"load: the archive holds {names[:4]}, not {HEADER} and its arrays")
    if sum(m.file_size for m in members) > size:
        raise ProgramFileError("load: members of the archive overlap")
    if members[0].file_size > MAX_HEADER_BYTES:
        raise ProgramFileError(f"load: {HEADER} has {members[0].file_size} bytes, more than {MAX_HEADER_BYTES}")
    header = _header(archive.read(members[0]))
    types = header.get("arrays")
    if type(types) is not list or len(types) != len(members) - 1:
        raise ProgramFileError(f"load: {len(members) - 1} arrays in the archive, and others in {HEADER}")
    return header, [_read_array(archive.read(m), t) for m, t in zip(members[1:], types, strict=True)]


def _header(text: bytes) -> dict[str, Any]:
    header = json.loads(text, parse_constant=_no_constant)
    if type(header) is not dict or header.get("format") != FORMAT:
        raise ProgramFileError(f"load: {HEADER} does not say that it is a {FORMAT}")
    version = header.get("version")
    if version not in READABLE or type(version) is not int:
        known = " and ".join(map(str, READABLE))
        raise ProgramFileError(f"load: the file has version {str(version)[:20]} of the format, and this Hologram reads versions {known}")
    return header


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _read_array(data: bytes, declared: Any) -> np.ndarray:
    """The array of a member whose own header says what ``program.json`` does."""
    file = io.BytesIO(data)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ProgramFileError("load: an array is not in version 1.0 of the .npy format")
    shape, fortran, stored = np.lib.format.read_array_header_1_0(file)
    dtype = dtypes.of(declared[1]) if type(declared) is list and len(declared) == 2 and type(declared[1]) is str else None
    if dtype is None or fortran or [list(shape), stored] != [declared[0], _stored_type(dtype)]:
        raise ProgramFileError(f"load: an array is {stored}{list(shape)}, and {str(declared)[:60]} in {HEADER}")
    rest = np.frombuffer(data, stored, offset=file.tell())
    if any(n < 0 for n in shape) or rest.size != np.prod(shape, dtype=object):
        raise ProgramFileError(f"load: an array of shape {list(shape)} has {rest.size} elements")
    native = rest.reshape(shape).astype(stored.newbyteorder("="), copy=False)
    if dtype is dtypes.bool_:
        return native.view(np.uint8) != 0  # a byte may say more than a bool can
    return native.view(dtype.np) if dtype.bit_type is not None else native
