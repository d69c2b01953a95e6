"""Fixtures of the tests of tracing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hologram.settings import override
from hologram.trace import compiling, lazy
from hologram.trace.lazy_programs import known


@pytest.fixture
def compiled_at_once() -> Iterator[None]:
    """Nothing runs op by op, and what earlier processes noted plays no part."""
    with override(op_by_op=False, cache=False):
        yield


@pytest.fixture
def handed_over_at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Native code gets programs when they have run once."""
    monkeypatch.setattr(known, "RUNS", 1)
    lazy.clear()
    yield
    lazy.clear()


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A list that grows with each compilation; no program of lazily recorded ops is compiled before."""
    made: list[Any] = []
    compile_graph = compiling.compile_graph

    def counted(*args: Any, **options: Any) -> Any:
        made.append(args[0])
        return compile_graph(*args, **options)

    monkeypatch.setattr(compiling, "compile_graph", counted)
    lazy.clear()
    return made


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The nodes of each walk of Python's."""
    seen: list[int] = []
    python = lazy._Walk.__init__

    def counted(self: Any, roots: list[Any]) -> None:
        python(self, roots)
        seen.append(len(self.order))

    monkeypatch.setattr(lazy._Walk, "__init__", counted)
    return seen
