"""Examples that draw say at once what they need, before they compute anything."""

from __future__ import annotations

import importlib
import sys

import pytest


@pytest.mark.parametrize("name", ["digits", "gaussian_process", "heat", "hmc", "nbody", "photo"])
def test_what_is_missing_is_told_first(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    example = importlib.import_module(f"examples.{name}")
    monkeypatch.setattr(example, "find_spec", lambda module: None)
    monkeypatch.setattr(sys, "argv", [name])
    with pytest.raises(SystemExit) as ended:
        example.main()
    said = capsys.readouterr()
    assert ended.value.code == 1 and "pip install '.[demo]'" in said.err and not said.out
