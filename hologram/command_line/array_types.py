"""Arguments of a call as text: ``f32[32,128], {"w": f32[128,10], "b": f32[10]}, axis=1``.

An array is an element type and its extents, ``f32[32,128]``; ``f32[]`` or ``f32`` has no axes. Element types have NumPy's names (``float32``) or
short ones (``f32``, ``i64``, ``u8``, ``c64``, ``bf16``, ``bool``). Arrays stand in lists ``[…]``, tuples ``(…)`` and dicts ``{"key": …}``. Numbers,
strings, ``True``, ``False`` and ``None`` of Python stand for themselves. ``name=…`` is a keyword argument.
"""

from __future__ import annotations

import ast
import re
from typing import Any, NamedTuple

from hologram.command_line.result import CommandError

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<string>'[^']*'|"[^"]*")
      | (?P<mark>[\[\](){},:=])
    )""",
    re.VERBOSE,
)
_SHORT = re.compile(r"(bf|f|i|u|c)(\d+)(_\w+)?")
_KINDS = {"bf": "bfloat", "f": "float", "i": "int", "u": "uint", "c": "complex"}
_CONSTANTS = {"True": True, "False": False, "None": None}
_CLOSING = {"[": "]", "(": ")", "{": "}"}


class Arguments(NamedTuple):
    """Positional and keyword arguments, with a :class:`~hologram.ShapeDtypeStruct` in the place of each array."""

    positional: tuple[Any, ...]
    keywords: dict[str, Any]


def arguments_of(text: str) -> Arguments:
    """The arguments that ``text`` describes. Raises CommandError for what it is not, with the place."""
    return _Reader(text).arguments()


class _Reader:
    """Reads from left to right, with one token seen ahead."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.start, self.kind, self.token = 0, "", ""
        self._next()

    def _next(self) -> str:
        """The token that was ahead."""
        before = self.token
        self.start = len(self.text) - len(self.text[self.at :].lstrip())
        found = _TOKEN.match(self.text, self.at)
        if found is None:
            self.kind, self.token = ("end", "") if not self.text[self.at :].strip() else ("", self.text[self.start])
        else:
            self.kind, self.at = str(found.lastgroup), found.end()
            self.token = found[self.kind]
        return before

    def arguments(self) -> Arguments:
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        while self.kind != "end":
            is_name = self.kind == "name"
            value = self._value(of_call=True)
            if is_name and self.token == "=":
                self._next()
                keywords[value] = self._value()
            elif keywords:
                raise self._error("a positional argument after a keyword argument")
            else:
                positional.append(value)
            if self.kind != "end":
                self._take(",")
        return Arguments(tuple(positional), keywords)

    def _value(self, of_call: bool = False) -> Any:
        """A value; with ``of_call`` also the name of a keyword argument, with the sign ahead."""
        if self.kind in ("number", "string"):
            return ast.literal_eval(self._next())
        if self.kind == "name":
            start, name = self.start, self._next()
            if of_call and self.token == "=":
                return name
            return _CONSTANTS[name] if name in _CONSTANTS else self._array(name, start)
        if self.token == "{":
            return dict(self._items("{"))
        if self.token in ("[", "("):
            opened = self.token
            values = self._items(opened)
            return values if opened == "[" else tuple(values)
        raise self._error("expected an array such as f32[32,128], a number, or a list, tuple or dict of these")

    def _items(self, opened: str) -> list[Any]:
        self._take(opened)
        found = []
        while self.token != _CLOSING[opened]:
            found.append(self._entry() if opened == "{" else self._value())
            if self.token not in (",", _CLOSING[opened]):
                raise self._error(f"expected ',' or {_CLOSING[opened]!r}")
            if self.token == ",":
                self._next()
        self._next()
        return found

    def _entry(self) -> tuple[Any, Any]:
        key = self._next() if self.kind == "name" else self._value()
        self._take(":")
        return key, self._value()

    def _array(self, name: str, at: int) -> Any:
        from hologram import dtypes
        from hologram.trace.call.abstract_eval import ShapeDtypeStruct

        extents: list[int] = []
        if self.token == "[":
            start = self.start
            extents = self._items("[")
            if not all(type(n) is int and n >= 0 for n in extents):
                raise self._error("extents are integers from 0 on", start)
        element_type = _element_type(name)
        if element_type not in [d.name for d in dtypes.ALL]:
            raise self._error(f"{name!r} is no element type; f32, f64, bf16, i32, u8, bool and c64 are some", at)
        return ShapeDtypeStruct(tuple(extents), element_type)

    def _take(self, mark: str) -> None:
        if self.token != mark or self.kind != "mark":
            raise self._error(f"expected {mark!r}")
        self._next()

    def _error(self, what: str, start: int | None = None) -> CommandError:
        at = self.start if start is None else start
        return CommandError(f"--shapes: {what}\n  {self.text}\n  {' ' * at}^")


def _element_type(name: str) -> str:
    """NumPy's name of an element type."""
    short = _SHORT.fullmatch(name)
    return _KINDS[short[1]] + short[2] + (short[3] or "") if short else name
