"""Traversals: reachable values, post order, users. Iterative, so that a long chain is no deep recursion; linear in the number of edges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from hologram.ir.node import Node

T = TypeVar("T")


class CycleError(ValueError):
    """A post order was asked of values that need themselves."""


def reachable(starts: Iterable[T], successors: Callable[[T], Iterable[T]]) -> Iterator[T]:
    """Everything that ``starts`` lead to, themselves included, each once: depth first, the last successor first.

    Lazy: successors of a value are asked for after it was given, so a caller may stop early.
    """
    waiting = list(starts)
    seen: set[T] = set()
    while waiting:
        x = waiting.pop()
        if x not in seen:
            seen.add(x)
            yield x
            waiting.extend(successors(x))


def post_order(starts: Iterable[T], inputs: Callable[[T], Iterable[T]]) -> list[T]:
    """Everything that ``starts`` need, each after its inputs, which are taken in their order. Raises CycleError where there is no such order."""
    done: dict[T, None] = {}
    open_: set[T] = set()
    for start in starts:
        stack = [] if start in done else [(start, iter(inputs(start)))]
        while stack:
            x, rest = stack[-1]
            open_.add(x)
            for y in rest:
                if y in open_:
                    raise CycleError(y)
                if y not in done:
                    stack.append((y, iter(inputs(y))))
                    break
            else:
                stack.pop()
                open_.discard(x)
                done[x] = None
    return list(done)


def users_of(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """The nodes that read a node, each once, in the order of ``nodes``; nodes that nobody reads are not there."""
    users: dict[Node, list[Node]] = {}
    for n in nodes:
        for x in dict.fromkeys(n.inputs):
            users.setdefault(x, []).append(n)
    return users


def needs_among(nodes: Iterable[Node], marked: Sequence[Node]) -> dict[Node, int]:
    """Which of ``marked`` each of ``nodes``, all that there are in topological order, is made of or is itself: bit i is set for ``marked[i]``."""
    bit = {n: 1 << i for i, n in enumerate(marked)}
    needs: dict[Node, int] = {}
    for n in nodes:
        bits = bit.get(n, 0)
        for x in n.inputs:
            bits |= needs[x]
        needs[n] = bits
    return needs


def topological(outputs: Iterable[Node], stop: Callable[[Node], bool] | None = None) -> list[Node]:
    """Every node that ``outputs`` need, inputs first, in a fixed order. Iterative: depth costs nothing."""
    order: list[Node] = []
    done: set[Node] = set()
    for root in outputs:
        stack = [root]
        while stack:
            node = stack[-1]
            if node not in done:
                missing = [x for x in node.inputs if x not in done] if stop is None or not stop(node) else ()
                if missing:
                    stack += missing[::-1]
                    continue
                done.add(node)
                order.append(node)
            stack.pop()
    return order
