"""Patterns of what matters in a text, in the manner of LLVM's FileCheck.

Each line of a pattern is a directive, which is looked for in the text, line by line from top to bottom:

    CHECK: p          in some line below that of the directive before
    CHECK-NEXT: p     in the very next line
    CHECK-DAG: p      as CHECK, but neighbouring CHECK-DAGs may be met in any order, each in a line of its own
    CHECK-COUNT-3: p  in three lines below, which need not be neighbours
    CHECK-NOT: p      in no line between those that the directives above and below it find

``p`` is literal, but for ``{{regex}}`` and for names: ``[[x:regex]]`` calls what it matches ``x``, and ``[[x]]`` is that again. It may match a part
of a line; blanks in it stand for any number of blanks. Lines of a pattern that are empty or begin with ``#`` are comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_DIRECTIVE = re.compile(r"CHECK(?:-(NEXT|DAG|NOT|COUNT-\d+))?: *(.+)")
_PART = re.compile(r"\{\{(?P<regex>.+?)\}\}|\[\[(?P<name>[a-zA-Z_]\w*)(?::(?P<of>.+?))?\]\]")


class Directive(NamedTuple):
    kind: str
    text: str
    count: int = 1

    def __str__(self) -> str:
        return "-".join(["CHECK", *filter(None, [self.kind]), *([str(self.count)] if self.kind == "COUNT" else [])]) + f": {self.text}"


class Mismatch(AssertionError):
    """The text has not what a directive wants, or has what it forbids."""


def check(text: str, pattern: str) -> None:
    """Raises :class:`Mismatch` where ``text`` does not match, ValueError where ``pattern`` is none."""
    _Search(text).run(parsed(pattern))


def matches(text: str, pattern: str) -> bool:
    try:
        check(text, pattern)
    except Mismatch:
        return False
    return True


def parsed(pattern: str) -> list[Directive]:
    out = []
    for line in map(str.strip, pattern.splitlines()):
        if not line or line.startswith("#"):
            continue
        found = _DIRECTIVE.fullmatch(line)
        if found is None:
            raise ValueError(f"no directive: {line!r}")
        kind, _, count = (found[1] or "").partition("-")
        out.append(Directive(kind, found[2], int(count or 1)))
    if not out:
        raise ValueError("a pattern without directives matches everything")
    return out


class _Search:
    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.at = 0  # the first line below what is found
        self.names: dict[str, str] = {}
        self.forbidden: list[Directive] = []  # up to the next line that is found

    def run(self, directives: list[Directive]) -> None:
        for group in _groups(directives):
            kind = group[0].kind
            if kind == "NOT":
                self.forbidden += group
            elif kind == "DAG":
                self._in_any_order(group)
            else:
                for _ in range(group[0].count):
                    self._one(group[0])
        self._forbid(len(self.lines))

    def _one(self, d: Directive) -> None:
        last = self.at + 1 if d.kind == "NEXT" else len(self.lines)
        found = next((i for i in range(self.at, min(last, len(self.lines))) if self._fits(d, i)), None)
        if found is None:
            raise self._error(d, "is not there")
        self._forbid(found)
        self.at = found + 1

    def _in_any_order(self, group: list[Directive]) -> None:
        first, taken = self.at, set[int]()
        for d in group:
            found = next((i for i in range(first, len(self.lines)) if i not in taken and self._fits(d, i)), None)
            if found is None:
                raise self._error(d, "is not there")
            taken.add(found)
        self._forbid(min(taken))
        self.at = max(taken) + 1

    def _forbid(self, end: int) -> None:
        for d in self.forbidden:
            for i in range(self.at, end):
                if self._regex(d).search(self.lines[i]):
                    raise self._error(d, f"is there: {self.lines[i].strip()!r}")
        self.forbidden = []

    def _fits(self, d: Directive, line: int) -> bool:
        found = self._regex(d).search(self.lines[line])
        self.names |= found.groupdict() if found else {}
        return found is not None

    def _regex(self, d: Directive) -> re.Pattern[str]:
        out, end = "", 0
        for part in _PART.finditer(d.text):
            out += _literal(d.text[end : part.start()])
            if part["regex"]:
                out += f"(?:{part['regex']})"
            elif part["of"]:
                out += f"(?P<{part['name']}>{part['of']})"
            elif part["name"] in self.names:
                out += rf"\b{re.escape(self.names[part['name']])}\b"
            elif f"(?P<{part['name']}>" in out:
                out += f"(?P={part['name']})"
            else:
                raise ValueError(f"{part['name']} is named nowhere above: {d.text!r}")
            end = part.end()
        return re.compile(out + _literal(d.text[end:]))

    def _error(self, d: Directive, what: str) -> Mismatch:
        names = "".join(f"\n  {name} is {value!r}" for name, value in self.names.items())
        below = "\n".join(f"  {line}" for line in self.lines[self.at :])
        return Mismatch(f"{d}\n{what}, from line {self.at + 1} on:\n{below}{names}")


def _groups(directives: list[Directive]) -> Iterator[list[Directive]]:
    """Neighbouring CHECK-DAGs together, all others alone."""
    group: list[Directive] = []
    for d in directives:
        if group and not (d.kind == group[0].kind == "DAG"):
            yield group
            group = []
        group.append(d)
    if group:
        yield group


def _literal(text: str) -> str:
    return re.sub(r"(\\?\s)+", r"\\s+", re.escape(text))
