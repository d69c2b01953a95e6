"""Which tests, and which cases of tests with parameters, run without ``--all``."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import pytest

Choice: TypeAlias = tuple[Any, ...]


def covering(cases: Sequence[tuple[str, frozenset[Choice]]], times: int = 1, seed: int = 0) -> set[str]:
    """Names of few ``(name, choices)`` among which each choice stands at least so many times, or as often as there are cases of it. Other seeds give
    other cases."""
    rest = dict(sorted(cases, key=lambda case: zlib.crc32(case[0].encode(), seed)))
    missing: dict[Choice, int] = defaultdict(int)
    for choices in rest.values():
        for c in choices:
            missing[c] = min(missing[c] + 1, times)
    kept = set()
    while any(missing.values()):
        name = max(rest, key=lambda name: sum(missing[c] > 0 for c in rest[name]))
        kept.add(name)
        for c in rest.pop(name):
            missing[c] = max(missing[c] - 1, 0)
    return kept


def one_in(parts: int, names: Iterable[str], seed: int = 0) -> set[str]:
    """One of so many ``names``, in an order that follows from these alone. Seeds 0 .. ``parts`` - 1 give each name once."""
    return set(sorted(names, key=lambda name: zlib.crc32(name.encode()))[seed % parts :: parts])


def choices(item: pytest.Function) -> frozenset[Choice]:
    """What each ``parametrize`` of a test, and each fixture with parameters, gives it in this case."""
    given = {name: id(value) for name, value in item.callspec.params.items()}
    found = set()
    for mark in item.iter_markers("parametrize"):
        names = mark.args[0].replace(",", " ").split() if isinstance(mark.args[0], str) else mark.args[0]
        found.add(tuple((name, given.pop(name)) for name in names))
    return frozenset([*found, *given.items()])


def _of_module(item: pytest.Item, mark: pytest.Mark) -> bool:
    module = item.getparent(pytest.Module)
    return module is not None and mark in module.own_markers


def not_sampled(items: Iterable[pytest.Item], seed: int) -> set[pytest.Item]:
    """What is left out by the seed and the names: cases of tests marked ``crossed`` or ``costly``, tests of modules marked ``costly``."""
    groups: dict[tuple[str, str, Any], list[pytest.Function]] = defaultdict(list)
    for item in items:
        for mark in (item.get_closest_marker("crossed"), item.get_closest_marker("costly")):
            if isinstance(item, pytest.Function) and mark is not None:
                if _of_module(item, mark):
                    groups[item.nodeid.partition("::")[0], mark.name, mark.args].append(item)
                elif "[" in item.nodeid:
                    groups[item.nodeid.partition("[")[0], mark.name, mark.args].append(item)
    out: set[pytest.Item] = set()
    for (_, mark, args), cases in groups.items():
        if mark == "crossed":
            kept = covering([(item.name, choices(item)) for item in cases], *args, seed=seed)
        else:
            kept = one_in(*args, [item.name for item in cases], seed)
        out.update(item for item in cases if item.name not in kept)
    return out
