"""Tests in processes of their own, several at a time: neither a device that is lost nor a process that dies takes more than one test with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
THREADS = {"HOLOGRAM_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}  # of each process: there are others
WARNINGS = ("-W", "default")  # are no failures: those of other libraries on that machine are not ours
NO_TESTS = 5  # pytest's exit status where it found none
BAD = ("failed", "lost", "died", "hung", "unsound")


class Chunk(NamedTuple):
    """Tests for one process, which ``prefix`` starts (such as a sanitizer), called ``label``."""

    tests: list[str]
    label: str = ""
    prefix: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


def collected(options: Sequence[str] = ()) -> list[str]:
    """The names of all tests of this folder. Raises SystemExit with pytest's words where they cannot be read."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--no-header", *WARNINGS, *options, str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment())
    if done.returncode not in (0, NO_TESTS):
        raise SystemExit(done.stdout + done.stderr)
    return [line for line in done.stdout.splitlines() if "::" in line and not line.startswith(("ERROR", "SKIPPED"))]


def environment(**more: str) -> dict[str, str]:
    """In which Hologram is found, installed or not."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]), **more}


def sanitized(sanitizer: str, tool: str) -> tuple[str, ...]:
    """What starts a process under a tool. Codes that calls give back, such as of an event that is not done yet, are no errors."""
    return (sanitizer, "--tool", tool, "--error-exitcode", "1", *(("--report-api-errors", "no") if tool == "memcheck" else ()))


class Runs:
    """Runs chunks, ``workers`` at a time, for ``seconds`` in all, at most ``each`` a process. Prints how each ends, and writes it to ``report``."""

    def __init__(
        self, device: str, workers: int, seconds: float, each: float, report: Path, sanitizer: str | None = None, folder: Path = ROOT
    ) -> None:
        self.device, self.workers, self.each, self.sanitizer, self.folder = device, workers, each, sanitizer, folder
        self.start = time.monotonic()
        self.end = self.start + seconds
        self.todo: deque[Chunk] = deque()
        self.under_way = 0
        self.results: list[dict[str, Any]] = []
        self.turn = threading.Condition()
        report.parent.mkdir(parents=True, exist_ok=True)
        self.report = report
        report.write_text("")

    def run(self, chunks: Sequence[Chunk]) -> None:
        self.todo.extend(chunks)
        with ThreadPoolExecutor(self.workers) as threads:
            for worker in [threads.submit(self._work) for _ in range(self.workers)]:
                worker.result()

    def _work(self) -> None:
        while (chunk := self._next()) is not None:
            try:
                self._settle(chunk, *self._process(chunk))
            finally:
                with self.turn:
                    self.under_way -= 1
                    self.turn.notify_all()

    def _next(self) -> Chunk | None:
        """Waits while what is under way may leave something to do."""
        with self.turn:
            while not self.todo and self.under_way:
                self.turn.wait()
            if not self.todo or time.monotonic() > self.end:
                return None
            self.under_way += 1
            return self.todo.popleft()

    def _process(self, chunk: Chunk) -> tuple[list[dict[str, Any]], str, str]:
        """What the tests told, how the process ended, and what it printed."""
        with tempfile.TemporaryDirectory() as folder:
            told, printed = Path(folder, "told"), Path(folder, "printed")
            told.touch()
            command = [*chunk.prefix, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *WARNINGS, *chunk.options, *chunk.tests]
            of = environment(HOLOGRAM_TEST_DEVICE=self.device, HOLOGRAM_TEST_REPORT=str(told), **THREADS)
            with open(printed, "w") as out:
                try:
                    status = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, cwd=self.folder, env=of, timeout=self.each).returncode
                    ended = "" if status == 0 else f"status {status}"
                except subprocess.TimeoutExpired:
                    ended = f"hung for {self.each:.0f} s"
            return [json.loads(line) for line in told.read_text().splitlines()], ended, printed.read_text(errors="replace")

    def _settle(self, chunk: Chunk, told: list[dict[str, Any]], ended: str, printed: str) -> None:
        """Notes results. What a process did not come to is done by another, and what broke the device is looked at by the sanitizer."""
        results = {t["test"]: t for t in told if "outcome" in t}
        begun = next((t["test"] for t in reversed(told) if t["test"] not in results), None)
        if begun is not None:
            what = "hung" if "hung" in ended else "died"
            results[begun] = {"test": begun, "outcome": what, "seconds": 0.0, "words": f"{ended}\n{printed[-3000:]}"}
        left = [t for t in chunk.tests if t not in results]
        if len(left) == len(chunk.tests):  # none of them began: to try again would end as this did
            results = {t: {"test": t, "outcome": "died", "seconds": 0.0, "words": f"{ended}\n{printed[-3000:]}"} for t in left}
            left = []
        if chunk.prefix and ended and not any(r["outcome"] in BAD for r in results.values()):
            results[chunk.label] = {"test": chunk.label, "outcome": "unsound", "seconds": 0.0, "words": printed[-6000:]}
        broken = [t for t, r in results.items() if r["outcome"] in ("lost", "died", "hung")]
        with self.turn:
            if left:
                self.todo.appendleft(chunk._replace(tests=left))
            if self.sanitizer is not None and not chunk.prefix:
                self.todo.extend(Chunk([t], f"memcheck of {t}", sanitized(self.sanitizer, "memcheck"), chunk.options) for t in broken)
            self._tell([{**r, "chunk": chunk.label} for r in results.values()], chunk)

    def _tell(self, results: list[dict[str, Any]], chunk: Chunk) -> None:
        self.results += results
        with open(self.report, "a") as report:
            report.writelines(json.dumps(r) + "\n" for r in results)
        counts = Counter(r["outcome"] for r in results)
        said = ", ".join(f"{n} {what}" for what, n in counts.items())
        what = chunk.label or " ".join(dict.fromkeys(t.partition("::")[2].partition("[")[0] for t in chunk.tests))
        print(f"[{time.monotonic() - self.start:4.0f} s, {sum(len(c.tests) for c in self.todo)} to go] {said}: {what}", flush=True)
        for r in results:
            if r["outcome"] in BAD:
                print(f"--- {r['outcome']}: {r['test']}\n{r['words']}\n---", flush=True)

    def summary(self) -> str:
        left = [t for c in self.todo for t in c.tests]
        counts = Counter(r["outcome"] for r in self.results)
        lines = [
            f"{', '.join(f'{n} {what}' for what, n in counts.items())} in {time.monotonic() - self.start:.0f} s; every result is in {self.report}"
        ]
        lines += [f"{r['outcome']}: {r['test']}" for r in self.results if r["outcome"] in BAD]
        lines += [f"no time for {len(left)} tests, from {left[0]} on"] if left else []
        slow = sorted(self.results, key=lambda r: -r["seconds"])[:3]
        lines += [f"slowest: {r['test']} {r['seconds']:.1f} s" for r in slow]
        return "\n".join(lines)

    @property
    def failed(self) -> bool:
        return bool(self.todo) or not self.results or any(r["outcome"] in BAD for r in self.results)
