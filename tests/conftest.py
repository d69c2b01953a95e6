"""``--all`` runs the whole of the generated tests; without it they run a seeded sample."""

from __future__ import annotations

import hypothesis
import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="every generated case, not a seeded sample")


def pytest_configure(config: pytest.Config) -> None:
    everything = config.getoption("--all")
    slow = [hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large]
    hypothesis.settings.register_profile("sample", max_examples=50, deadline=None, derandomize=True, suppress_health_check=slow)
    hypothesis.settings.register_profile("all", max_examples=1000, deadline=None, suppress_health_check=slow)
    hypothesis.settings.load_profile("all" if everything else "sample")


@pytest.fixture(scope="session")
def everything(request: pytest.FixtureRequest) -> bool:
    """Whether ``--all`` was given."""
    return bool(request.config.getoption("--all"))
