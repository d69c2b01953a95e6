"""``--all`` runs the whole of the generated tests; without it they run a seeded sample."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="every generated case, not a seeded sample")


@pytest.fixture(scope="session")
def everything(request: pytest.FixtureRequest) -> bool:
    """Whether ``--all`` was given."""
    return bool(request.config.getoption("--all"))
