"""``hologram info``: what the command line tells of devices, rates, caches, threads and memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hologram as hg
from hologram.command_line import info
from hologram.command_line.main import main
from hologram.errors import DeviceError
from hologram.settings import override


def test_info_tells_of_everything(capsys: Any) -> None:
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    for title in ("Hologram", "devices", "rates, for placement", "threads and memory", "disk cache"):
        assert f"{title}\n" in text
    assert hg.__version__ in text and "LLVM, native code" in text and "96 pages of 12,288 bytes" in text
    for name in hg.devices().missing:
        assert f"{name}" in text and "not available: " in text


def test_rates_are_measured_when_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hologram.ir import devices

    monkeypatch.setattr(devices, "devices", lambda: devices.Devices({"cpu": "LLVM, native code"}, {}))
    with override(cache_dir=tmp_path):
        assert "not measured yet" in dict(info.sections()["rates, for placement"])["cpu"]
        from hologram.backends.rates import rates

        rates.cache_clear()
        assert "GFLOP/s" in dict(info.sections(measure=True)["rates, for placement"])["cpu"]
        assert "GFLOP/s" in dict(info.sections()["rates, for placement"])["cpu"]  # from the disk
    with override(cache=False):
        assert dict(info.sections()["disk cache"])["folder"] == "off"


def test_what_fails_does_not_hide_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hologram.backends import rates

    def fails(name: str) -> Any:
        raise DeviceError(f"{name} is lost")

    monkeypatch.setattr(rates, "rates", fails)
    (tmp_path / "gone.hgo").symlink_to(tmp_path / "nothing")  # as an entry that another process evicts between listing and look
    with override(cache_dir=tmp_path):
        found = info.sections(measure=True)
    assert dict(found["rates, for placement"])["cpu"] == "cannot be measured: cpu is lost"
    assert "in 0 files" in dict(found["disk cache"])["used"]


def test_wheels_of_cupy_are_found_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(info, "_version", {"cupy-cuda12x": "13.5"}.get)
    assert dict(info.sections()["Hologram"])["cupy"] == "13.5 (cupy-cuda12x)"


def test_info_as_json(capsys: Any) -> None:
    assert main(["info", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["command"] == "info" and found["version"] == found["Hologram"]["hologram"] == hg.__version__
    assert "cpu" in found["devices"] and "usable processors" in found["threads and memory"]["threads"]


def test_tables_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    main(["info"])
    assert "usable processors" in capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "rich.console", None)
    main(["info"])
    assert "threads and memory\n" in capsys.readouterr().out


def test_the_command_line(capsys: Any) -> None:
    with pytest.raises(SystemExit) as e:
        main(["--version"])
    assert e.value.code == 0 and capsys.readouterr().out.strip() == hg.__version__
    with pytest.raises(SystemExit):
        main([])
    done = subprocess.run([sys.executable, "-m", "hologram", "info"], capture_output=True, text=True, check=True)
    assert "disk cache" in done.stdout and not done.stderr
