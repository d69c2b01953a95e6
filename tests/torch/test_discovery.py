"""``torch.compile(backend="hologram")`` where the package is on the path and not installed."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from hologram_torch import discovery

ROOT = Path(__file__).resolve().parents[2]
HIDDEN = """
import importlib.metadata as metadata, sys
find = metadata.MetadataPathFinder.find_distributions
named = lambda d: (d.metadata["Name"] or "").replace("_", "-").lower()
metadata.MetadataPathFinder.find_distributions = lambda *a: [d for d in find(*a) if named(d) != "hologram-compute"]
import torch
assert not metadata.entry_points(group="torch_dynamo_backends").select(name="hologram")
"""
COMPILED = """
import hologram_torch
assert dynamo == ("torch._dynamo" in sys.modules)
assert "hologram_torch.compile" not in sys.modules
print(torch.compile(lambda x: x * 2 + 1, backend="hologram")(torch.ones(2)).tolist(), "hologram" in torch._dynamo.list_backends())
"""


@pytest.mark.parametrize("before", ["dynamo = False", "import torch._dynamo; torch._dynamo.list_backends(); dynamo = True"])
def test_importing_the_package_is_enough(before: str) -> None:
    code = HIDDEN + before + COMPILED
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip() == "[3.0, 3.0] True"


def test_the_tree_says_what_an_installation_would() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    tree: Distribution = discovery.SourceTree()
    assert tree.metadata["Name"] == project["name"]
    assert {discovery.GROUP: {e.name: e.value for e in tree.entry_points}} == project["entry-points"]
    with pytest.raises(FileNotFoundError, match="source tree"):
        tree.locate_file("hologram")


BESIDE_A_GPU = """
import torch
torch.accelerator.current_accelerator = lambda check_available=False: torch.device("cuda")
torch.cuda.device_count = lambda: 1
import hologram_torch
assert not hologram_torch.is_available() and not torch._C._get_privateuse1_backend_name() == "hologram"
try:
    hologram_torch.device()
except hologram_torch.devices.DeviceError as e:
    assert "torch has a GPU (cuda)" in str(e)
else:
    raise AssertionError
hologram_torch.devices.enable()
hologram_torch.devices.enable()
assert hologram_torch.is_available() and (torch.ones(3, device=hologram_torch.device()) + 1).tolist() == [2, 2, 2]
"""


def test_the_device_keeps_out_of_the_way_of_a_gpu() -> None:
    """To torch it would be the one accelerator, and autograd of tensors on the GPU fails then."""
    subprocess.run([sys.executable, "-c", BESIDE_A_GPU], check=True)
