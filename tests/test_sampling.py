"""What tests run without ``--all``, and what they draw."""

from __future__ import annotations

import itertools
import zlib
from pathlib import Path

import numpy as np
import pytest

from tests.support.runner.sampling import covering, not_sampled, one_in

R = np.random.default_rng(0)


@pytest.mark.parametrize("times", [1, 2, 5])
def test_each_value_of_each_parameter_stands_in_some_case(times: int) -> None:
    cases = [(f"{a} {b}", frozenset([("a", a), ("b", b)])) for a, b in itertools.product(range(7), range(3))]
    kept = [chosen for name, chosen in cases if name in covering(cases, times)]
    assert 7 * min(times, 3) <= len(kept) <= 7 * min(times, 3) + 2
    for value in set.union(*(set(chosen) for _, chosen in cases)):
        assert sum(value in chosen for chosen in kept) >= min(times, 3)


def test_every_case_stands_in_the_sample_of_some_seed() -> None:
    cases = [(f"{a} {b} {c}", frozenset([("a", a), ("b", b), ("c", c)])) for a, b, c in itertools.product(range(5), range(3), range(2))]
    samples = [covering(cases, seed=seed) for seed in range(60)]
    assert set.union(*samples) == {name for name, _ in cases} and max(map(len, samples)) < len(cases) / 3


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_parts_of_costly_cases_are_alike_in_size_and_have_each_case_once(parts: int) -> None:
    names = [f"test[{i}]" for i in range(11)]
    samples = [one_in(parts, names, seed) for seed in range(parts)]
    assert sorted(name for sample in samples for name in sample) == sorted(names)
    assert max(map(len, samples)) - min(map(len, samples)) <= 1
    assert samples == [one_in(parts, reversed(names), seed + parts) for seed in range(parts)]


MODULE = """
import pytest

pytestmark = pytest.mark.costly(3)


def test_alone(): ...


@pytest.mark.parametrize("i", range(5))
def test_cases(i): ...


@pytest.mark.costly(2)
@pytest.mark.parametrize("i", range(4))
def test_cases_of_their_own(i): ...
"""


def test_costly_modules_are_sampled_as_a_whole(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path = tmp_path / "test_costly.py"
    path.write_text(MODULE)
    items = [item for item in pytest.Module.from_parent(request.session, path=path).collect() if isinstance(item, pytest.Item)]
    samples = [{item.name for item in items} - {item.name for item in not_sampled(items, seed)} for seed in range(6)]
    own = [{name for name in sample if "own" in name} for sample in samples]
    assert [len(sample) for sample in own] == [2] * 6 and len(own[0] | own[1]) == 4
    others = [sample - of_its_own for sample, of_its_own in zip(samples, own, strict=True)]
    assert [len(sample) for sample in others] == [2] * 6 and len(set.union(*others[:3])) == 6


@pytest.mark.parametrize("case", range(3))
def test_a_test_draws_the_same_alone_and_among_others(request: pytest.FixtureRequest, case: int) -> None:
    assert R.random() == np.random.default_rng(zlib.crc32(request.node.name.encode())).random()
