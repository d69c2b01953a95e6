"""Libraries that a test runs against, and skips without."""

from __future__ import annotations

from typing import Any

import pytest


def library(name: str) -> Any:
    """The module ``name``; where its library is not installed, the tests of the module that asks are skipped, and the reason is printed."""
    return pytest.importorskip(name, reason=f"{name.partition('.')[0]} is not installed: pip install -e '.[clients]'")
