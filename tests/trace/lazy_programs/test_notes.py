"""Notes of structures on the disk: what was kept comes back for numbers of the same types, and nothing else is taken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram import dtypes
from hologram.errors import CacheWarning
from hologram.ir.op import TABLE
from hologram.settings import override
from hologram.trace import compiling, lazy
from hologram.trace.lazy_programs.notes import note, noted
from tests.support.stored.cache_entries import WRONG, changed, rewritten

KEY = (2, None, ("verify", True), TABLE["add"], (dtypes.float32, 1), 0.5, b"\0")
NUMBERS = (7, ("int32", b"\1\0\0\0"), -3)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    with override(cache=True, cache_dir=tmp_path / "cache", op_by_op=False):
        yield tmp_path / "cache"


def test_numbers_come_back() -> None:
    assert noted(KEY, NUMBERS) is None
    note(KEY, NUMBERS)
    assert noted(KEY, (1, ("int32", b"\0\0\0\0"), 2)) == NUMBERS
    assert noted((*KEY, 1), NUMBERS) is None and noted((1, *KEY[1:]), NUMBERS) is None
    with override(cache=False):
        assert noted(KEY, NUMBERS) is None


def test_what_is_an_object_of_this_process_has_no_note(folder: Path) -> None:
    for key in ((lambda: 0,), (1, (object(), 2)), (np.float32(1),)):
        note(key, NUMBERS)
        assert noted(key, NUMBERS) is None
    assert not list(folder.glob("*"))


@pytest.mark.parametrize("like", [(7,), (*NUMBERS, 1), (7, 7, -3), (7, ("int64", b"\1\0\0\0"), -3), (7, ("int32", b"\1"), -3), ((7,), *NUMBERS[1:])])
def test_numbers_of_other_types_are_refused(like: Any) -> None:
    note(KEY, NUMBERS)
    with pytest.warns(CacheWarning, match="metadata does not describe"):
        assert noted(KEY, like) is None


def test_a_note_of_another_form_is_refused(folder: Path) -> None:
    places: list[tuple[Any, ...]] = [("meta", "numbers"), *[("meta", "numbers", *p) for p in ((0,), (1,), (1, 0), (1, 1))]]
    for place in places:
        for new in WRONG:
            note(KEY, NUMBERS)
            (path,) = folder.glob("*.hgo")
            rewritten(path, path.stem, lambda d, place=place, new=new: changed(d, place, new))
            if place == ("meta", "numbers", 0) and type(new) is int:
                assert noted(KEY, NUMBERS) == (new, *NUMBERS[1:])
                continue
            with pytest.warns(CacheWarning, match="metadata does not describe"):
                assert noted(KEY, NUMBERS) is None, (place, json.dumps(new, default=str))


def test_operands_of_an_earlier_process_are_operands_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process: what is known of structures is forgotten, but for the disk."""
    made: list[Any] = []
    compile_graph = compiling.compile_graph
    monkeypatch.setattr(compiling, "compile_graph", lambda *args, **options: made.append(args[0]) or compile_graph(*args, **options))
    x = hg.tensor(np.arange(40, dtype=np.float32))

    def run(*sizes: int) -> int:
        made.clear()
        for k in sizes:
            np.testing.assert_array_equal(np.asarray(hnp.concatenate([x[k:], hnp.zeros(k) + 3]) * 2), np.r_[np.arange(k, 40), np.full(k, 3)] * 2)
        return len(made)

    lazy.clear()
    assert run(4, 5, 6) == 2
    lazy.clear()
    assert run(9, 30, 4, 11) == 1
    lazy.clear()
    assert run(1, 8, 9) == 2  # sizes of which no program is for all
