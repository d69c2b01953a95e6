"""``python tests/gpu [--device NAME]``: the tests of this folder on a GPU, and a sample of them under compute-sanitizer where there is one.

Without ``--device`` it is the first GPU of Metal, CUDA or OpenCL. Where there is none it says why, and fails. Whole functions come first, then the op
table and random graphs, several processes at a time; what is to be known is printed as it is found, and kept in ``out/gpu-tests.jsonl``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # where Hologram is not installed

from tests.gpu.runs import Chunk, Runs, collected, sanitized

SANITIZER_TOOLS = ("memcheck", "racecheck", "synccheck")
MANY = ("test_the_device_gives_the_reference", "test_random_graphs", "test_gathers_scatters")  # after all others
CHUNK = 6  # tests of a process
EACH = 150.0  # seconds that they take at most, on a GPU


def main() -> int:
    options = _options()
    import hologram as hg
    from hologram.ir.devices import accelerator, resolve

    name = resolve(options.device) if options.device else accelerator()
    if name is None:
        print(f"there is no GPU to test:\n{hg.devices()}", file=sys.stderr)
        return 1
    print(f"testing {name}: {hg.devices().details.get(name, '')}", flush=True)
    cuda = name.startswith("cuda")
    sanitizer = shutil.which("compute-sanitizer") if cuda else None
    if sanitizer is None:
        print("no compute-sanitizer for this device: its part is left out")
    workers = options.workers or (max(1, min(12, (os.cpu_count() or 2) - 2)) if cuda else 1)
    each = options.each or (EACH if cuda else 6 * EACH)  # PoCL compiles and computes on the processor
    runs = Runs(name, workers, options.seconds, each, options.report, sanitizer)
    runs.run(_plan([t for t in collected() if options.keyword in t], () if options.sample else ("--all",), sanitizer, workers))
    print(runs.summary(), flush=True)
    return int(runs.failed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="such as cuda:1; opencl runs them on any OpenCL device")
    parser.add_argument("--sample", action="store_true", help="a sample of the generated cases, not all")
    parser.add_argument("-k", "--keyword", default="", help="only tests whose name has this in it")
    parser.add_argument("--workers", type=int, default=0, help="processes at a time")
    parser.add_argument("--seconds", type=float, default=480, help="after which no more tests begin")
    parser.add_argument("--each", type=float, default=0, help="seconds after which a process hangs")
    parser.add_argument("--report", type=Path, default=Path("out/gpu-tests.jsonl"))
    return parser.parse_args()


def _plan(tests: list[str], options: tuple[str, ...], sanitizer: str | None, workers: int) -> list[Chunk]:
    """Whole functions first, then what a sanitizer sees, then the many: neighbours, which take alike long, in different processes."""
    many = [t for t in tests if any(name in t for name in MANY)]
    few = [t for t in tests if t not in many]
    sample = [t for t in tests if "test_sample" in t]
    checked = [Chunk(sample, tool, sanitized(sanitizer, tool)) for tool in SANITIZER_TOOLS if sanitizer and sample]
    return [*_chunks(few, options), *checked, *_chunks(many, options)]


def _chunks(tests: list[str], options: tuple[str, ...]) -> list[Chunk]:
    count = -(-len(tests) // CHUNK)
    return [Chunk(tests[i::count], options=options) for i in range(count)]


if __name__ == "__main__":
    sys.exit(main())
