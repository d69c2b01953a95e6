"""Builds the documentation site: ``python -m docs.site``. Warnings are errors, links within the site are checked, nothing comes from the network."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from docs.site import html_check, reference, results, staging

HERE = Path(__file__).parent
UNEXECUTED = ("-D", "nb_execution_mode=off", "-D", "suppress_warnings=ref.python,myst-nb.lexer")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m docs.site", description=__doc__)
    parser.add_argument("--output", type=Path, default=staging.ROOT / "out" / "site", help="where the site goes (out/site)")
    parser.add_argument("--results", type=Path, default=staging.ROOT / "benchmarks" / "results", help="measured by make bench")
    parser.add_argument("--without-tutorials", action="store_true", help="leaves the tutorials' code unexecuted, for looking at pages quickly")
    options = parser.parse_args()
    start = time.perf_counter()
    source = options.output.with_name(options.output.name + "-source")
    prepare(source, options.results)
    if (options.output / "objects.inv").exists():  # an earlier build, with pages that may be gone
        shutil.rmtree(options.output)
    if code := spelling(source) or render(source, options.output, executes=not options.without_tutorials):
        return code
    faults = html_check.faults(options.output)
    print(*faults, sep="\n", end="\n" if faults else "")
    count = sum(1 for _ in options.output.rglob("*.html"))
    print(f"{count} pages in {options.output} after {time.perf_counter() - start:.0f} s; {len(faults)} faults")
    return 1 if faults else 0


def spelling(source: Path) -> int:
    """Looks for common misspellings; words that are right here are in words.txt."""
    command = [sys.executable, "-m", "codespell_lib", "--builtin", "clear,rare", "--ignore-words", str(HERE / "words.txt"), "--skip", "*.png"]
    return subprocess.run([*command, str(source)], check=False).returncode


def render(source: Path, output: Path, executes: bool) -> int:
    """Runs Sphinx, from nothing: what tutorials show depends on more than their text."""
    beside = source.with_name(source.name + "-doctrees"), jupyter(source.with_name(source.name + "-ipython"))
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "--fresh-env", "--quiet", "--jobs", "auto", "-b", "html"]
    command += ["--conf-dir", str(HERE), "-d", str(beside[0]), *([] if executes else UNEXECUTED)]
    environment = os.environ | {"PYTHONPATH": str(staging.ROOT), "IPYTHONDIR": str(beside[1])}
    code = subprocess.run([*command, str(source), str(output)], check=False, cwd=staging.ROOT, env=environment).returncode
    if code:
        print(*(path.read_text() for path in (output / "reports").rglob("*.log")), sep="\n")  # of tutorials that raised
    return code


def jupyter(folder: Path) -> Path:
    """A configuration of the tutorials' kernels, in place of the user's: only what is printed and drawn is shown."""
    lines = ("c.IPKernelApp.log_level = 'ERROR'", "c.HistoryManager.enabled = False", "c.InteractiveShell.ast_node_interactivity = 'none'")
    staging.write_if_changed(folder / "profile_default" / "ipython_kernel_config.py", "\n".join(lines) + "\n")
    return folder


def prepare(source: Path, measured: Path) -> None:
    """Writes all that Sphinx reads, and takes away what an earlier build left and this one does not have."""
    written = staging.stage(source) | reference.write(source / "reference") | results.write(source, measured)
    for path in source.rglob("*"):
        if path.is_file() and path not in written:
            path.unlink()


if __name__ == "__main__":
    sys.exit(main())
