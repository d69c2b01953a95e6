"""Many cases in worker processes: crashes and hangs are found with their seeds.

A worker says on its standard output, a line of JSON each, which seed it begins and what became of it. The parent watches: a worker that dies, or says
nothing for :data:`LIMIT` seconds, is replaced by one that goes on behind the seed it was at.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

LIMIT = 60.0  # seconds that one case may take
AFTER = 1500  # cases after which a worker is replaced


@dataclass
class Tally:
    cases: int = 0
    ran: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    functions: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    failures: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    seconds: float = 0.0


def work(start: int, stop: int | None, step: int, out: TextIO) -> None:
    """A worker's life: the seeds ``start``, ``start + step``, …"""
    import faulthandler

    import hologram as hg

    from .program import functions
    from .trial import forget, run_seed

    hg.settings.cache = False
    faulthandler.enable()
    seed = start
    while stop is None or seed < stop:
        _say(out, {"begin": seed})
        faulthandler.dump_traceback_later(LIMIT * 0.9, exit=True)
        outcome = run_seed(seed)
        faulthandler.cancel_dump_traceback_later()
        used = sorted(set(functions(outcome.case.program.steps))) if outcome.case else []
        refused = dict(outcome.case.refusals) if outcome.case else {}
        found = [{"key": f.key, "text": f.text[-1500:], "executor": f.executor} for f in outcome.failures]
        _say(out, {"end": seed, "ran": outcome.ran, "skipped": outcome.skipped, "used": used, "refused": refused, "failures": found})
        if (seed - start) // step % 100 == 99:
            forget()
        seed += step


def _say(out: TextIO, what: dict[str, Any]) -> None:
    out.write(json.dumps(what) + "\n")
    out.flush()


class Worker:
    def __init__(self, number: int, start: int, stop: int | None, step: int, heard: queue.Queue[Any]) -> None:
        self.number, self.stop, self.step, self.heard = number, stop, step, heard
        self.begin(start)

    def begin(self, seed: int) -> None:
        self.next, self.at, self.since, self.done = seed, None, time.monotonic(), 0
        self.errors = tempfile.TemporaryFile()
        last = seed + AFTER * self.step if self.stop is None else min(self.stop, seed + AFTER * self.step)
        words = [sys.executable, "-W", "ignore", "-m", "tests.fuzz", "--worker", str(seed), str(last), str(self.step)]
        environment = os.environ | {"HOLOGRAM_VERIFY": "1", "HOLOGRAM_CACHE": "0", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=self.errors, text=True, env=environment)
        self.last = last
        self.listener = threading.Thread(target=self._listen, args=(self.process,), daemon=True)
        self.listener.start()

    def _listen(self, process: Any) -> None:
        for line in process.stdout:
            self.heard.put((self, process, line))
        process.wait()
        self.heard.put((self, process, None))

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.listener.join()
        self.process.stdout.close()  # type: ignore[union-attr]
        self.errors.close()

    def last_words(self) -> str:
        self.errors.seek(0)
        said = self.errors.read().decode(errors="replace")
        return said if len(said) < 4000 else f"{said[:1000]}\n…\n{said[-3000:]}"  # of a stack the reason stands first


def campaign(
    start: int, count: int | None, minutes: float | None, workers: int, out: Path, quiet: bool = False, stopped: threading.Event | None = None
) -> Tally:
    """Runs seeds from ``start``: ``count`` of them, or for some minutes, or until it is ``stopped``."""
    tally, heard = Tally(), queue.Queue()  # type: ignore[var-annotated]
    stop = None if count is None else start + count
    begun = time.monotonic()
    running = [Worker(i, start + i, stop, workers, heard) for i in range(workers)]
    shown = begun
    while running:
        try:
            worker, process, line = heard.get(timeout=1.0)
        except queue.Empty:
            worker = process = line = None  # type: ignore[assignment]
        now = time.monotonic()
        tally.seconds = now - begun
        if (stopped is not None and stopped.is_set()) or (minutes is not None and now - begun > 60 * minutes):
            break
        if worker is not None and process is worker.process:
            if line is None:
                _ended(worker, running, tally, out, start)
            else:
                _heard(worker, json.loads(line), tally, out)
        for w in running:
            if w.at is not None and now - w.since > LIMIT:
                w.process.send_signal(signal.SIGKILL)
                w.since = now
        if not quiet and now - shown > 30:
            shown = now
            print(f"{tally.cases} cases in {tally.seconds:.0f} s, {len(tally.failures)} kinds of failure", flush=True)
    for w in running:
        w.end()
    return tally


def _heard(worker: Worker, said: dict[str, Any], tally: Tally, out: Path) -> None:
    if "begin" in said:
        worker.at, worker.since = said["begin"], time.monotonic()
        return
    worker.at, worker.next = None, said["end"] + worker.step
    tally.cases += 1
    tally.ran.update(said["ran"])
    tally.skipped.update(said["skipped"])
    tally.functions.update(said["used"])
    tally.refusals.update(said["refused"])
    for f in said["failures"]:
        _failed(tally, said["end"], f, out)


def _ended(worker: Worker, running: list[Worker], tally: Tally, out: Path, start: int) -> None:
    if worker.at is not None:
        words = worker.last_words()
        kind = "hang" if "Timeout" in words or worker.process.returncode == -9 else "crash"
        frame = next((x.strip() for x in words.splitlines() if "/hologram/" in x), "")
        key = f"{kind} {frame[frame.rfind('/') + 1 :]}"
        _failed(tally, worker.at, {"key": key, "text": words, "executor": kind}, out)
        tally.cases += 1
        worker.next = worker.at + worker.step
    elif worker.process.returncode:
        _failed(tally, worker.next, {"key": "worker", "text": worker.last_words(), "executor": "worker"}, out)
        worker.next += worker.step
    worker.end()
    if worker.stop is not None and worker.next >= worker.stop:
        running.remove(worker)
    else:
        worker.begin(worker.next)


def _failed(tally: Tally, seed: int, failure: dict[str, Any], out: Path) -> None:
    seen = tally.failures.setdefault(failure["key"], [])
    seen.append({"seed": seed, **failure})
    if len(seen) == 1:
        print(f"seed {seed}: {failure['key']}\n    {failure['text'].strip().splitlines()[-1][:300] if failure['text'].strip() else ''}", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "failures.jsonl", "a", encoding="utf-8") as file:  # of one kind may be several defects
        file.write(json.dumps({"seed": seed, **failure}) + "\n")
