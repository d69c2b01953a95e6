"""Attributes of nodes as values of JSON: the one codec, by the attributes' names.

A :class:`Kind` says what values an attribute takes. ``encode`` raises ExportError for a value that a file cannot hold, ``decode`` ProgramFileError
for data that no such value has: what a type rule is asked about is of the right Python types, whatever a file says.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from hologram import dtypes
from hologram.errors import ExportError, ProgramFileError
from hologram.ir import symbolic_json
from hologram.ir.graph import Body, Graph
from hologram.ir.symbolic import Expr, Int, bounds
from hologram.ir.symbolic_json import MAX_INTEGER
from hologram.primitives.host.factorizations import SVD_MODES

LONGEST = 2**20  # elements of a list in an attribute
LONGEST_TEXT = 1000  # characters


class Writer(Protocol):
    """What ``encode`` needs to know: how graphs are written, and where arrays and derivatives go."""

    def graph(self, graph: Graph) -> Any: ...
    def array(self, storage: Any) -> int: ...
    def rule(self, rule: Any) -> int | None: ...


class Reader(Protocol):
    """What ``decode`` needs to know."""

    def body(self, data: Any) -> Graph: ...
    def array(self, index: int) -> Any: ...
    def rule(self, data: Any) -> Any: ...
    def symbol(self, name: str) -> Expr: ...
    def assume(self, slack: Int) -> None: ...


@dataclass(frozen=True, slots=True)
class Kind:
    """``encode(value, writer)`` gives data of JSON, ``decode(data, reader)`` the value again; ``what`` names such values in messages."""

    what: str
    encode: Callable[[Any, Any], Any]
    decode: Callable[[Any, Any], Any]


def refuse(what: str, data: Any) -> ProgramFileError:
    """The error for data that is not ``what``."""
    text = repr(data)
    return ProgramFileError(f"{text if len(text) < 80 else text[:77] + '...'} is not {what}")


def _plain(value: Any, _: Any) -> Any:
    return value


def _exactly(kind: type, what: str) -> Kind:
    def decode(data: Any, _: Reader) -> Any:
        if type(data) is not kind:
            raise refuse(what, data)
        return data

    return Kind(what, lambda value, _: kind(value), decode)


def _integer(low: int) -> Kind:
    what = f"an integer from {low} up" if low > -MAX_INTEGER else "an integer"

    def decode(data: Any, _: Reader) -> int:
        if type(data) is not int or not low <= data <= MAX_INTEGER:
            raise refuse(what, data)
        return data

    return Kind(what, lambda value, _: operator.index(value), decode)


def _word(*words: str) -> Kind:
    what = f"one of {', '.join(words)}"

    def decode(data: Any, _: Reader) -> str:
        if type(data) is not str or data not in words:
            raise refuse(what, data)
        return data

    return Kind(what, _plain, decode)


def _many(kind: Kind) -> Kind:
    what = f"a list, each element {kind.what}"

    def decode(data: Any, reader: Reader) -> tuple[Any, ...]:
        if type(data) is not list or len(data) > LONGEST:
            raise refuse(what, data)
        return tuple([kind.decode(x, reader) for x in data])

    return Kind(what, lambda value, writer: [kind.encode(x, writer) for x in value], decode)


# --- integers that may be symbols ------------------------------------------------------------------------------------


def _decode_int(data: Any, reader: Reader) -> Int:
    def check_divisor(b: Int) -> None:
        low, high = bounds(b)
        if high is not None and high < 1:
            raise ProgramFileError(f"a division by {b}, which is not positive")
        if low is None or low < 1:
            reader.assume(b - 1)

    try:
        return symbolic_json.decode(data, reader.symbol, check_divisor)
    except symbolic_json.Malformed as e:
        raise refuse(e.what, e.data) from None


# --- what is more than numbers ---------------------------------------------------------------------------------------


def _decode_dtype(data: Any, _: Any) -> str:
    if type(data) is not str or data not in _NAMES:
        raise refuse("the name of an element type", data)
    return data


def _decode_bits(data: Any, _: Any) -> bytes:
    if type(data) is not str or len(data) > 32:
        raise refuse("bits in hexadecimal digits", data)
    try:
        return bytes.fromhex(data)
    except ValueError:
        raise refuse("bits in hexadecimal digits", data) from None


def _refuse_call(value: Any, _: Any) -> Any:
    raise ExportError(f"it calls {value}, a Python function, which a file cannot hold")


def _no_call(data: Any, _: Any) -> Any:
    raise ProgramFileError("a program in a file calls no Python functions")


def _decode_text(data: Any, _: Any) -> str:
    if type(data) is not str or len(data) > LONGEST_TEXT:
        raise refuse("a short text", data)
    return data


def _encode_mesh(value: Any, _: Any) -> Any:
    return [list(part) for part in value]


def _decode_mesh(data: Any, reader: Reader) -> tuple[Any, ...]:
    """The names of axes, their extents, and the ranks where they are not in order."""
    if type(data) is not list or len(data) != 3:
        raise refuse("a mesh: names, extents, ranks", data)
    names, shape, ranks = (_many(kind).decode(part, reader) for kind, part in zip((TEXT, POSITIVE, COUNT), data, strict=True))
    if not names or len(set(names)) != len(shape) or len(names) != len(shape) or math.prod(shape) > LONGEST:
        raise refuse("a mesh: a name for each extent", data)
    if ranks and (len(set(ranks)) != len(ranks) or len(ranks) != math.prod(shape)):
        raise refuse("a mesh: as many ranks as it has places", data)
    return names, shape, ranks


_NAMES = frozenset(d.name for d in dtypes.ALL)
FLAG = _exactly(bool, "true or false")
COUNT = _integer(0)
POSITIVE = _integer(1)
STEP = _integer(-MAX_INTEGER)
INTEGER = Kind("an integer or a polynomial of symbols", lambda value, _: symbolic_json.encode(value), _decode_int)
INTEGERS = _many(INTEGER)
DTYPE = Kind("the name of an element type", _plain, _decode_dtype)
BITS = Kind("bits", lambda value, _: value.hex(), _decode_bits)
ARRAY = Kind("the number of an array", lambda value, writer: writer.array(value), lambda data, reader: reader.array(COUNT.decode(data, reader)))
BODY = Kind("a graph", lambda value, writer: writer.graph(value.graph), lambda data, reader: Body(reader.body(data)))
RULE = Kind("the number of a derivative, or null", lambda value, writer: writer.rule(value), lambda data, reader: reader.rule(data))
CALL = Kind("a call", _refuse_call, _no_call)
TEXT = Kind("a short text", _plain, _decode_text)
MESH = Kind("a mesh", _encode_mesh, _decode_mesh)
PAIR = _many(COUNT)

KINDS: dict[str, Kind] = {
    "axes": _many(COUNT),
    "axis": COUNT,
    "batch": COUNT,
    "bits": BITS,
    "body": BODY,
    "branches": _many(BODY),
    "call": CALL,
    "carries": COUNT,
    "cond": BODY,
    "consts": COUNT,
    "descending": FLAG,
    "dilations": _many(POSITIVE),
    "dims": _many(COUNT),
    "dtype": DTYPE,
    "full": FLAG,
    "high": INTEGERS,
    "index": COUNT,
    "inverse": FLAG,
    "length": INTEGER,
    "low": INTEGERS,
    "lower": FLAG,
    "mesh": MESH,
    "mode": _word(*SVD_MODES),
    "n": INTEGER,
    "names": _many(TEXT),
    "norm": _word("backward", "ortho", "forward"),
    "order": COUNT,
    "pairs": _many(PAIR),
    "perm": _many(COUNT),
    "place": TEXT,
    "reverse": FLAG,
    "rule": RULE,
    "shape": INTEGERS,
    "size": POSITIVE,
    "sizes": INTEGERS,
    "source": COUNT,
    "start": INTEGERS,
    "step": _many(STEP),
    "steps": _many(POSITIVE),
    "stop": INTEGERS,
    "storage": ARRAY,
    "transposed": FLAG,
    "unit": FLAG,
    "vectors": FLAG,
}
