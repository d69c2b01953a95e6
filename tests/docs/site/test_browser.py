"""The site in a real browser, from a plain web server: pages open without a complaint, search finds, dark mode switches.

It tests what ``make docs`` built in out/site, and is skipped where there is none, or no browser.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.pages.browser import show_as, why_no_browser

SITE = next(p for p in Path(__file__).parents if (p / "pyproject.toml").exists()) / "out" / "site"
PAGES = (
    "index.html", "getting_started.html", "architecture.html", "rules.html", "comparison.html", "measured.html", "products.html",
    "tutorials/photograph.html", "tutorials/spectral.html", "how_to/measure.html", "examples/photo.html", "overview.html",
    "reference/index.html", "reference/hologram.html", "reference/hologram.numpy/elementwise_functions.html", "reference/hologram_torch.html",
)  # fmt: skip
SECONDS = 20.0  # until a page shows what it should, on a machine that is busy
Opened = Callable[..., Any]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the site is served."""
    reason = why_no_browser() or (None if (SITE / "index.html").exists() else "no out/site: make docs builds it")
    if reason is not None:
        pytest.skip(reason)
    server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *given: Quiet(*given, directory=str(SITE)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def opened(address: str, browser: Any) -> Iterator[Opened]:
    """Opens a page at a width, as somebody who never chose a theme; at the end the console must have neither errors nor warnings."""

    def show(page: str, width: int = 1400, dark: bool = False) -> Any:
        show_as(browser, width, dark)
        browser.get(f"{address}/{page}")
        return browser

    show("index.html").execute_script("localStorage.clear()")
    browser.get_log("browser")
    yield show
    assert [said for said in browser.get_log("browser") if said["level"] != "INFO"] == []  # Furo says there which theme it chose


def wait(browser: Any, script: str, *given: object) -> Any:
    """What the script returns, once that is true."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, SECONDS).until(lambda b: b.execute_script(f"return {script}", *given))


def brightness(browser: Any) -> float:
    """Of the page's background, from 0 to 255."""
    colour = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    return sum(map(float, colour[colour.index("(") + 1 : -1].split(",")[:3])) / 3


@pytest.mark.parametrize("width", [1400, 400])
@pytest.mark.parametrize("page", PAGES)
def test_pages_open_without_a_complaint(opened: Opened, page: str, width: int) -> None:
    """They fit the window, their pictures are there, and nothing is loaded from elsewhere."""
    browser = opened(page, width)
    assert browser.find_element("css selector", "h1").is_displayed()
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    wait(browser, "[...document.images].every(i => i.loading === 'lazy' || i.complete && i.naturalWidth > 0)")
    loaded = browser.execute_script("return performance.getEntriesByType('resource').map(r => r.name)")
    assert loaded and {urlsplit(x).hostname for x in loaded if not x.startswith("data:")} == {"127.0.0.1"}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("cumulative_sum", "reference/hologram.numpy/reductions.html#hologram.numpy.cumulative_sum"),
        ("while_loop", "reference/hologram/loops.html#hologram.while_loop"),
        ("memory plan", "tutorials/photograph.html"),
    ],
)
def test_search_finds(opened: Opened, address: str, asked: str, found: str) -> None:
    """A function by its name, a page by its words; the link leads there."""
    browser = opened("index.html")
    field = browser.find_element("css selector", ".sidebar-search")
    field.send_keys(asked)
    field.submit()
    links = "[...document.querySelectorAll('#search-results li a')].map(a => a.href.split('?')[0].split('#')[0] + new URL(a.href).hash)"
    assert wait(browser, f"{links}.find(a => a.startsWith(arguments[0]))", f"{address}/{found}")
    browser.get(f"{address}/{found}")
    if anchor := found.partition("#")[2]:
        assert wait(browser, "document.getElementById(arguments[0]).getBoundingClientRect().top < innerHeight", anchor)


@pytest.mark.parametrize("width", [1400, 400])
def test_dark_mode_switches_and_stays(opened: Opened, width: int) -> None:
    """The system's preference holds until somebody chooses; the choice holds on the next page."""
    assert brightness(opened("index.html", width, dark=True)) < 60
    browser = opened("index.html", width)
    assert brightness(browser) > 200
    button = next(b for b in browser.find_elements("css selector", "button.theme-toggle") if b.is_displayed())
    for _ in range(3):  # auto, light, dark
        if brightness(browser) > 200:
            browser.execute_script("arguments[0].click()", button)
    assert brightness(browser) < 60
    assert brightness(opened("glossary.html", width)) < 60


def test_navigation_opens_on_a_narrow_screen(opened: Opened) -> None:
    browser = opened("index.html", 400)
    drawer = "document.querySelector('.sidebar-drawer').getBoundingClientRect()"
    assert browser.execute_script(f"return {drawer}.right") <= 0
    browser.find_element("css selector", "label.nav-overlay-icon").click()
    assert wait(browser, f"{drawer}.left >= 0")
    assert any(a.is_displayed() for a in browser.find_elements("partial link text", "Tutorials"))


def test_examples_are_copied_without_prompts(opened: Opened, address: str) -> None:
    browser = opened("reference/hologram.numpy/reductions.html")
    browser.execute_cdp_cmd("Browser.grantPermissions", {"origin": address, "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    assert wait(browser, "document.querySelectorAll('button.copybtn').length > 10")
    shown = browser.execute_script("return document.querySelector('button.copybtn').parentElement.innerText")
    browser.execute_cdp_cmd("Runtime.evaluate", {"expression": "document.querySelector('button.copybtn').click()", "userGesture": True})
    assert shown.startswith(">>> ")
    read = "const done = arguments[0]; setTimeout(() => navigator.clipboard.readText().then(done), 500)"
    assert browser.execute_async_script(read) == shown.split("\n")[0].removeprefix(">>> ")
