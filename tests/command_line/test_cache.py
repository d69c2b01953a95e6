"""``hologram cache``: list, size, verify, clear."""

from __future__ import annotations

import ast
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hologram.backends import object_cache
from hologram.command_line.main import main
from hologram.settings import override

DAY = 86_400


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Three entries: one of today, two that were last used nine and ten days ago."""
    with override(cache=True, cache_dir=tmp_path / "cache", cache_limit=2**20):
        for days, kind in ((10, "program"), (9, "program"), (0, "rates")):
            key = object_cache.key(str(days))
            object_cache.store(key, bytes(100), {}, kind)
            used = time.time() - days * DAY
            os.utime(tmp_path / "cache" / f"{key}.hgo", (used, used))
        yield tmp_path / "cache"


@pytest.mark.parametrize("days", ["x", "-1", "nan", "inf"])
def test_what_is_no_number_of_days(days: str, capsys: Any) -> None:
    with pytest.raises(SystemExit):
        main(["cache", "clear", "--older-than", days])
    assert f"{days} is no number of days" in capsys.readouterr().err


def run(capsys: Any, *arguments: str) -> tuple[int, str, dict[str, Any]]:
    """The exit status, the text, the data."""
    first = main(["cache", *arguments])
    text = capsys.readouterr().out
    assert main(["cache", *arguments, "--json"]) == first
    return first, text, json.loads(capsys.readouterr().out)


def test_list(folder: Path, capsys: Any) -> None:
    status, text, data = run(capsys, "list")
    keys = [object_cache.key(days) for days in ("0", "9", "10")]
    assert status == 0 and [e["key"] for e in data["entries"]] == keys and [e["kind"] for e in data["entries"]] == ["rates", "program", "program"]
    assert text.splitlines()[0] == str(folder) and all(key[:12] in text for key in keys)


def test_size(folder: Path, capsys: Any) -> None:
    status, text, data = run(capsys, "size")
    total = sum(p.stat().st_size for p in folder.iterdir())
    assert (status, data["bytes"], data["entries"], data["limit"]) == (0, total, 3, 2**20)
    assert data["kinds"]["program"]["entries"] == 2 and f"{total:,}" in text and "% of the limit" in text


def test_verify(folder: Path, capsys: Any) -> None:
    status, text, data = run(capsys, "verify")
    assert (status, data["good"], data["damaged"]) == (0, 3, 0) and "3 good, 0 unused, 0 damaged" in text
    path = folder / f"{object_cache.key('9')}.hgo"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    status, text, data = run(capsys, "verify")
    assert (status, data["good"], data["damaged"]) == (1, 2, 1) and "its checksum does not fit" in text and path.exists()


def test_clear(folder: Path, capsys: Any) -> None:
    (folder / "notes.txt").write_text("mine")
    status, text, data = run(capsys, "clear", "--older-than", "9.5", "--dry-run")
    assert (status, data["files"], data["removed"]) == (0, 1, False) and "would be removed" in text and len(list(folder.iterdir())) == 4
    assert main(["cache", "clear", "--older-than", "8"]) == 0
    assert "2 files of" in capsys.readouterr().out and len(list(folder.iterdir())) == 2
    assert main(["cache", "clear"]) == 0
    assert [p.name for p in folder.iterdir()] == ["notes.txt"]


def test_what_cannot_be_removed_is_said(folder: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hologram.backends.cache_inventory.remove", lambda path: False)
    status, text, data = run(capsys, "clear")
    assert (status, data["files"], len(data["kept"])) == (1, 0, 3) and "3 files cannot be removed" in text


def test_a_cache_that_is_not_there(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with override(cache_dir=tmp_path / "nowhere"):
        for action in ("list", "size", "verify", "clear"):
            assert run(capsys, action)[0] == 0
    (tmp_path / "file").write_text("")
    with override(cache_dir=tmp_path / "file"):
        assert main(["cache", "list"]) == 1
    monkeypatch.setattr(object_cache, "folder", lambda: None)
    assert main(["cache", "list"]) == 1 and "HOLOGRAM_CACHE_DIR" in capsys.readouterr().err


def test_every_entry_that_the_library_stores_has_a_kind() -> None:
    root = Path(object_cache.__file__).parents[1]
    calls = [
        (path, node)
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("disk.store", "cache.store", "object_cache.store")
    ]
    assert len(calls) > 5 and not [(str(p), n.lineno) for p, n in calls if all(k.arg != "kind" for k in n.keywords)]
