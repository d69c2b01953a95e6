"""Tests reports and the site in a real browser, which it installs first where it can: ``python tools/browser.py`` (on Debian, as root).

Without a browser it says what is missing, and the tests say that they are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

TESTS = ["tests/report", "tests/docs/site/test_browser.py"]
PACKAGES = {"chromium": "chromium", "chromedriver": "chromium-driver"}  # Debian's, by command


def install() -> None:
    """Chromium and what drives it, from the system's packages."""
    missing = [package for command, package in PACKAGES.items() if shutil.which(command) is None]
    if not missing:
        return
    if shutil.which("apt-get") is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        print(f"no {' and no '.join(missing)}: on Debian or Ubuntu, as root, apt-get install {' '.join(missing)}", file=sys.stderr)
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-q"], ["install", "-q", "-y", "--no-install-recommends", *missing]):
        if subprocess.run(["apt-get", *command], env=environment, stdout=subprocess.DEVNULL).returncode:
            print(f"apt-get {command[0]} failed: there is no browser to test with", file=sys.stderr)
            return


if __name__ == "__main__":
    install()
    raise SystemExit(subprocess.run([sys.executable, "-m", "pytest", "-q", "-rs", *TESTS]).returncode)
