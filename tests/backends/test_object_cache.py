"""The disk cache: what was stored comes back, what cannot be trusted is refused with the reason, and trouble never stops a program."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.backends import object_cache as cache
from hologram.errors import CacheWarning
from hologram.settings import override
from tests.support.stored.cache_entries import assert_refused, changes, rewritten

posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes are those of POSIX")
CODE = bytes(range(256)) * 40


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache of its own for each test, with nothing said and nothing known yet."""
    monkeypatch.setattr(cache, "_said", set())
    monkeypatch.setattr(cache, "_verdicts", {})
    monkeypatch.setattr(cache, "_bytes_known", {})
    with override(cache=True, cache_dir=tmp_path / "cache", cache_limit=2**20):
        yield tmp_path / "cache"


def _only_entry(folder: Path) -> Path:
    (path,) = folder.glob("*.hgo")
    return path


def _is_recompiled(key: str, reason: str) -> None:
    """The entry is refused once, saying why; it is gone; and a new one takes its place."""
    with pytest.warns(CacheWarning, match=reason):
        assert cache.load(key) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cache.load(key) is None
        cache.store(key, CODE)
        assert cache.load(key) == CODE


def test_code_and_metadata_come_back() -> None:
    key = cache.key("graph", b"\0settings")
    assert cache.load(key) is None and cache.load_entry(key) is None
    cache.store(key, CODE, {"kernels": ["sum", "softmax"], "threads": 2})
    assert cache.load(key) == CODE
    assert cache.load_entry(key) == (CODE, {"kernels": ["sum", "softmax"], "threads": 2})
    cache.store(key, b"")
    assert cache.load_entry(key) == (b"", {})


def test_keys_depend_on_parts_boundaries_and_target() -> None:
    keys = [cache.key(), cache.key("ab", "c"), cache.key("a", "bc"), cache.key("abc"), cache.key("abc", cache.python_abi())]
    with override(target="x86-64-v2,-popcnt"):
        keys.append(cache.key("abc"))
    assert len(set(keys)) == len(keys)
    assert cache.key("abc") == cache.key(b"abc")


def test_keys_are_the_same_in_every_process() -> None:
    code = "from hologram.backends import object_cache as cache; print(cache.key('a', b'b'))"
    seeds = [dict(os.environ, PYTHONHASHSEED=s) for s in ("1", "2")]
    printed = [subprocess.run([sys.executable, "-c", code], env=e, capture_output=True, text=True, check=True).stdout.strip() for e in seeds]
    assert printed == [cache.key("a", "b")] * 2


def test_a_second_process_finds_the_entry(folder: Path) -> None:
    cache.store(cache.key("a"), CODE, {"n": 1})
    code = "from hologram.backends import object_cache as cache; data, meta = cache.load_entry(cache.key('a')); print(len(data), meta)"
    environment = dict(os.environ, HOLOGRAM_CACHE_DIR=str(folder), HOLOGRAM_CACHE="1")
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == (f"{len(CODE)} {{'n': 1}}", "")


def test_a_name_that_is_no_key_is_an_error() -> None:
    with pytest.raises(ValueError, match="not a key"):
        cache.load("../elsewhere")


@pytest.mark.parametrize("length", [0, 10, 39, 40, 41, 200, -1])
def test_a_truncated_entry_is_refused(folder: Path, length: int) -> None:
    key = cache.key("a")
    cache.store(key, CODE)
    path = _only_entry(folder)
    path.write_bytes(path.read_bytes()[:length])
    _is_recompiled(key, "truncated")


@pytest.mark.parametrize(("place", "reason"), [(0, "not an entry"), (8, "format"), (30, "checksum"), (50, "checksum"), (-1, "checksum")])
def test_a_damaged_entry_is_refused(folder: Path, place: int, reason: str) -> None:
    key = cache.key("a")
    cache.store(key, CODE)
    path = _only_entry(folder)
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    _is_recompiled(key, reason)


def test_an_entry_under_another_name_is_refused(folder: Path) -> None:
    cache.store(cache.key("a"), CODE)
    _only_entry(folder).rename(folder / f"{cache.key('b')}.hgo")
    _is_recompiled(cache.key("b"), "checksum")


