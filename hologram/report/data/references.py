"""What the records of a report refer to: the user's lines, each once, with its text; and the ops."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Iterable
from typing import Any

from hologram.ir.op import Op

CONTEXT_LINES = 1  # shown around each line


class References:
    """Numbers for places ``(file, line)``; the definitions of the ``ops`` that were met, by name."""

    def __init__(self) -> None:
        self.ops: dict[str, Op] = {}
        self._files: dict[str, int] = {}
        self._places: dict[tuple[int, int], int] = {}

    def place(self, line: Any) -> int | None:
        """The number of a place; None for none."""
        if line is None:
            return None
        file, number = line
        key = (self._files.setdefault(file, len(self._files)), number)
        return self._places.setdefault(key, len(self._places))

    def places(self, lines: Iterable[Any]) -> list[int]:
        """The numbers of places, the most frequent first."""
        counted = Counter(n for n in map(self.place, lines) if n is not None)
        return [n for n, _ in counted.most_common()]

    def data(self) -> dict[str, Any]:
        """``places`` as ``[file, line]``, and the text of each file's lines that are used."""
        wanted: dict[int, set[int]] = {}
        for file, line in self._places:
            wanted.setdefault(file, set()).update(range(line - CONTEXT_LINES, line + CONTEXT_LINES + 1))
        files = []
        for name, i in self._files.items():
            texts = {n: linecache.getline(name, n).rstrip() for n in sorted(wanted.get(i, ()))}
            files.append({"name": name, "lines": {str(n): t for n, t in texts.items() if t}})
        return {"files": files, "places": [list(p) for p in self._places]}
