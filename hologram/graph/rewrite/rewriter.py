"""The base class of rewrite rules, and the builder of nodes that applies them at one node."""

from __future__ import annotations

import functools
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from hologram.dtypes import DType
from hologram.errors import RewriteError
from hologram.ir.node import Builder, Node
from hologram.ir.op import Op
from hologram.support.precision import GUARANTEES

MAX_NESTED_REWRITES = 10_000  # rewrites nested in one another before the rules count as growing without end
MAX_REWRITES_PER_NODE = 64  # of a graph, and MAX_NESTED_REWRITES more, before they do so at different nodes; rules in use take two or three


class Rule:
    """A named rewrite. ``apply(node, b)`` gives an equal node built with ``b``, or None where the rule does not say anything."""

    __slots__ = ("name", "algebra", "guarantee")

    def __init__(self, name: str, algebra: str, guarantee: str) -> None:
        if guarantee not in GUARANTEES:
            raise RewriteError(f"rule {name}: guarantee {guarantee!r} is none of {', '.join(GUARANTEES)}")
        self.name, self.algebra, self.guarantee = name, algebra, guarantee

    def __repr__(self) -> str:
        return f"<{self.guarantee} rule {self.name}: {self.algebra}>"

    @property
    def heads(self) -> tuple[str, ...]:
        """The ops at whose nodes the rule is tried, by name; ``@kind`` stands for all ops of that kind, ``@word`` for those with that word in their
        algebra."""
        raise NotImplementedError

    @property
    def operands(self) -> frozenset[str] | None:
        """Names, as in :attr:`heads`, of which one stands for an input's op wherever the rule fires; None where inputs may be of any op."""
        return None

    @property
    def is_shallow(self) -> bool:
        """Whether it looks no further than at a node's attributes, and at what its inputs and theirs are: ops of its inputs, types, ranks, extents of
        0 and 1, bits of constants, and which are one node."""
        return False

    def relevant(self, inputs: Sequence[Op], kinds: str) -> bool:
        """Whether the rule could fire at a node of one of its heads whose inputs are of the given ops and kinds of types. Asked once for each
        combination."""
        raise NotImplementedError

    def apply(self, node: Node, b: Rewriter) -> Node | None:
        raise NotImplementedError


Watch = Callable[[Rule, Node, Node, Any], None]  # (rule, node, what it becomes, the user's line)


class Rewriter(Builder):
    """Interns the nodes of one run, applies rules at one node, and gives rules their shorthand.

    ``users`` counts each node's distinct users, outputs included (None while inputs go first). ``rank`` orders nodes by structure. ``fuel`` is how
    many rules may fire. ``watch`` is shown each firing, with ``line``, the user's, of the node that is rewritten.
    """

    __slots__ = ("candidates", "fired", "fuel", "users", "rank", "lines", "watch", "line")

    def __init__(
        self,
        candidates: Callable[[Node], tuple[Rule, ...]],
        fired: Counter[str],
        fuel: int = MAX_NESTED_REWRITES,
        watch: Watch | None = None,
    ) -> None:
        super().__init__()
        self.candidates, self.fired, self.fuel, self.watch = candidates, fired, fuel, watch
        self.line: Any = None
        self.users: dict[Node, int] | None = None
        self.rank: dict[Node, int] = {}
        self.lines: dict[Node, Any] = {}

    def argument(self, dtype: DType, *shape: Any) -> Node:
        """A fresh graph input, for examples."""
        index = sum(op.name == "input" for op, _, _ in self.table)
        return self.make("input", attrs=(index, shape, dtype.name, None))

    def has_one_use(self, node: Node) -> bool:
        """Whether ``node`` has one user."""
        assert self.users is not None, "users are counted only where users go first"
        return self.users[node] == 1

    def intern(self, node: Node, inputs: tuple[Node, ...]) -> Node:
        """``node`` on ``inputs``, interned here; the node itself where nothing changed and it is the first of its kind."""
        key = (node.op, inputs, node.attrs)
        known = self.table.get(key)
        if known is None:
            if inputs == node.inputs:
                known = self.table[key] = node
            else:
                known = self(node.op, inputs, node.attrs)
        return known

    def swapped(self, node: Node) -> Node | None:
        """The binary ``node`` with its operands exchanged, where that has its normal form here already."""
        other = self.table.get((node.op, node.inputs[::-1], node.attrs))
        return other if other in self.rank else None

    def step(self, node: Node) -> tuple[Node, str] | None:
        """The result of the first rule that fires at ``node``, and its name."""
        for r in self.candidates(node):
            out = r.apply(node, self)
            if out is None:
                continue
            out = self.fit(out, node.shape)
            if out.shape != node.shape or out.dtype is not node.dtype:
                raise RewriteError(f"rule {r.name} ({r.algebra}) made {node.dtype}{list(node.shape)} into {out.dtype}{list(out.shape)}")
            if out is not node:
                self.fired[r.name] += 1
                self.fuel -= 1
                if self.fuel < 0:
                    raise RewriteError(f"rules run without end: {', '.join(name for name, _ in self.fired.most_common(8))}")
                if self.watch is not None:
                    self.watch(r, node, out, self.line)
                return out, r.name
        return None

    def rank_node(self, node: Node) -> None:
        """Ranks ``node``, whose inputs are ranked: inputs by index, then everything else by a hash of its structure, constants last.

        Built from integers and CRCs alone, so that no process's hash seed plays a part. A leaf's storage has no stable name: leaves of
        one shape and type rank alike.
        """
        name, attrs, rank = node.op.name, node.attrs, self.rank
        if name == "input":
            rank[node] = attrs[0]
        elif name == "const":
            rank[node] = (1 << 65) + _checksum(repr(attrs))
        else:
            text = repr(attrs[1:] if name == "leaf" else attrs) if attrs else ""
            structure = hash((_checksum(name), _checksum(text), *[rank[i] for i in node.inputs]))
            rank[node] = (1 << 64) + structure  # a hash lies within 63 bits and a sign


@functools.lru_cache(maxsize=4096)
def _checksum(text: str) -> int:
    return zlib.crc32(text.encode())