def test_code_for_another_cpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    key = cache.key("a")
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(cache, "_described", lambda _: "riscv64-unknown-linux-gnu sifive-p670 features 00")
        cache.store(key, CODE)
    _is_recompiled(key, "its code is for riscv64-unknown-linux-gnu sifive-p670")


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_an_entry_that_others_may_write_is_refused(folder: Path, mode: int) -> None:
    key = cache.key("a")
    cache.store(key, CODE)
    _only_entry(folder).chmod(mode)
    _is_recompiled(key, f"others may write to it .mode {mode:o}")


@posix
def test_a_symbolic_link_is_refused_and_its_target_is_kept(folder: Path, tmp_path: Path) -> None:
    key = cache.key("a")
    cache.store(key, CODE)
    path = _only_entry(folder)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    _is_recompiled(key, "symbolic link")
    assert (tmp_path / "elsewhere").exists()


@posix
def test_what_is_no_regular_file_is_refused(folder: Path) -> None:
    key = cache.key("a")
    cache.store(key, CODE)
    path = _only_entry(folder)
    path.unlink()
    path.mkdir()
    with pytest.warns(CacheWarning, match="not a regular file|cannot be"):
        assert cache.load(key) is None


@posix
@pytest.mark.parametrize("kind", ["fifo", "socket"])
def test_a_place_where_reading_waits_is_refused(folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    key = cache.key("a")
    cache.store(key, CODE)
    path = _only_entry(folder)
    path.unlink()
    if kind == "fifo":
        os.mkfifo(path, 0o600)
    else:
        monkeypatch.chdir(folder)  # names of sockets are short
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path.name)
        path.chmod(0o600)
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it waits for ever"))
    signal.alarm(10)
    try:
        _is_recompiled(key, "not a regular file|cannot be opened")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@posix
def test_an_entry_of_another_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    key = cache.key("a")
    cache.store(key, CODE)
    mine = os.fstat
    monkeypatch.setattr(cache.os, "fstat", lambda fd: os.stat_result([*mine(fd)[:4], os.geteuid() + 1, *mine(fd)[5:]]))
    with pytest.warns(CacheWarning, match="another user"):
        assert cache.load(key) is None


def _is_off(reason: str) -> None:
    """Nothing is stored, and the process says so exactly once."""
    key = cache.key("a")
    with pytest.warns(CacheWarning, match=reason) as said:
        cache.store(key, CODE)
        assert cache.load(key) is None
    assert len(said) == 1


@posix
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_folder_that_others_may_write_is_not_used(folder: Path, mode: int) -> None:
    folder.mkdir()
    folder.chmod(mode)
    _is_off("others may write to it")
    assert not list(folder.iterdir())


@posix
def test_a_folder_that_opens_up_later_is_not_used(folder: Path) -> None:
    cache.store(cache.key("a"), CODE)
    folder.chmod(0o777)
    with pytest.warns(CacheWarning, match="others may write to it"):
        assert cache.load(cache.key("a")) is None
    folder.chmod(0o700)
    assert cache.load(cache.key("a")) == CODE


@posix
def test_a_folder_under_a_parent_that_others_may_write_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with override(cache_dir=tmp_path / "open" / "cache"):
        _is_off("others may write to its parent")
        (tmp_path / "open").chmod(0o1777)  # sticky: nobody else can replace what is in it


@posix
def test_a_link_to_a_folder_is_not_used(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "real")
    _is_off("symbolic link")


@posix
def test_a_folder_behind_a_link_among_its_parents_is_checked_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "open" / "real").mkdir(parents=True)
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "open" / "real")
    with override(cache_dir=tmp_path / "link" / "cache"):
        _is_off("others may write to its parent")


@posix
def test_a_folder_of_another_user_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = os.geteuid()
    monkeypatch.setattr(cache.os, "geteuid", lambda: owner + 1)
    _is_off("it belongs to user|belongs to user")


def test_a_file_in_the_folders_place_is_left_alone(folder: Path) -> None:
    folder.write_text("mine")
    _is_off("not a folder")
    assert folder.read_text() == "mine"


def test_folders_and_entries_are_closed_to_others(tmp_path: Path) -> None:
    with override(cache_dir=tmp_path / "x" / "y"):
        cache.store(cache.key("a"), CODE)
    if hasattr(os, "geteuid"):
        for path in (tmp_path / "x", tmp_path / "x" / "y", _only_entry(tmp_path / "x" / "y")):
            assert not stat.S_IMODE(path.stat().st_mode) & 0o077


def test_a_folder_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cache.Path, "mkdir", refuse)
    _is_off("cannot be made .Permission denied.")


