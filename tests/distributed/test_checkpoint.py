"""Checkpoints: what is written on one mesh is read on another, and one that was not finished is never read."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
import hologram.numpy as hnp
from hologram import errors
from hologram.distributed import NamedSharding, PartitionSpec, checkpoint, process_allgather, process_index, simulate
from hologram.distributed.checkpoint import folder
from tests.support.runner.libraries import library

library("safetensors.numpy")
P = PartitionSpec
TYPES = ["float32", "float64", "float16", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, "int8", "uint64", "bool", "complex64", "complex128"]
MESHES = [(1, 1), (2, 1), (1, 2), (2, 2), (4, 1)]
SPECS = [P(), P("a"), P(None, "b"), P("b", "a"), P(("a", "b")), P(None, ("b", "a"))]


def array(dtype: Any, shape: tuple[int, ...] = (4, 8), seed: int = 0) -> np.ndarray:
    bits = np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 100, shape)
    return bits.astype(dtype)


def on_mesh(shape: tuple[int, int], main: Callable[[Any], Any]) -> list[Any]:
    """``main(mesh)`` on each rank of a simulated mesh."""
    return simulate(shape[0] * shape[1], timeout=30).run(lambda: main(hg.make_mesh(shape, ("a", "b"))))


def put(x: np.ndarray, mesh: Any, spec: PartitionSpec) -> Any:
    return hg.device_put(x, NamedSharding(mesh, spec))


cases = st.tuples(st.sampled_from(MESHES), st.lists(st.sampled_from(SPECS), min_size=3, max_size=3))


@given(cases, cases, st.lists(st.sampled_from(TYPES), min_size=3, max_size=3))
@settings(max_examples=12)
def test_what_one_mesh_writes_another_reads(tmp_path_factory: Any, wrote: Any, reads: Any, types: list[Any]) -> None:
    directory = tmp_path_factory.mktemp("checkpoints")
    arrays = [array(dtype, seed=i) for i, dtype in enumerate(types)]
    on_mesh(wrote[0], lambda mesh: checkpoint.save(directory, [put(x, mesh, spec) for x, spec in zip(arrays, wrote[1], strict=True)], 7))

    def read(mesh: Any) -> Any:
        like = [put(np.zeros_like(x), mesh, spec) for x, spec in zip(arrays, reads[1], strict=True)]
        found = checkpoint.restore(directory, like)
        return [x.shape for x in like] == [x.shape for x in found], [np.asarray(hg.device_put(x, NamedSharding(mesh, P()))) for x in found]

    for same_shapes, found in on_mesh(reads[0], read):
        assert same_shapes
        for x, y in zip(arrays, found, strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x, y)


def test_files_have_each_element_once_and_about_as_many_each(tmp_path: Path) -> None:
    whole, divided = array("float32", (8, 100)), array("float32", (400,))
    on_mesh((2, 2), lambda mesh: checkpoint.save(tmp_path, {f"w{i}": whole for i in range(8)} | {"m": put(divided, mesh, P("a"))}, 0))
    files = sorted((tmp_path / "step_00000000").glob("*.safetensors"))
    read = library("safetensors.numpy").load_file
    sizes = [sum(x.nbytes for x in read(f).values()) for f in files]
    assert len(files) == 4 and sum(sizes) == 8 * whole.nbytes + divided.nbytes and max(sizes) < 1.2 * min(sizes)


def test_leaves_come_back_as_they_went(tmp_path: Path) -> None:
    state = {
        "layers": [(hnp.arange(3), np.float32([1, 2]))],
        "scalars": {"n": np.int8(3), "empty": np.zeros((0, 2)), "z": hnp.asarray(1j)},
        "step": 3,
        "rate": 0.5,
        "name": "adam",
        "flag": True,
        "none": None,
    }
    checkpoint.save(tmp_path, state, 3)
    found = checkpoint.restore(str(tmp_path), state, step=3)
    assert hg.tree.structure(found) == hg.tree.structure(state)
    for x, y in zip(hg.tree.leaves(found), hg.tree.leaves(state), strict=True):
        assert isinstance(x, type(y)) or isinstance(y, np.generic)
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
    described = hg.tree.map(lambda x: hg.ShapeDtypeStruct(x.shape, x.dtype) if hasattr(x, "shape") else x, state)
    assert isinstance(checkpoint.restore(tmp_path, described)["layers"][0][1], hg.Tensor)
    checkpoint.save(tmp_path, hnp.ones(2), 4)
    np.testing.assert_array_equal(np.asarray(checkpoint.restore(tmp_path, hnp.zeros(2))), 1)


def test_a_checkpoint_that_was_interrupted_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever system call is the last: the checkpoint before is the latest, and the next attempt succeeds."""
    checkpoint.save(tmp_path, {"x": hnp.zeros(3), "step": 0}, 0)
    calls: list[str] = []
    left = [0]

    class PowerLoss(BaseException):
        """What nothing cleans up after."""

    def failing(name: str, original: Any) -> Any:
        def call(*args: Any, **keywords: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise PowerLoss(name)
            calls.append(name)
            return original(*args, **keywords)

        return call

    for name in ("replace", "rename", "fsync"):
        monkeypatch.setattr(os, name, failing(name, getattr(os, name)))
    attempts = 0
    while checkpoint.latest(tmp_path) == 0:
        attempts += 1
        left[0] = attempts
        try:
            checkpoint.save(tmp_path, {"x": hnp.ones(3), "step": 1}, 1)
        except PowerLoss:
            pass
        found = checkpoint.restore(tmp_path, {"x": hnp.zeros(3), "step": 0})
        assert np.asarray(found["x"]).tolist() == [found["step"]] * 3
    assert attempts > 4 and calls[-1] == "rename"  # the folder's name is what makes it complete


def damage_file(path: Path) -> None:
    with open(path / folder.file_name(1, 2), "r+b") as file:
        file.truncate(40)


def change_index(path: Path, **changes: Any) -> None:
    index = json.loads((path / "index.json").read_text())
    (path / "index.json").write_text(json.dumps(index | changes))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_file, "rank_00001_of_00002.safetensors has 40 bytes, and the index says"),
        (lambda path: (path / folder.file_name(0, 2)).unlink(), "safetensors is missing"),
        (lambda path: (path / "index.json").unlink(), "index.json is missing"),
        (lambda path: (path / "index.json").write_text("{"), "the index is damaged"),
        (lambda path: (path / "index.json").write_text("[]"), "the index is damaged"),
        (lambda path: change_index(path, version=2), "version 2, and not of"),
        (lambda path: change_index(path, format="other"), "an index of 'other'"),
    ],
)
def test_a_damaged_checkpoint_is_not_read(tmp_path: Path, damage: Any, message: str) -> None:
    state = lambda mesh: {"x": put(array("float32"), mesh, P("a"))}  # noqa: E731
    on_mesh((2, 1), lambda mesh: [checkpoint.save(tmp_path, state(mesh), step) for step in (1, 2)])
    damage(tmp_path / "step_00000002")
    assert checkpoint.latest(tmp_path) == 1
    with pytest.raises(errors.CheckpointError, match=message):
        on_mesh((2, 1), lambda mesh: checkpoint.restore(tmp_path, state(mesh), step=2))
    on_mesh((2, 1), lambda mesh: checkpoint.save(tmp_path, state(mesh), 2))  # what is not complete is written anew
    assert checkpoint.steps(tmp_path) == [1, 2]


