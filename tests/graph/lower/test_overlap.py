"""Where collectives start and are waited for, and which sums are one call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp
from examples import ring_attention
from hologram.distributed import NamedSharding, PartitionSpec, simulate
from hologram.graph.lower import overlap
from hologram.graph.lower.collective_step import DONE, START, WHOLE, CollectiveStep
from hologram.graph.lower.lowered import Lowered
from hologram.graph.lower.overlap import MIN_OVERLAP_NS
from hologram.graph.lower.steps import all_steps
from hologram.primitives.host import lanes
from hologram.primitives.host.collective_calls import SMALL_BYTES
from hologram.support.world import Network
from tests.support.distributed.overlap import SIZE, gradients, weights

P = PartitionSpec


def plan_of(f: Any, *args: Any) -> Any:
    def main() -> Any:
        mesh = hg.make_mesh((2,), "x")
        return hg.jit(hg.shard_map(f, mesh, P(), P(), check_vma=False)).lower(*args).compile().executable.compilation.execution_plan

    return simulate(2).run(main)[0]


def collectives(plan: Any) -> list[CollectiveStep]:
    return [s for s in all_steps(plan.steps) if isinstance(s, CollectiveStep)]


def test_gradients_are_on_the_wire_while_others_are_computed() -> None:
    plan = plan_of(gradients, weights(), np.ones((2 * SIZE, SIZE), np.float32))
    steps = collectives(plan)
    phases = [s.phase for s in steps]
    assert START in phases and phases.count(START) == phases.count(DONE)
    for s in steps:
        if s.phase == START:
            done = next(d for d in steps if d.phase == DONE and d.number == s.number)
            begin, end = plan.steps.index(s), plan.steps.index(done)
            assert any(not isinstance(k, CollectiveStep) for k in plan.steps[begin + 1 : end])
            kept = {plan.buffer(n) for n in done.bindings}
            changed = {plan.buffer(n) for k in plan.steps[begin + 1 : end] for n in k.writes()}
            assert not kept & changed
            for n, first, last, _ in plan.temporaries:
                if n in kept:
                    assert first <= begin or n in map(plan.buffer, done.writes())
                    assert last >= end


def test_small_sums_are_one_call_unless_one_needs_the_other() -> None:
    def f(a: Any, b: Any) -> Any:
        s, t = hg.lax.psum(a * 2, "x"), hg.lax.psum(b + 1, "x")
        m = hg.lax.pmax(a, "x")
        return s, t, hg.lax.psum(s.sum() + b, "x"), m

    found = [(s.op.name, len(s.node.inputs), s.phase) for s in collectives(plan_of(f, np.ones(3, np.float32), np.ones(5))) if s.phase != DONE]
    assert sorted(found) == [("pmax", 1, START), ("psum", 1, START), ("psum", 2, START)]


@pytest.mark.parametrize(
    ("f", "size", "phases"),
    [
        (lambda x: hnp.concatenate([onward(x[-1:]), x, back(x[:1])]), 512, [START, START, DONE, DONE]),
        (lambda x: (hg.lax.all_gather(x[0], "x"), back(x), hg.lax.psum(x.sum(), "x")), 512, [START, START, START, DONE, DONE, DONE]),
        (lambda x: (onward(x[0]), onward(onward(x[1]) * 2)), 512, [START, START, DONE, START, DONE, DONE]),
        (lambda x: back(onward(x) * 2), 512, [WHOLE, WHOLE]),
        (lambda x: hnp.concatenate([onward(x), back(x)]), SMALL_BYTES, [WHOLE, WHOLE]),
    ],
    ids=["halos", "three kinds", "begun first and needed last", "one after the other", "large"],
)
def test_small_collectives_begin_before_one_is_waited_for(f: Any, size: int, phases: list[str]) -> None:
    x = np.random.default_rng(0).standard_normal((4, size)).astype(np.float32)
    assert [s.phase for s in collectives(plan_of(f, x))] == phases

    def main() -> Any:
        mapped = hg.shard_map(f, hg.make_mesh((2,), "x"), P(), P(), check_vma=False)
        return [np.asarray(v).tobytes() for v in hg.tree.leaves(mapped(x * (1 + hg.distributed.process_index())))]

    together = simulate(2).run(main)
    with hg.settings.override(disabled_passes="overlap"):
        assert simulate(2).run(main) == together


def onward(x: Any) -> Any:
    return hg.lax.ppermute(x, "x", [(0, 1), (1, 0)])


def back(x: Any) -> Any:
    return hg.lax.ppermute(x, "x", [(0, 1)])


def test_collectives_of_a_loop_beside_one_that_began_before_it() -> None:
    """Numbers of collectives under way are those of the whole program: a loop takes none from around it."""

    def f(x: Any, y: Any) -> Any:
        def step(c: Any, _: Any) -> Any:
            return hnp.tanh(c @ c) @ hg.lax.psum(c, "x") * 0.01, None

        return hg.lax.psum(x, "x"), hg.scan(step, y, None, length=3)[0]

    x = np.random.default_rng(0).standard_normal((SIZE, SIZE)).astype(np.float32)
    plan = plan_of(f, x, x)
    outer = [s.phase for s in plan.steps if isinstance(s, CollectiveStep)]
    assert outer == [START, DONE] and [s.phase for s in collectives(plan)].count(START) == 2

    def main() -> Any:
        return [np.asarray(v).tobytes() for v in hg.shard_map(f, hg.make_mesh((2,), "x"), P(), P(), check_vma=False)(x, x)]

    beside = simulate(2).run(main)
    with hg.settings.override(disabled_passes="overlap"):
        assert simulate(2).run(main) == beside


def test_what_a_collective_gives_another_is_there() -> None:
    def main() -> Any:
        mesh = hg.make_mesh((2,), "x")

        def f(x: Any) -> Any:
            a = hg.lax.psum(x, "x")
            b = hg.lax.all_gather(a, "x")
            c = hg.lax.psum(b.sum(0) * 2, "x")
            return a, b, c, hg.lax.ppermute(c, "x", [(0, 1), (1, 0)])

        return [np.asarray(v) for v in hg.shard_map(f, mesh, P(), P(), check_vma=False)(np.arange(3.0))]

    for a, b, c, d in simulate(2).run(main):
        x = np.arange(3.0)
        np.testing.assert_array_equal(a, 2 * x)
        np.testing.assert_array_equal(b, [2 * x, 2 * x])
        np.testing.assert_array_equal(c, 16 * x)
        np.testing.assert_array_equal(d, 16 * x)


@pytest.mark.parametrize("latency", [0.0, 1e-3])
def test_bits_are_those_of_one_call_for_each_array(latency: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def main(together: bool) -> Any:
        mesh = hg.make_mesh((3,), "x")
        rng = np.random.default_rng(hg.distributed.process_index())
        sizes = (1, 7, 1000, 70_001)
        xs = [(rng.standard_normal(n) * 10.0 ** rng.integers(-8, 8, n)).astype(np.float32) for n in sizes]
        both = hg.shard_map(lambda a: hg.lax.psum(a, "x"), mesh, P(), P())
        found = both(xs) if together else [hg.shard_map(lambda a: hg.lax.psum(a, "x"), mesh, P(), P())(x) for x in xs]
        return [np.asarray(v).tobytes() for v in found]

    monkeypatch.setattr("hologram.distributed.simulation._Rank.network", Network(latency, 1e9))
    assert simulate(3).run(main, True) == simulate(3).run(main, False)


def test_an_error_beside_a_collective_leaves_no_memory_in_use() -> None:
    def main() -> None:
        mesh = hg.make_mesh((2,), "x")

        def fails(v: Any) -> None:
            raise ValueError("beside")

        def f(ws: Any, x: Any) -> Any:
            found = gradients(ws, x)
            hg.debug.callback(fails, hnp.sum(x))
            return found

        with pytest.raises(Exception, match="beside"):
            hg.jit(hg.shard_map(f, mesh, P(), P(), check_vma=False))(weights(), np.ones((2 * SIZE, SIZE), np.float32))

    simulate(2).run(main)
    assert not lanes._under_way


# --- what lies between a start and its wait --------------------------------------------------------------------------


def product_beside(step: Any) -> bool:
    """Whether a step computes for a while."""
    return not isinstance(step, CollectiveStep) and overlap._cost(step) > MIN_OVERLAP_NS


def computed_beside(plan: Any) -> list[int]:
    """For each collective that starts, how many products are computed before its wait."""
    steps = plan.steps
    starts = {s.number: i for i, s in enumerate(steps) if isinstance(s, CollectiveStep) and s.phase == START}
    waits = {s.number: i for i, s in enumerate(steps) if isinstance(s, CollectiveStep) and s.phase == DONE}
    return [sum(map(product_beside, steps[starts[n] : waits[n]])) for n in starts]


@pytest.mark.parametrize("causal", [True, False])
def test_ring_attention_computes_while_keys_are_on_their_way(causal: bool) -> None:
    """Of each hop: no product, mask or row of the next keys is computed with those that are here."""

    def main() -> Any:
        mesh = hg.make_mesh((3,), ("sequence",))
        parts = [hg.device_put(np.ones((2, 4, 1536, 64), np.float32), NamedSharding(mesh, ring_attention.BY_PLACE)) for _ in range(3)]
        return hg.jit(ring_attention.attention(mesh, causal)).lower(*parts).compile().executable.compilation.execution_plan

    plan = simulate(3).run(main)[0]
    assert not [s for s in collectives(plan) if s.phase == WHOLE and s.op.name == "ppermute"]
    assert len(computed_beside(plan)) == 4 and all(computed_beside(plan))


def beside_a_sum(x: Any, y: Any) -> Any:
    total = hg.lax.psum(x, "x")
    first = total @ total
    return first, y @ y + 1  # which was written later, and needs no sum


def chain_of_sums(x: Any, y: Any) -> Any:
    for _ in range(2):
        x = hg.lax.psum(x @ x, "x") * 0.01
    for _ in range(3):
        y = hnp.tanh(y @ y)
    return x, y


def changed_in_place(x: Any, y: Any) -> Any:
    """What needs the sum reads ``grown``, which is then changed without a copy."""
    total, grown = hg.lax.psum(x, "x"), y @ y
    late = total @ grown
    return late, grown.at[np.array([5, 0, 5])].add(1.0) @ y


@pytest.mark.parametrize("f", [beside_a_sum, chain_of_sums, changed_in_place])
def test_what_needs_no_sum_is_computed_beside_it(f: Any) -> None:
    x = np.random.default_rng(0).standard_normal((SIZE, SIZE)).astype(np.float32) / SIZE

    def main() -> Any:
        mesh = hg.make_mesh((2,), "x")
        step = hg.jit(hg.shard_map(f, mesh, P(), P(), check_vma=False))
        return [np.asarray(v).tobytes() for v in step(x, x)]

    plan = plan_of(f, x, x)
    assert all(computed_beside(plan)) and START in [s.phase for s in collectives(plan)]
    copies = [s.bindings for s in plan.steps if isinstance(s, Lowered) and s.is_copy]
    assert all(plan.buffer(old) == plan.buffer(new) for old, new in copies)
    assert bool(copies) == (f is changed_in_place)
    beside = simulate(2).run(main)
    with hg.settings.override(disabled_passes="overlap"):
        assert simulate(2).run(main) == beside


def test_a_profile_shows_what_is_computed_while_messages_are_on_their_way() -> None:
    def main() -> Any:
        mesh = hg.make_mesh((2,), "sequence")
        parts = [hg.device_put(np.ones((2, 4, 1024, 64), np.float32), NamedSharding(mesh, ring_attention.BY_PLACE)) for _ in range(3)]
        step = hg.jit(ring_attention.attention(mesh))
        step(*parts)
        with hg.profile() as p:
            step(*parts).addressable_data().block_until_ready()
        return p

    events = [e for e in simulate(2).run(main)[0].events if e.kind == "launch"]
    for thread in {e.thread for e in events if e.name.startswith("ppermute")}:
        own = sorted((e for e in events if e.thread == thread), key=lambda e: e.start)
        names = [e.name for e in own]
        last_start, first_wait = max(i for i, n in enumerate(names) if n == "ppermute start"), names.index("ppermute done")
        assert "scan" in names[last_start:first_wait] and "matmul" in names[last_start:first_wait]
