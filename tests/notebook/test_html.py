"""What notebooks show: well-formed HTML without scripts and styles of its own, of every kind of value, which computes and raises nothing new."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnps

import hologram as hg
import hologram.numpy as hnp
from hologram.notebook.markup import MAX_CHARACTERS, listing
from hologram.notebook.statistics import SAMPLE, statistics_of
from hologram.support.html import html_method
from hologram.support.progress.displays import as_html
from hologram.support.progress.meter import Progress

VOID = {"img", "br", "hr"}
ALLOWED = {"b", "circle", "details", "div", "img", "path", "pre", "progress", "rect", "span", "summary", "svg", "table", "td", "th", "title", "tr"}


class Page(HTMLParser):
    """The elements and the text of a page; asserts that elements nest, and that none can run or leak anything."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        given = dict(attrs)
        assert not any(name.startswith("on") or name in ("id", "class") for name in given), given
        assert not (given.get("src") or "data:").strip().lower().startswith(("javascript", "http"))
        self.elements.append((tag, given))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)


def page(x: Any) -> Page:
    text = x._repr_html_()
    assert text is not None
    return Page(text)


ARRAYS = hnps.arrays(
    st.sampled_from(["bool", "int8", "uint64", "int64", "float16", "float32", "float64", "complex64", "complex128"]),
    hnps.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=30),
)


@given(ARRAYS)
@settings(max_examples=60, deadline=None)
def test_every_array_has_a_picture(x: np.ndarray) -> None:
    shown = page(hg.tensor(x))
    assert f"{x.dtype}{list(x.shape)}" in shown.text
    if 0 < x.ndim <= 2 and 0 < x.size <= 24:
        assert shown.count("td") == x.size


@given(st.lists(st.floats(width=64) | st.sampled_from([1e308, -1e308, 5e-324, 0.0]), min_size=1, max_size=50))
@settings(max_examples=100, deadline=None)
def test_statistics_are_numpy_s(values: list[float]) -> None:
    x = np.array(values)
    s = statistics_of(x)
    finite = x[np.isfinite(x)]
    assert (s.size, s.looked_at, s.nan, s.infinite) == (x.size, x.size, np.isnan(x).sum(), np.isinf(x).sum())
    assert s.zeros == np.sum(finite == 0)
    if not finite.size:
        assert s.counts is None
        return
    assert s.counts is not None and sum(s.counts) == finite.size
    assert (s.low, s.high) == (finite.min(), finite.max()) and s.low <= s.mean <= s.high
    half = finite / 2  # whose sums and differences do not overflow so soon
    if abs(half).max() < 1e150 and abs(half).max() > 1e-150:
        np.testing.assert_allclose((s.mean, s.std), (finite.mean(), finite.std()), rtol=1e-9, atol=1e-12 * abs(finite).max())


def test_large_arrays_are_sampled_all_over() -> None:
    x = np.zeros((2048, 2048), np.float32)
    x[:, 5] = 1
    for view in (x, x.T):
        s = statistics_of(view)
        assert s.looked_at <= SAMPLE < s.size and 0 < s.mean < 0.01
    assert "of a sample of" in page(hg.tensor(x)).text


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
def test_narrow_floats(dtype: Any) -> None:
    assert "1.5" in page(hg.tensor(np.array([[1.5, -2]], dtype))).text
    assert page(hg.tensor(np.ones((40, 40), dtype))).count("svg") == 1


def test_large_arrays_show_corners_on_request() -> None:
    shown = page(hnp.reshape(hnp.arange(2 * 100 * 50), (2, 100, 50)))
    assert shown.count("details") == 1 and shown.count("td") == 49 and "x[0]" in shown.text and "4,999" not in shown.text and "4999" in shown.text
    bars = [float(a["height"] or 0) for name, a in shown.elements if name == "rect"]
    assert len(bars) == 48 and min(bars) > 0