def test_a_folder_that_may_only_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.store(cache.key("old"), CODE)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(cache.tempfile, "mkstemp", refuse)
    monkeypatch.setattr(cache.os, "utime", refuse)
    with pytest.warns(CacheWarning, match="cannot be written .Read-only file system.") as said:
        cache.store(cache.key("a"), CODE)
        cache.store(cache.key("b"), CODE)
    assert len(said) == 1
    assert cache.load(cache.key("old")) == CODE


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(cache.Path, "home", refuse)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    with override(cache_dir=None):
        _is_off("no home folder")


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/caches"}, "/caches/hologram"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "/home/me/.cache/hologram"),
        ("linux", {}, "/home/me/.cache/hologram"),
        ("darwin", {"XDG_CACHE_HOME": "/caches"}, "/home/me/Library/Caches/hologram"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/hologram"),
        ("win32", {}, "/home/me/AppData/Local/hologram"),
    ],
)
def test_each_platform_has_its_folder(monkeypatch: pytest.MonkeyPatch, platform: str, variables: dict[str, str], expected: str) -> None:
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(cache.sys, "platform", platform)
    monkeypatch.setattr(cache.Path, "home", lambda: Path("/home/me"))
    with override(cache_dir=None):
        assert cache.folder() == Path(expected)


def test_off(folder: Path) -> None:
    cache.store(cache.key("a"), CODE)
    with override(cache=False):
        assert cache.load(cache.key("a")) is None
        cache.store(cache.key("b"), CODE)
    assert cache.load(cache.key("b")) is None and cache.load(cache.key("a")) == CODE


def test_the_least_recently_used_go(folder: Path) -> None:
    with override(cache_limit=10 * (len(CODE) + 500)):
        keys = [cache.key(str(i)) for i in range(20)]
        for key in keys:
            cache.store(key, CODE)
            assert cache.load(keys[0]) == CODE  # used again and again
            time.sleep(0.002)
        assert sum(p.stat().st_size for p in folder.iterdir()) <= 10 * (len(CODE) + 500)
        kept = [i for i, key in enumerate(keys) if cache.load(key) is not None]
    assert kept[0] == 0 and kept[1:] == list(range(20 - len(kept) + 1, 20)) and len(kept) >= 8


def test_an_entry_above_the_limit_is_not_stored(folder: Path) -> None:
    with override(cache_limit=len(CODE)):
        cache.store(cache.key("a"), CODE)
    assert cache.load(cache.key("a")) is None


def test_what_a_dead_process_left_is_removed(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    old, new = folder / ".writing-old", folder / ".writing-new"
    old.write_bytes(b"")
    new.write_bytes(b"")
    os.utime(old, (0, 0))
    cache.store(cache.key("a"), CODE)
    assert not old.exists() and new.exists()


def test_a_failed_write_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.os, "replace", fail)
    with pytest.warns(CacheWarning, match="No space left on device"):
        cache.store(cache.key("a"), CODE)
    assert not list(folder.iterdir())


def test_writers_and_readers_at_once() -> None:
    """A reader sees a whole entry or none, whoever writes meanwhile, evictions included."""
    keys = [cache.key(str(i)) for i in range(8)]
    wrong: list[bytes] = []

    def work(seed: int) -> None:
        for i in range(60):
            key = keys[(i * 3 + seed) % len(keys)]
            if (data := cache.load(key)) is None:
                cache.store(key, key.encode() * 300)
            elif data != key.encode() * 300:
                wrong.append(data)

    with override(cache_limit=5 * 12_500), warnings.catch_warnings():
        warnings.simplefilter("error")
        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong


