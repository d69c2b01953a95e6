"""The data of a report: complete, consistent with the compiler's own reports, plain JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from hologram.errors import ArgumentError
from hologram.report.data.overview import amount
from tests.support.pages.report_programs import block_gradient, loops_explained

PROGRAMS = {
    "gradient": block_gradient,
    "loops": loops_explained,
    "nothing": lambda: hg.explain(lambda x: x)(hnp.ones(3)),
    "sizes": lambda: hg.explain(hg.jit(lambda x: hnp.sum(x * x, axis=0), dynamic=True))(np.ones((30, 40))),
}


@pytest.fixture(scope="module", params=list(PROGRAMS))
def explained(request: pytest.FixtureRequest) -> tuple[Any, dict[str, Any]]:
    explanation = PROGRAMS[request.param]()
    return explanation, explanation.data()


def graphs(graph: dict[str, Any]) -> list[dict[str, Any]]:
    """A graph and those in its bodies."""
    return [graph, *[g for n in graph["nodes"] for b in n.get("bodies", ()) for g in graphs(b)]]


def test_it_is_plain_json(explained: tuple[Any, dict[str, Any]]) -> None:
    _, data = explained
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_graphs_are_those_of_the_text(explained: tuple[Any, dict[str, Any]]) -> None:
    explanation, data = explained
    (part,) = data["parts"]
    stages = {s["name"]: s for s in part["stages"]}
    lines = str(explanation.lowered.graph).splitlines()
    assert len(stages["traced"]["outputs"]) == len(lines[-1].split(","))
    for stage in stages.values():
        for g in graphs(stage):
            for i, n in enumerate(g["nodes"]):
                assert n["op"] in data["ops"] and all(x < i for x in n.get("in", ()))
                assert "place" not in n or n["place"] < len(data["places"])


def test_groups_compute_every_value_once(explained: tuple[Any, dict[str, Any]]) -> None:
    _, data = explained
    (part,) = data["parts"]
    for stage in (s for s in part["stages"] if "groups" in s):
        values = [v for g in stage["groups"] for v in g["values"]]
        assert len(values) == len(set(values))
        known = {k["id"] for k in part["kernels"]}
        for g in stage["groups"]:
            assert set(g["values"]) <= set(g["nodes"]) and set(g["kernels"]) <= known
            for i in g["nodes"]:  # what a group reads, it computes, or another one, or it is given
                given = {"input", "leaf"}
                assert all(x in g["nodes"] or x in values or stage["nodes"][x]["op"] in given for x in stage["nodes"][i].get("in", ()))


def test_kernels_and_steps_are_those_of_the_plan(explained: tuple[Any, dict[str, Any]]) -> None:
    explanation, data = explained
    (part,) = data["parts"]
    plan = explanation.compiled.executable.execution_plan
    main = [k for k in part["kernels"] if not k.get("once")]
    assert [k["text"] for k in main] == [str(k.kernel).rstrip() for k in plan.kernels]
    assert len(part["steps"]) == len(plan.steps) and sum(len(s["kernels"]) for s in part["steps"]) == len(main)
    assert all(k["least_seconds"] >= 0 and k["bytes"] >= 0 for k in main)
    assert len(part["copies"]) == len(plan.copies)


def test_firings_are_those_that_the_compiler_counts(explained: tuple[Any, dict[str, Any]]) -> None:
    explanation, data = explained
    (rewrites,) = [p["rewrites"] for p in data["parts"]]
    counted = explanation.compiled.reduction().rules
    steps = [s["rule"] for s in rewrites["steps"]]
    for name, rule in rewrites["rules"].items():
        if "guarantee" in rule and name in counted:
            assert steps.count(name) >= counted[name]  # those in bodies, and of later passes, too
    assert all(0 <= s["run"] < len(rewrites["passes"]) for s in rewrites["steps"])


def test_the_memory_map_is_the_plans(explained: tuple[Any, dict[str, Any]]) -> None:
    explanation, data = explained
    (part,) = data["parts"]
    memory = part["memory"]
    assert max(memory["alive"], default=0) == memory["lower_bound"] <= memory["arena"]
    at_peak = [memory["buffers"][i] for i in memory["at_peak"]]
    assert sum(-(-b["bytes"] // 64) * 64 for b in at_peak) == memory["lower_bound"]
    for b in memory["buffers"]:
        heir = memory["buffers"][b["heir"]] if "heir" in b else None
        assert heir is None or (heir["offset"], heir["bytes"], heir["first"]) == (b["offset"], b["bytes"], b["last"])
    if not explanation.lowered.sizes:
        assert memory["arena"] == explanation.compiled.memory_analysis().peak
    found = explanation.compiled.memory_analysis()
    if not explanation.lowered.sizes:
        summary = (found.argument_bytes, found.constant_bytes, found.result_bytes, found.scratch_bytes, found.held_bytes)
        assert summary == tuple(memory[k] for k in ("arguments", "constants", "results", "scratch", "folded"))
    else:
        assert (memory["arguments"], memory["results"]) == (30 * 40 * 8, 40 * 8)
    for b in memory["buffers"]:
        assert "page" not in b or b["offset"] == b["page"] * memory["page_bytes"] < memory["pages"] * memory["page_bytes"]


def test_three_answers_come_first(explained: tuple[Any, dict[str, Any]]) -> None:
    _, data = explained
    assert [a["question"].split()[0] for a in data["overview"]] == ["Which", "How", "Where"]
    assert all(a["answer"] and a["headline"] and a["link"].startswith("#") for a in data["overview"])


def test_buffers_in_one_place_are_counted_once() -> None:
    def chain(x: Any) -> Any:
        for axis in (0, 1, 0, 1):
            x = hnp.cumsum(hnp.tanh(x), axis=axis)
        return x

    data = hg.explain(chain)(np.ones((256, 256), np.float32)).data()
    memory = data["parts"][0]["memory"]
    assert any("heir" in b for b in memory["buffers"])
    assert sum(memory["buffers"][i]["bytes"] for i in memory["at_peak"]) <= memory["arena"]


def test_the_least_time_of_a_kernel_in_a_loop_is_told_with_all_its_work() -> None:
    data = hg.explain(lambda x: hg.fori_loop(0, 1000, lambda i, c: hnp.tanh(c) * 2, x))(np.ones(1000, np.float32)).data()
    (kernel,) = [k for k in data["parts"][0]["kernels"] if k["times"] == 1000]
    assert f"on {amount(kernel['bytes'] * 1000)}" in data["overview"][1]["answer"]


def sums_explained() -> Any:
    return hg.explain(lambda x: hnp.cumsum(hnp.cumsum(x, axis=0), axis=1))(np.ones((64, 64), np.float32))


def test_a_profile_gives_measured_times() -> None:
    explanation = sums_explained()
    ids = [k["id"] for k in explanation.data()["parts"][0]["kernels"]]
    times = [1e-3 * (i + 1) for i in range(len(ids))]
    entries = [{"name": "sum", "calls": 10, "seconds": 10 * t, "threads": [5 * t, 10 * t]} for t in times]
    others = [{"name": "sum", "program": 1, "calls": 1, "seconds": 1.0} for _ in range(len(ids) + 1)]
    for profile in ({"kernels": entries}, {"kernels": [*entries, *others]}, {"kernels": [*others, *[e | {"program": 2} for e in entries]]}):
        data = explanation.data(profile)
        kernels = data["parts"][0]["kernels"]
        assert [k["seconds"] for k in kernels] == pytest.approx(times) and kernels[0]["threads"] == pytest.approx([5e-4, 1e-3])
        assert data["profile"]["runs"] == 10 and "measured" in data["overview"][0]["answer"]
        assert data["overview"][0]["link"] == f"#kernel-{ids[-1]}"


def test_a_profile_and_the_report_say_the_same_of_kernels_in_loops() -> None:
    """A program all of whose kernels are in a loop, profiled in some calls: bytes, operations, and the share of the limit."""

    def f(x: Any) -> Any:
        return hg.fori_loop(0, 10, lambda i, y: hnp.tanh(y @ x), x)

    x = np.ones((128, 128), np.float32) / 128
    p = hg.profile(hg.jit(f), calls=7)(x)
    data = hg.explain(f)(x).data(p)
    (kernel,) = [k for k in data["parts"][0]["kernels"] if not k.get("once") and not k["is_copy"]]
    (record,) = [k for k in p.kernels if k.kind == "kernel"]
    assert data["profile"]["runs"] == 7 and (record.calls, record.bytes, record.flops) == (70, kernel["bytes"], kernel["flops"])
    share = p.measured.share_of_roofline(record)
    assert share is not None and share == pytest.approx(kernel["least_seconds"] * kernel["times"] / kernel["seconds"])


def test_a_profile_of_other_kernels_is_refused() -> None:
    explanation = sums_explained()
    count = len(explanation.data()["parts"][0]["kernels"])
    wrong = {"kernels": [{"name": "sum", "calls": 1, "seconds": 1.0, "tile": {"iterations": 12345}}] * count}
    with pytest.raises(ArgumentError, match="no program with"):
        explanation.data(wrong)


def test_kernels_too_short_to_time_share_the_time_of_their_loop() -> None:
    def looped(x: Any) -> Any:
        return hg.fori_loop(0, 20, lambda i, c: hnp.cumsum(c) * 0.5, x)

    explanation = hg.explain(looped)(np.ones(64, np.float32))
    kernels = explanation.data()["parts"][0]["kernels"]
    inside = [k for k in kernels if k["path"]]
    records: list[dict[str, Any]] = [{"name": "while", "kind": "loop", "calls": 5, "seconds": 5e-3, "parent": None}]
    records += [{"name": k["id"], "kind": "kernel", "calls": 0, "seconds": None, "parent": 0, "threads": {}} for k in inside]
    records += [{"name": k["id"], "kind": "kernel", "calls": 5, "seconds": 0.0, "parent": None} for k in kernels if not k["path"]]
    found = explanation.data({"kernels": records})["parts"][0]["kernels"]
    runs = 5 if len(inside) < len(kernels) else 1
    assert sum(k["seconds"] for k in found) == pytest.approx(5e-3 / runs) and all(k["untimed"] for k in found if k["path"])


@pytest.mark.parametrize("profile", [{}, {"kernels": [{"name": "k0"}]}, 3, {"kernels": [{"name": "other", "seconds": 1.0}] * 7}])
def test_what_is_no_profile_of_it_is_refused(profile: Any) -> None:
    with pytest.raises(ArgumentError, match="profile"):
        hg.explain(lambda x: x * 2)(hnp.ones(3)).data(profile)


def test_the_file_has_the_data(tmp_path: Path) -> None:
    explanation = hg.explain(lambda x: hnp.sum(x * x))(hnp.ones(3))
    explanation.json(tmp_path / "report.json")
    found = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert found["program"] == explanation.data()["program"]


def test_a_program_on_several_devices_has_a_part_for_each() -> None:
    def two(x: Any) -> Any:
        return hnp.sum(hg.device_put(x * 2, "null") + 1)

    data = hg.explain(two)(hnp.ones(3)).data()
    assert [p["device"] for p in data["parts"]] == ["cpu", "null:0"] and len(data["overview"]) == 3
