"""Ends of programs: whatever a rank does last, it ends with the status of its program, and nothing is torn down under a thread that uses it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.support.distributed.launching import ROOT, needs_torch

SECONDS = 240  # a loaded machine takes a while to import torch
REPEATS = 2
CRASHES = ("terminate called", "Fatal Python error", "pure virtual", "Segmentation")


@needs_torch
def test_ranks_end_as_their_programs_do(everything: bool) -> None:
    command = [sys.executable, "-m", "tests.support.distributed.exits", str(20 if everything else REPEATS)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS * (5 if everything else 1), check=True)
    pairs = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    assert pairs, ended.stderr
    wrong = [p for p in pairs if set(p["ended"]) != {p["want"]} or any(word in p["said"] for word in CRASHES)]
    assert not wrong, wrong
