"""DDP, FSDP2, DTensors and functional collectives under ``torch.compile(backend="hologram")``, on two processes, against eager mode."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

from tests.support.distributed.launching import end, torchrun

# program: the graphs that are compiled, and into how many segments collectives cut them; forward and backward each
EXPECTED = {
    "ddp": (2, 2),
    "ddp_of_compiled": (2, 2),
    "ddp_of_many_buckets": (8, 8),  # torch cuts the graph where a bucket ends
    "fsdp": (4, 4),  # a graph for each block: its hooks gather and scatter
    "fsdp_of_compiled": (4, 4),
    "tensor_parallel": (2, 3),
    "dtensors": (2, 3),
    "functional": (1, 4),
    "functional_with_derivatives": (2, 8),
    "legacy": (1, 3),
}
SAMPLE = ["ddp_of_many_buckets", "fsdp_of_compiled", "tensor_parallel", "functional", "functional_with_derivatives"]


@pytest.mark.skipif(not torch.distributed.is_available() or sys.platform == "win32", reason="this build of torch has no gloo")
def test_programs_of_two_processes_are_those_of_eager_mode(tmp_path: Path, everything: bool) -> None:
    names = EXPECTED if everything else SAMPLE
    said = end(torchrun(2, "tests.support.distributed.torch_programs", tmp_path, *names), 200)
    for rank in (0, 1):
        assert (tmp_path / f"{rank}.json").is_file(), said
        found = json.loads((tmp_path / f"{rank}.json").read_text())
        for name in names:
            programs, segments = EXPECTED[name]
            assert "error" not in found[name], f"{name}: {found[name]['error']}"
            assert found[name]["apart"] < 1e-6, name
            assert found[name]["programs"] >= programs and found[name]["segments"] >= segments, (name, found[name])
