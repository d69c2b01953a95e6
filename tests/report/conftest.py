"""Reports in a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.pages.browser import browser, show_as

__all__ = ["browser"]


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Any]]:  # noqa: F811
    """Opens a page from a file, at a width, in light or dark; at the end the console must be empty."""

    def show(path: Path, width: int = 1400, dark: bool = False, fragment: str = "") -> Any:
        show_as(browser, width, dark)
        browser.get("about:blank")
        browser.get(path.as_uri() + fragment)
        assert browser.execute_script("return document.documentElement.dataset.ready") == "true"
        return browser

    browser.get_log("browser")
    yield show
    assert browser.get_log("browser") == []
