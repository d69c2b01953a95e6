"""Files of saved programs, taken apart and put together again."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any


def contents(data: bytes) -> tuple[Any, dict[str, bytes]]:
    """``program.json`` and the arrays' members."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(members.pop("program.json")), members


def packed(header: Any, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr("program.json", header if isinstance(header, bytes) else json.dumps(header))
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()