def test_a_store_measures_some_of_many_entries(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that first stores one does not ask for the size of each, unless the cache may be full."""
    cache.store(cache.key("first"), CODE)
    for i in range(1000):
        (folder / f"{i:064x}{cache.SUFFIX}").write_bytes(b"x" * 1000)
    scans: list[Path] = []
    entries = cache.entries
    monkeypatch.setattr(cache, "entries", lambda folder: scans.append(folder) or entries(folder))
    monkeypatch.setattr(cache, "_bytes_known", {})
    with override(cache_limit=10**7):
        cache.store(cache.key("a"), CODE)
    assert not scans and 900_000 < cache._bytes_known[folder] < 1_200_000
    monkeypatch.setattr(cache, "_bytes_known", {})
    with override(cache_limit=500_000):
        cache.store(cache.key("b"), CODE)
        assert scans and sum(p.stat().st_size for p in folder.iterdir()) <= 500_000


def test_processes_that_write_at_once(folder: Path) -> None:
    code = (
        "from hologram.backends import object_cache as cache\n"
        "for i in range(40):\n"
        "    key = cache.key(str(i % 5)); data = cache.load(key)\n"
        "    assert data in (None, key.encode() * 200)\n"
        "    cache.store(key, key.encode() * 200)\n"
    )
    environment = dict(os.environ, HOLOGRAM_CACHE_DIR=str(folder), HOLOGRAM_CACHE="1")
    running = [subprocess.Popen([sys.executable, "-W", "error", "-c", code], env=environment, stderr=subprocess.PIPE) for _ in range(3)]
    assert [(p.communicate()[1], p.returncode) for p in running] == [(b"", 0)] * 3
    assert len(list(folder.glob("*.hgo"))) == 5 and len(list(folder.iterdir())) == 5


def test_a_small_entry_loads_fast() -> None:
    key = cache.key("a")
    cache.store(key, CODE)
    times = []
    for _ in range(50):
        start = time.perf_counter()
        cache.load_entry(key)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.3e-3


# --- metadata that does not fit --------------------------------------------------------------------------------------


@pytest.mark.parametrize("document", [None, [], {}, {"target": 1, "meta": {}}, {"meta": {}}, {"target": "x"}, {"target": "x", "meta": []}])
def test_a_document_of_another_form_is_refused(folder: Path, document: Any) -> None:
    key = cache.key("a")
    cache.store(key, CODE)
    rewritten(_only_entry(folder), key, lambda _: document)
    _is_recompiled(key, "its metadata cannot be read")


def test_a_document_that_is_no_json_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = cache.key("a")
    for document in (b"{", b"\xff", b"[" * 100_000):
        with monkeypatch.context() as changed:
            changed.setattr(cache.json, "dumps", lambda *_, d=document, **__: d.decode("latin-1"))
            cache.store(key, CODE)
        _is_recompiled(key, "its metadata cannot be read")


def _programs() -> list[Callable[[Any], Any]]:
    """New functions, which no cache but the disk's knows: constants, work on them that is held, a library's routine, two results."""
    held, own = hnp.asarray(np.arange(12, dtype=np.float32).reshape(3, 4)), hnp.asarray(np.ones((3, 4), np.float32))
    return [
        lambda x: (x @ (hnp.sin(held) * 2), x),
        lambda x: (x @ own + hnp.linalg.inv(x[:3, :3] + 5 * hnp.eye(3, dtype=hnp.float32))[:1, :1], own),
    ]


def test_metadata_that_does_not_describe_the_code_is_refused(folder: Path, everything: bool) -> None:
    x = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    run = lambda: [y.numpy() for f in _programs() for y in hg.jit(f)(x)]  # noqa: E731
    expected = run()
    cases = [(path, place, new) for path in sorted(folder.glob("*.hgo")) for place, new in changes(path)]
    assert len(cases) > 200
    for path, place, new in cases if everything else random.Random(0).sample(cases, 20):
        assert_refused(path, place, new, run, expected)


@pytest.mark.parametrize("document", [{}, {"call": 1.0}, dict.fromkeys(("call", "launch", "operation", "byte", "transfer", "transfer_byte"), "fast")])
def test_rates_that_are_none_are_refused(document: Any) -> None:
    from hologram.backends import rates

    cache.store(rates._key("cpu"), b"", document)
    with pytest.warns(CacheWarning, match="metadata does not describe"):
        assert rates.known("cpu") is None


def test_keys_know_the_package_and_nothing_beside_it(tmp_path: Path) -> None:
    """A copy of the package: what stands beside it leaves the keys as they are, an edit in it does not."""
    shutil.copytree(Path(hg.__file__).parent, tmp_path / "hologram", ignore=shutil.ignore_patterns("__pycache__"))
    program = "from hologram.backends import object_cache; print(object_cache.key('x'))"

    def key() -> str:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        return subprocess.run([sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    before = key()
    (tmp_path / "another.py").write_text("x = 1\n")
    assert key() == before
    edited = tmp_path / "hologram" / "graph" / "pipeline.py"
    edited.write_text(edited.read_text() + "# edited\n")
    assert key() != before
