"""``torch.compile(backend="hologram")`` where the package is on the path and not installed."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from hologram_torch import discovery

pytestmark = pytest.mark.costly(2)

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
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
    tree: Distribution = discovery.SourceTree()
    assert tree.metadata["Name"] == PROJECT["name"]
    assert {e.name: e.value for e in tree.entry_points} == PROJECT["entry-points"][discovery.GROUP]
    with pytest.raises(FileNotFoundError, match="source tree"):
        tree.locate_file("hologram")


BESIDE_A_GPU = """
import torch
torch.accelerator.current_accelerator = lambda check_available=False: torch.device("cuda")
torch.cuda.device_count = lambda: 1
import hologram.errors, hologram_torch
assert not hologram_torch.is_available() and not torch._C._get_privateuse1_backend_name() == "hologram"
try:
    hologram_torch.device()
except hologram.errors.DeviceError as e:
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


BY_NAME = """
import torch, sys
from tests.support.torch.torch_state import differences, state

def trained(backend):
    x = torch.randn(3, requires_grad=True)
    torch.compile(lambda t: torch.nn.functional.dropout(t * 2 + 1).sin().sum(), backend=backend)(x).backward()
    with torch.no_grad():
        torch.compile(lambda t: t.cos(), backend=backend)(x)
    return x.grad

import hologram.trace.tensor  # which shows tracebacks in its way, and other libraries its arrays
trained("aot_eager")  # what Dynamo and AOTAutograd make of a process
before = state()
assert torch._dynamo.list_backends() and not differences(before, state())
assert "hologram_torch" not in sys.modules
torch._dynamo.lookup_backend("hologram")
print(*differences(before, state()), sep="\\n")
torch._dynamo.reset()
trained("hologram")
print(*differences(before, state()), sep="\\n")

import hologram_torch
assert hologram_torch.is_available()  # from the first use of a name of its own on
assert (torch.ones(3, device=hologram_torch.device()) + 1).tolist() == [2, 2, 2] and hologram_torch.is_available()
found = differences(before, state())
assert any("accelerator is available: False" in line for line in found) and any("kernels of PrivateUse1" in line for line in found), found
"""


def test_naming_the_backend_changes_nothing_else(tmp_path: Path) -> None:
    """The package is imported by torch alone, which finds it by its entry point."""
    installed = tmp_path / "hologram_compute-0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PROJECT['name']}\nVersion: 0\n")
    entries = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in found.items()) for group, found in PROJECT["entry-points"].items()]
    (installed / "entry_points.txt").write_text("".join(entries))
    path = os.pathsep.join(map(str, (tmp_path, ROOT)))
    done = subprocess.run([sys.executable, "-c", BY_NAME], cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stdout + done.stderr
