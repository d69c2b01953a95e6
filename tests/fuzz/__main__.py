"""``python -m tests.fuzz``: see the package."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from .campaign import LIMIT, Tally, campaign, work


def main(words: list[str]) -> int:
    os.environ.setdefault("HOLOGRAM_VERIFY", "1")  # before Hologram is imported
    if words[:1] == ["--worker"]:
        work(int(words[1]), int(words[2]), int(words[3]), sys.stdout)
        return 0
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Random programs, run in many ways that must agree.")
    parser.add_argument("--seed", type=int, help="the first seed; alone, one case is run and told about")
    parser.add_argument("--count", type=int, help="how many cases")
    parser.add_argument("--minutes", type=float, help="how long")
    parser.add_argument("--workers", type=int, default=2, help="processes (2)")
    parser.add_argument("--out", type=Path, default=Path("out/fuzz"), help="the folder for scripts of failures (out/fuzz)")
    parser.add_argument("--every", action="store_true", help="with one case: all executors, not those that its seed draws")
    parser.add_argument("--no-shrink", action="store_true", help="failures are written as they were found")
    given = parser.parse_args(words)
    if given.count is None and given.minutes is None:
        if given.seed is None:
            parser.error("say --seed, --count or --minutes")
        return one(given.seed, given.every, given.out, not given.no_shrink)
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())  # the report follows
    tally = campaign(given.seed or 0, given.count, given.minutes, given.workers, given.out, stopped=stopped)
    report(tally)
    for key, found in tally.failures.items():
        _write(found[0]["seed"], key, given.out, not given.no_shrink)
    return 1 if tally.failures else 0


def _write(seed: int, key: str, out: Path, shrink: bool) -> None:
    """The script of a failure, made in a process of its own: it may crash."""
    subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.fuzz", "--seed", str(seed), "--out", str(out), *([] if shrink else ["--no-shrink"])],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=20 * LIMIT,
        check=False,
    )


def one(seed: int, every: bool, out: Path, shrink: bool) -> int:
    """One case: its program, what ran, and what failed."""
    import hologram as hg

    from .generate import Case
    from .program import source
    from .script import script
    from .shrink import Alike, shrunk
    from .trial import Failure, run_case, run_seed

    hg.settings.cache = False
    from .generate import BadDraft, generate

    try:
        case = generate(seed)
        print(source(case.program))
        print(f"\ntransform {case.transform or 'none'}, thresholds {json.dumps(case.thresholds)}", flush=True)
        out.mkdir(parents=True, exist_ok=True)
        first = Failure(seed, "as generated", "", "", case.program, case.transform, case.thresholds)
        (out / f"seed-{seed}.py").write_text(script(first))  # before anything may crash
    except BadDraft:
        pass
    outcome = run_seed(seed, (lambda x: True) if every else None)
    print(f"ran {dict(outcome.ran)}, skipped {dict(outcome.skipped)}")
    for f in outcome.failures:
        print(f"\n{f.key}\n{f.text}", flush=True)
        small = f
        if shrink and outcome.case is not None:
            alike = Alike(f.key, f.executor)
            c = shrunk(Case(seed, f.program, f.transform, f.thresholds), alike)
            again = run_case(c, only=lambda x, n=f.executor: x.name in (n, "exact jit"))
            small = next((g for g in again.failures if g.key == f.key), f)
        path = out / f"seed-{seed}.py"
        path.write_text(script(small))
        print(f"{path}\n{source(small.program)}\n{small.text[-600:]}\nthresholds {small.thresholds}")
    if not outcome.failures:
        print("nothing failed")
    return 1 if outcome.failures else 0


def report(tally: Tally) -> None:
    from .catalogue import NOT_STEPS, catalogue

    rate = tally.cases / tally.seconds if tally.seconds else 0.0
    print(f"\n{tally.cases} cases in {tally.seconds:.0f} s ({rate:.1f} a second)")
    for name, n in tally.ran.most_common():
        print(f"  {n:8d} {name}")
    print("skipped:")
    for name, n in tally.skipped.most_common(25):
        print(f"  {n:8d} {name}")
    names = catalogue()
    missing = [n for n in names if n not in tally.functions]
    print(f"functions: {len(names) - len(missing)} of {len(names)} reached; {len(NOT_STEPS)} are no steps of a traced program")
    if missing:
        print("never reached: " + ", ".join(f"{n} ({tally.refusals.get(n, 0)} refusals)" for n in missing))
    if tally.failures:
        print(f"{len(tally.failures)} kinds of failure:")
        for key, found in sorted(tally.failures.items(), key=lambda kv: -len(kv[1])):
            print(f"  {len(found):5d} {key}: seeds {', '.join(str(f['seed']) for f in found[:5])}")
    else:
        print("no failures")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