def test_a_trace_shows_types_and_no_values() -> None:
    seen: list[Any] = []

    @hg.jit
    def f(x: Any) -> Any:
        seen.append((page(x).text, page(x + 1).text))
        return x

    f(np.ones(3, np.float32))
    assert all("traced" in text and "float32" in text for text in seen[0])


def test_what_repr_does_the_picture_does() -> None:
    """A pending value is computed by either; a donated one has none; what raises in one leaves the other to say it."""
    calls: list[int] = []

    def counted(a: np.ndarray) -> np.ndarray:
        calls.append(1)
        return a + 1

    x = hg.pure_callback(counted, hg.ShapeDtypeStruct((2,), "float32"), np.ones(2, np.float32))
    assert not calls
    assert "2" in page(x).text and len(calls) == 1
    repr(x), page(x)
    assert len(calls) == 1
    donated = hnp.ones(1000) + 1
    hg.jit(lambda a: a * 2, donate_argnums=0)(donated)
    assert repr(donated) == page(donated).text == "Tensor(donated)"

    def fails(a: np.ndarray) -> np.ndarray:
        raise ValueError("no")

    broken = hg.pure_callback(fails, hg.ShapeDtypeStruct((2,), "float32"), np.ones(2, np.float32))
    assert broken._repr_html_() is None
    with pytest.raises(ValueError, match="no"):
        repr(broken)


def test_methods_never_raise() -> None:
    assert html_method("nowhere:nothing")(None) is None
    assert html_method("notebook.tensors:tensor_html")(3) is None


def test_jitted_functions_list_what_was_compiled() -> None:
    @hg.jit
    def scaled(x: Any, *, by: str = "<script>alert(1)</script>") -> Any:
        return x * len(by)

    assert "0 signatures compiled" in page(scaled).text
    scaled(np.ones(3, np.float32))
    scaled(np.ones((2, 5), np.float32))
    shown = page(scaled)
    assert "2 signatures compiled" in shown.text and "x: float32[3]" in shown.text and "x: float32[2, 5]" in shown.text
    assert shown.count("tr") == 3
    named = hg.jit(lambda x, s: x, static_argnames="s")
    named(np.ones(3), s="<b>&\"'")
    assert "s = '<b>&\"" in page(named).text.replace('\\"', '"') or "<b>&" in page(named).text


def test_programs_and_graphs() -> None:
    x = np.ones((4, 5), np.float32)
    lowered = hg.jit(lambda a: hnp.sum(hnp.exp(a) * a)).lower(x)
    shown = page(lowered)
    assert lowered._compiled is None, "a picture compiles nothing"
    assert "reduce_sum" in shown.text and "exp" in shown.text and "test_html.py" in shown.text
    assert "float32[4, 5] → float32[]" in page(lowered.graph).text
    compiled = lowered.compile()
    compiled.memory_analysis(), compiled.reduction()
    assert "kernels" in page(compiled).text and "lower bound" in page(compiled).text
    assert "canonical" in page(hg.explain(lambda a: a + a)(x)).text


def test_a_program_from_the_disk_shows_no_plan(tmp_path: Any) -> None:
    with hg.settings.override(cache_dir=tmp_path, cache=True):
        for _ in range(2):
            compiled = hg.jit(lambda a: hnp.sum(a * 3.5)).lower(np.ones(7, np.float32)).compile()
            shown = page(compiled).text
    assert not compiled.executable.compilation.is_planned and "a: float32[7]" in shown and "lower bound" not in shown


def test_long_texts_are_cut() -> None:
    text = listing("<&>\n" * MAX_CHARACTERS).text
    assert len(text) < 10 * MAX_CHARACTERS and "more characters" in text and "&lt;&amp;&gt;" in text


@given(st.text(max_size=80), st.none() | st.integers(0, 10**12), st.integers(0, 10**12), st.none() | st.floats(1e-9, 1e12))
@settings(max_examples=60, deadline=None)
def test_bars(label: str, total: int | None, done: int, rate: float | None) -> None:
    shown = Page(as_html(Progress(1, label, done, total, 3.0, rate)))
    assert shown.count("progress") == 1
