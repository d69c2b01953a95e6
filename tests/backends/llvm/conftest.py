"""Code of LLVM's is tested as users get it."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", autouse=True)
def code_of_users(fully_compiled: None) -> None:
    """All modules of the folder compile programs fully."""
