"""What the check of built pages finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.site.html_check import faults

OTHER = '<html><body><h1 id="top">Other</h1><a name="old"></a></body></html>'


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ('<a href="other.html#top">x</a><a href="other.html#old">x</a><a href="https://python.org">x</a>', ""),
        ('<a href="#here">x</a><p id="here"></p>', ""),
        ('<a href="gone.html">x</a>', "links to gone.html, which is not there"),
        ('<a href="other.html#bottom">x</a>', "links to other.html#bottom, a page without that anchor"),
        ('<a href="#bottom">x</a>', "links to #bottom, a page without that anchor"),
        ('<img src="gone.png">', "loads gone.png, which is not there"),
        ('<img src="data:image/png;base64,AAAA">', ""),
        ('<script src="https://cdn.example/x.js"></script>', "loads https://cdn.example/x.js"),
        ('<script src="//cdn.example/x.js"></script>', "loads //cdn.example/x.js"),
        ('<link rel="stylesheet" href="https://fonts.example/css">', "loads https://fonts.example/css"),
        ('<link rel="next" href="other.html">', ""),
        ('<link rel="next" href="gone.html">', "links to gone.html, which is not there"),
    ],
)
def test_faults_are_found(body: str, wrong: str, tmp_path: Path) -> None:
    (tmp_path / "other.html").write_text(OTHER)
    (tmp_path / "page.html").write_text(f"<html><body>{body}</body></html>")
    assert faults(tmp_path) == ([f"page.html: {wrong}"] if wrong else [])


@pytest.mark.parametrize(
    ("css", "is_wrong"),
    [
        ("a { color: red }", False),
        ("@import url(https://x.example/a.css);", True),
        ("a { background: url('//x.example/a.png') }", True),
        ("a { background: url(a.png) }", False),
    ],
)
def test_styles_load_nothing_from_elsewhere(css: str, is_wrong: bool, tmp_path: Path) -> None:
    (tmp_path / "site.css").write_text(css)
    assert bool(faults(tmp_path)) == is_wrong