def test_contents_that_do_not_fit_the_index(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, {"x": hnp.ones(6)}, 1)
    path = tmp_path / "step_00000001"
    index = json.loads((path / "index.json").read_text())
    (file,) = index["files"]
    data = (path / file).read_bytes()
    (path / file).write_bytes(b"\xff" * len(data))
    with pytest.raises(errors.CheckpointError, match="x cannot be read"):
        checkpoint.restore(tmp_path, {"x": hnp.ones(6)})
    (path / file).write_bytes(data)
    change_index(path, arrays={"x": index["arrays"]["x"] | {"parts": []}})
    with pytest.raises(errors.CheckpointError, match="parts of x are missing"):
        checkpoint.restore(tmp_path, {"x": hnp.ones(6)})


def test_older_checkpoints_are_deleted(tmp_path: Path) -> None:
    for step in range(5):
        checkpoint.save(tmp_path, {"step": step}, step, keep=2)
    assert checkpoint.steps(tmp_path) == [3, 4] and len(os.listdir(tmp_path)) == 2
    (tmp_path / "step_of_mine").mkdir()
    assert checkpoint.steps(tmp_path) == [3, 4]


@pytest.mark.parametrize(
    ("like", "message"),
    [
        ({"x": np.zeros(3), "step": 0}, r"x is float32\[3\], and in the state float64\[3\]"),
        ({"x": np.zeros(4, np.float32), "step": 0}, r"x is float32\[3\], and in the state float32\[4\]"),
        ({"x": np.zeros(3, np.float32), "step": 0.0}, "step is int, and in the state float"),
        ({"x": np.zeros(3, np.float32)}, "step is in the checkpoint, and not in the state; 1 in all"),
        ({"x": np.zeros(3, np.float32), "step": 0, "y": 1}, "y the checkpoint has not"),
        ({"x": 1, "step": 0}, "in the state int"),
    ],
)
def test_states_that_are_not_what_was_saved(tmp_path: Path, like: Any, message: str) -> None:
    checkpoint.save(tmp_path, {"x": np.ones(3, np.float32), "step": 3}, 3)
    with pytest.raises(errors.CheckpointError, match=message):
        checkpoint.restore(tmp_path, like)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda d: checkpoint.save(d, {"f": abs}, 0), errors.ArgumentError, "f is a builtin_function_or_method: a state has"),
        (lambda d: checkpoint.save(d, {"a.b": 1, "a": {"b": 2}}, 0), errors.ArgumentError, "two leaves of the state have the name 'a.b'"),
        (lambda d: checkpoint.save(d, [1], -1), errors.ArgumentError, "a step is not negative"),
        (lambda d: checkpoint.save(d, [1], 0, keep=0), errors.ArgumentError, "at least one checkpoint is kept"),
        (lambda d: checkpoint.save(3, [1], 0), errors.ArgumentError, "a directory is a path, not a int"),
        (lambda d: [checkpoint.save(d, [1], 0), checkpoint.save(d, [1], 0)], errors.ArgumentError, "step_00000000 is there already"),
        (lambda d: checkpoint.restore(d, [1]), errors.CheckpointError, "there is no complete checkpoint in"),
        (lambda d: checkpoint.restore(d, [1], step=2), errors.CheckpointError, "there is no complete checkpoint: .*index.json is missing"),
    ],
)
def test_misuse(tmp_path: Path, call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call(tmp_path)


def test_ranks_that_save_different_states_and_ranks_that_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(errors.DistributedError, match="ranks 0 and 1 save states of different"):
        simulate(2).run(lambda: checkpoint.save(tmp_path, {"x": np.zeros(2 + process_index())}, 0))
    told: dict[int, BaseException] = {}

    def disk_full(file: Path, parts: Any) -> int:
        if process_index() == 1:
            raise OSError("no space left")
        return folder.write_parts(file, parts)

    def main() -> None:
        try:
            checkpoint.save(tmp_path, {"x": np.zeros(2)}, 0)
        except Exception as e:
            told[process_index()] = e

    monkeypatch.setattr("hologram.distributed.checkpoint.saving.write_parts", disk_full)
    simulate(3).run(main)
    assert isinstance(told[1], OSError) and checkpoint.latest(tmp_path) is None
    assert all(isinstance(told[r], errors.CheckpointError) and "rank 1 has failed" in str(told[r]) for r in (0, 2))


def test_a_library_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(errors.UnsupportedError, match=r"pip install hologram-compute\[checkpoint\]"):
        checkpoint.save(tmp_path, [1], 0)


def test_training_goes_on_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    """A state that is divided among two ranks goes on among four, with the bits of one that never stopped on four."""

    def train(mesh: Any, state: Any, steps: range) -> Any:
        step = hg.jit(hg.shard_map(lambda w: w * 0.5 + 1, mesh, P(("a", "b")), P(("a", "b"))))
        for _ in steps:
            state = {"w": step(state["w"]), "step": state["step"] + 1}
        return state

    begin = lambda mesh: {"w": put(array("float32", (8,)), mesh, P(("a", "b"))), "step": 0}  # noqa: E731
    on_mesh((2, 1), lambda mesh: checkpoint.save(tmp_path, train(mesh, begin(mesh), range(3)), 3))
    resumed = on_mesh((2, 2), lambda mesh: process_allgather(train(mesh, checkpoint.restore(tmp_path, begin(mesh)), range(3, 6))["w"]))
    straight = on_mesh((2, 2), lambda mesh: process_allgather(train(mesh, begin(mesh), range(6))["w"]))
    np.testing.assert_array_equal(np.asarray(resumed[0]), np.asarray(straight[0]))
