"""Progress bars of loops: what they count, that they change no bit, and that nothing of them is left behind."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram.backends.native.code.records import BAR_FREE, BAR_SLOTS
from hologram.backends.native.progress_bars import STATE, Slots
from hologram.errors import ArgumentError
from hologram.saved.exporting import export
from hologram.settings import override
from hologram.support.progress import bars, displays
from hologram.support.progress.meter import Progress
from tests.support.pages.displays import Recorder


def slots() -> Slots:
    hg.jit(lambda x: x + 1)(1.0)  # loads the runtime
    return next(s for s in bars.watch.sources if isinstance(s, Slots))


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """Bars are drawn at once, and only when a test looks: the thread sleeps."""
    found = Recorder()
    monkeypatch.setattr(displays, "choose", lambda: found)
    monkeypatch.setattr(bars, "LOOP_DELAY", 0.0)
    monkeypatch.setattr(bars.Watch, "wake", lambda self: None)
    table = slots()
    assert not table.record.watched
    with override(progress="on"):
        yield found
    assert not bars.watch.drawn and not bars.watch.own
    assert all(words[STATE] == BAR_FREE for words in table.slots[:BAR_SLOTS]), "every loop has given its slot back"


def looked(x: Any) -> Any:
    """``x + 1``, computed while somebody looks at the bars."""

    def look(a: np.ndarray) -> np.ndarray:
        bars.watch.look()
        return a + 1

    return hg.pure_callback(look, hg.ShapeDtypeStruct((), x.dtype), x, vmap_method="sequential")


ZERO = np.float32(0)


def test_a_scan_counts_its_steps(recorder: Recorder) -> None:
    f = hg.jit(lambda x: hg.scan(lambda c, _: (looked(c), c), x, None, 7, progress="solving"))
    last, ys = f(ZERO)
    assert float(last) == 7 and ys.tolist() == list(range(7))
    assert recorder.counts("solving") == list(range(7)) and recorder.ends == [("solving", 7, 7)]


@pytest.mark.parametrize("bound", [np.int32(12), np.int64(12), np.uint8(12)])
def test_counters_of_while_loops_tell_the_total(recorder: Recorder, bound: Any) -> None:
    f = hg.jit(lambda n, x: hg.fori_loop(3, n, lambda i, c: looked(c), x, progress="counting"))
    assert float(f(bound, ZERO)) == 9 and recorder.ends == [("counting", 9, 9)]
    assert recorder.counts("counting") == list(range(9))


@pytest.mark.parametrize(
    ("test", "by", "total"), [(lambda i: i < 10, 3, 4), (lambda i: i <= 9, 3, 4), (lambda i: i <= 8, 3, 3), (lambda i: i < -5, 1, 0)]
)
def test_totals_of_other_counters(recorder: Recorder, test: Any, by: int, total: int) -> None:
    f = hg.jit(lambda i, x: hg.while_loop(lambda c: test(c[0]), lambda c: (c[0] + by, looked(c[1])), (i, x), progress="w"))
    assert float(f(np.int32(0), ZERO)[1]) == total
    assert recorder.ends == ([("w", total, total)] if total else [])


def test_a_loop_whose_end_nobody_knows(recorder: Recorder) -> None:
    f = hg.jit(lambda x: hg.while_loop(lambda c: c < 5, looked, x, progress=True))
    assert float(f(ZERO)) == 5 and recorder.ends == [("looked", 5, None)]


def test_inner_loops_vanish(recorder: Recorder) -> None:
    inner = lambda c: hg.scan(lambda d, _: (looked(d), None), c, None, 2, progress="inner")[0]  # noqa: E731
    f = hg.jit(lambda x: hg.scan(lambda c, _: (inner(c), None), x, None, 3, progress="outer")[0])
    assert float(f(ZERO)) == 6
    assert [(b.label, b.leaves) for b in recorder.ended] == [("inner", False)] * 3 + [("outer", True)]
    assert recorder.counts("outer") == [0, 0, 1, 1, 2, 2]


def test_the_function_gives_its_outermost_loops_bars(recorder: Recorder) -> None:
    inner = lambda c: hg.fori_loop(0, 2, lambda i, d: looked(d), c)  # noqa: E731
    loops = lambda x: hg.fori_loop(0, 3, lambda i, c: inner(c), x)  # noqa: E731
    assert float(hg.jit(hg.progress(loops, "all"))(ZERO)) == 6 and recorder.ends == [("all", 3, 3)]
    assert float(hg.jit(loops)(ZERO)) == 6 and len(recorder.ended) == 1, "the label has gone"
    with pytest.raises(ArgumentError, match=r"write jit\(progress\(f\)\)"):
        hg.progress(hg.jit(loops))


def test_loops_in_python(recorder: Recorder) -> None:
    for i in hg.progress(range(3), "epochs"):
        bars.watch.look()
        assert recorder.drawn[-1].done == i
    assert recorder.ends == [("epochs", 3, 3)]
    assert list(hg.progress(iter("ab"), total=2)) == ["a", "b"]
    for _ in hg.progress(iter("abc"), "left"):
        bars.watch.look()
        break
    assert recorder.ends[-1] == ("left", 0, None)
    traced = hg.jit(lambda x: sum((x for _ in hg.progress(range(3))), x))
    assert float(traced(ZERO + 1)) == 4


def test_without_jit(recorder: Recorder) -> None:
    with hg.disable_jit():
        hg.scan(lambda c, _: (hnp.asarray(float(looked(c))), None), hnp.asarray(0.0), None, 3, progress="py")
        hg.while_loop(lambda c: c < 2, lambda c: hnp.asarray(float(looked(c))), hnp.asarray(0.0), progress="while")
    assert recorder.ends == [("py", 3, 3), ("while", 2, None)]


@pytest.mark.parametrize("label", [3, 1.5, [], b"x"])
def test_what_is_no_label(label: Any) -> None:
    with pytest.raises(ArgumentError, match="progress is a label, True or False"):
        hg.scan(lambda c, _: (c, None), 0.0, None, 3, progress=label)


@given(st.text(max_size=90))
@settings(max_examples=30, deadline=None)
def test_labels_of_all_kinds(label: str) -> None:
    """They fit their slot in whole characters, and move no cursor."""
    with override(progress="on"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(bars.Watch, "wake", lambda self: None)
        found: list[str] = []
        table = slots()

        def look(a: np.ndarray) -> np.ndarray:
            found.extend(b.label for b in table.bars())
            return a

        same = lambda c, _: (hg.pure_callback(look, hg.ShapeDtypeStruct((), "float32"), c), None)  # noqa: E731
        hg.scan(same, ZERO, None, 1, progress=label)[0].numpy()
    (shown,) = found
    assert "".join(shown.split()) == "" or shown.isprintable()
    assert len(shown.encode()) < 64 and (
        not shown or " ".join("".join(c for c in " ".join(label.split()) if c.isprintable()).split()).startswith(shown.strip()) or shown == "scan"
    )


# --- programs --------------------------------------------------------------------------------------------------------


def step(c: Any, x: Any) -> tuple[Any, Any]:
    return hnp.sin(c) * 1.5 + x, c[:1]


def test_without_a_label_the_program_is_the_same() -> None:
    x, xs = np.ones(3, np.float32), np.ones((50, 3), np.float32)
    texts = [hg.jit(lambda x, xs, p=p: hg.scan(step, x, xs, progress=p)).lower(x, xs) for p in (None, False, "a bar")]
    graphs = [" ".join(str(t.graph).split()) for t in texts]
    assert graphs[0] == graphs[1] and graphs[0] != graphs[2] == graphs[0].replace(" reverse=False", " reverse=False progress=a bar")
    calls = ["call ptr @hg_bar_begin(" in t.as_text("llvm") for t in texts]
    assert calls == [False, False, True]


@given(st.integers(0, 300), st.integers(1, 40), st.booleans(), st.integers(0, 2**31))
@settings(max_examples=12, deadline=None)
def test_results_have_the_same_bits(n: int, width: int, reverse: bool, seed: int) -> None:
    draw = np.random.default_rng(seed)
    x, xs = draw.standard_normal(width).astype(np.float32), draw.standard_normal((n, width)).astype(np.float32)
    loss = lambda p: lambda x, xs: sum(hnp.sum(hnp.cos(r)) for r in hg.scan(step, x, xs, reverse=reverse, progress=p))  # noqa: E731
    found = [hg.jit(hg.value_and_grad(loss(p), argnums=(0, 1)))(x, xs) for p in (None, "training")]
    for a, b in zip(*(hg.tree.leaves(f) for f in found), strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()


def labels(f: Any, *args: Any) -> list[str]:
    """The labels of the loops that run."""
    text = hg.jit(f).lower(*args).as_text("canonical")
    return sorted(line.partition(" progress=")[2].partition("  ")[0] for line in text.splitlines() if " progress=" in line)


def test_transforms_hand_the_label_on() -> None:
    x, xs = np.ones(3, np.float32), np.ones((50, 3), np.float32)
    f = lambda x, xs: hg.scan(step, x, xs, progress="train")[0].sum()  # noqa: E731
    assert labels(f, x, xs) == ["train"]
    assert labels(hg.vmap(f, in_axes=(0, None)), np.ones((4, 3), np.float32), xs) == ["train"]
    assert labels(lambda x, xs: hg.jvp(f, (x, xs), (x, xs)), x, xs) == ["train"], "one loop, one bar"
    assert labels(hg.grad(f), x, xs) == ["train", "train (derivative)"]
    assert set(labels(hg.hessian(f), x, xs)) == {"train", "train (derivative)"}
    w = lambda x: hg.while_loop(lambda c: c.sum() < 99, lambda c: c * 2, x, progress="grow")  # noqa: E731
    assert labels(lambda x: hg.jvp(w, (x,), (x,)), x)[-1] == "grow (derivative)"
    assert labels(hg.vmap(w), np.ones((4, 3), np.float32)) == ["grow"]
    either = lambda p, x: hg.cond(p, lambda x: hg.scan(lambda c, _: (c * 2, None), x, None, 9, progress="in")[0], lambda x: x, x)  # noqa: E731
    assert labels(hg.vmap(either), np.array([True, False]), np.ones((2, 3), np.float32)) == ["in"]
    wave = lambda x: hg.scan(lambda c, _: (hnp.exp(1j * c), None), x, None, 9, progress="wave")[0]  # noqa: E731
    assert labels(wave, np.ones(3, np.complex64)) == ["wave"]


def test_saved_programs_have_no_bars(tmp_path: Any) -> None:
    files = []
    for p in (None, "label"):
        path = tmp_path / f"{p}.hg"
        export(hg.jit(lambda x, p=p: hg.scan(lambda c, _: (c + 1, c), x, None, 5, progress=p)), ZERO).save(path)
        files.append(path)
    assert "label" not in repr(files[1].read_bytes())
    a, b = (hg.load(path)(ZERO) for path in files)
    assert a[1].tolist() == b[1].tolist()


def test_loops_that_threads_share_count_together(recorder: Recorder) -> None:
    def f(x: Any, p: Any) -> Any:
        return hg.scan(lambda i, v: (i + 1, hg.fori_loop(0, 40, lambda k, v: hnp.sin(v) + k, v)), 0, x, progress=p)[1]

    x = np.arange(20_000 * 16, dtype=np.float32).reshape(-1, 16)
    shared = hg.jit(lambda x: f(x, "shared"))
    assert hg.settings.checked or "atomicrmw add" in shared.lower(x).as_text("llvm")
    found: list[Progress] = []
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            bars.watch.look()
            found.extend(recorder.drawn)
            time.sleep(0.0005)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        same = shared(x).numpy().tobytes() == hg.jit(lambda x: f(x, None))(x).numpy().tobytes()
    finally:
        stop.set()
        thread.join()
    assert same and all(0 <= b.done <= 20_000 == b.total for b in found)
    assert recorder.ends in ([], [("shared", 20_000, 20_000)])


# --- what goes wrong -------------------------------------------------------------------------------------------------


def test_errors_end_the_bars(recorder: Recorder) -> None:
    def fails(a: np.ndarray) -> np.ndarray:
        bars.watch.look()
        if a >= 3:
            raise ValueError("three")
        return a + 1

    inner = lambda c, _: (hg.pure_callback(fails, hg.ShapeDtypeStruct((), "float32"), c), None)  # noqa: E731
    f = hg.jit(lambda x: hg.scan(lambda c, _: (hg.scan(inner, c, None, 2, progress="inner")[0], None), x, None, 9, progress="outer")[0])
    for _ in range(2):
        with pytest.raises(ValueError, match="three"):
            f(ZERO)
        assert recorder.ends[-2:] == [("inner", 1, 2), ("outer", 1, 9)] and recorder.ended[-1].ended
        assert "stopped" in recorder.ended[-1].times


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that signals")
def test_interrupts_end_the_bars(recorder: Recorder) -> None:
    f = hg.jit(lambda x: hg.scan(lambda c, _: (hnp.sin(c) + 1, None), x, None, 10**9, progress="long")[0])
    f.lower(np.ones(100, np.float32)).compile()

    def handler(number: int, frame: Any) -> None:
        bars.watch.look()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            f(np.ones(100, np.float32))
    finally:
        signal.signal(signal.SIGALRM, before)
    ((label, done, total),) = recorder.ends
    assert label == "long" and 0 < done < total == 10**9  # type: ignore[operator]


def test_an_interrupt_while_a_bar_begins_or_ends_is_not_lost(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = hg.jit(lambda x: hg.scan(lambda c, _: (looked(c), None), x, None, 3, progress="end")[0]).lower(ZERO).compile()
    finish, table = bars.Watch.finish, slots()

    def interrupted(self: Any, bar: Any = None) -> None:
        if bar is not None:
            finish(self, bar)
        raise KeyboardInterrupt

    for name in ("finish", "wake"):
        with monkeypatch.context() as patch:
            patch.setattr(bars.Watch, name, interrupted)
            table.record.quiet_until = 0
            with pytest.raises(KeyboardInterrupt):
                compiled(ZERO)
    assert recorder.ends == [("end", 3, 3)] and float(compiled(ZERO)) == 3


def test_more_loops_than_slots(recorder: Recorder) -> None:
    table = slots()
    try:
        for words in table.slots[:BAR_SLOTS]:
            words[STATE] = 1
        assert float(hg.scan(lambda c, _: (looked(c), None), ZERO, None, 4, progress="too many")[0]) == 4
    finally:
        for words in table.slots[:BAR_SLOTS]:
            words[STATE] = BAR_FREE
    assert not recorder.drawn


def test_threads_have_bars_of_their_own(recorder: Recorder) -> None:
    run = lambda i: float(hg.scan(lambda c, _: (looked(c), None), ZERO, None, 20, progress=f"thread {i}")[0])  # noqa: E731
    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(recorder.ends) == [(f"thread {i}", 20, 20) for i in range(4)] and all(b.leaves for b in recorder.ended)


def test_switched_off(recorder: Recorder) -> None:
    with override(progress="off"):
        assert float(hg.scan(lambda c, _: (looked(c), None), ZERO, None, 3, progress="off")[0]) == 3
    assert not recorder.drawn


def test_who_does_not_look_is_rarely_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(bars.Watch, "wake", lambda self: asked.append(1))
    compiled = hg.jit(lambda x: hg.scan(lambda c, _: (c * 2, None), x, None, 5, progress="x")[0]).lower(ZERO).compile()
    with override(progress="auto"):
        asked.clear()
        for _ in range(50):
            compiled(ZERO)
    assert 1 <= len(asked) <= 3
    assert compiled.executable.long and not compiled.executable.brief, "nothing is computed in the memory of arguments that an interrupt would leave"
