"""``--all`` runs the whole of the generated tests; without it they run a seeded sample."""

from __future__ import annotations

import gc
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import hypothesis
import numpy as np
import pytest

pytest.register_assert_rewrite("tests.support")  # before anything of it is imported

from hologram.settings import MAX_CODEGEN_LEVEL, override  # noqa: E402
from tests.support.runner import crashes  # noqa: E402
from tests.support.runner.sampling import not_sampled  # noqa: E402


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="every generated case, not a seeded sample")
    parser.addoption("--sample", type=int, default=0, metavar="SEED", help="which cases of crossed parameters run without --all")


def pytest_configure(config: pytest.Config) -> None:
    crashes.register(config)
    everything = config.getoption("--all")
    slow = [hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large]
    hypothesis.settings.register_profile("sample", max_examples=25, deadline=None, derandomize=True, suppress_health_check=slow)
    hypothesis.settings.register_profile("all", max_examples=1000, deadline=None, suppress_health_check=slow)
    hypothesis.settings.load_profile("all" if everything else "sample")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without ``--all`` a test that is marked ``crossed`` runs in as few cases as have each value of each parameter, and one that is marked
    ``costly`` in one of so many; a case that is named runs."""
    if config.getoption("--all") or any("[" in arg for arg in config.args):
        return
    left_out = not_sampled(items, config.getoption("--sample"))
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    """Thousands of test functions are not looked through for garbage again and again; tests that count memory collect it themselves."""
    _freeze()
    gc.set_threshold(20_000, 50, 100)


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Nor is what a file's tests leave behind, such as compiled programs."""
    if nextitem is not None and item.path != nextitem.path:
        _freeze()


def _freeze() -> None:
    gc.collect()
    gc.freeze()


@cache
def _generators(module: ModuleType) -> list[np.random.Generator]:
    return [value for value in vars(module).values() if isinstance(value, np.random.Generator)]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test draws the same numbers from the generators of its module alone and among others, in whatever file it stands."""
    for generator in _generators(item.module) if isinstance(item, pytest.Function) else ():
        bits = generator.bit_generator
        bits.state = type(bits)(zlib.crc32(item.name.encode())).state


@pytest.fixture(scope="session")
def everything(request: pytest.FixtureRequest) -> bool:
    """Whether ``--all`` was given."""
    return bool(request.config.getoption("--all"))


@pytest.fixture(scope="session", autouse=True)
def disk_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A disk cache of the run's own, for this process and those it starts: the user's is neither read nor filled."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as environment, override(cache_dir=folder):
        environment.setitem(os.environ, "HOLOGRAM_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(scope="session", autouse=True)
def verified() -> Iterator[None]:
    """The compiler proves what it makes, in this process and in those it starts."""
    with pytest.MonkeyPatch.context() as environment, override(verify=True):
        environment.setitem(os.environ, "HOLOGRAM_VERIFY", "1")
        yield


@contextmanager
def _codegen_level(level: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment, override(codegen_level=level):
        environment.setitem(os.environ, "HOLOGRAM_CODEGEN_LEVEL", str(level))
        yield


@pytest.fixture(scope="session", autouse=True)
def quickly_compiled(everything: bool) -> Iterator[None]:
    """Without ``--all``, LLVM's code generator does as little as it can, but where :func:`fully_compiled` is used."""
    with _codegen_level(MAX_CODEGEN_LEVEL if everything else 0):
        yield


@pytest.fixture(scope="module")
def fully_compiled(quickly_compiled: None) -> Iterator[None]:
    """Programs of the module's tests are compiled as users' are: for tests of the code itself, and of random programs."""
    with _codegen_level(MAX_CODEGEN_LEVEL):
        yield


@pytest.fixture(scope="session", autouse=True)
def unnoted() -> Iterator[None]:
    """What earlier tests have left on the disk makes nothing an operand: the first program of a lazy expression is one by value."""
    with pytest.MonkeyPatch.context() as m:
        m.setattr("hologram.trace.lazy_programs.numbers.noted", lambda key, like: None)
        yield


# --- of the native runtime -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tensors() -> None:
    """Native code knows the class of Tensors."""
    from hologram.backends.native import classes
    from hologram.trace.tensor import Tensor

    classes.register_tensor_class(Tensor)


@pytest.fixture(scope="module")
def add8() -> Any:
    """Code that adds eight float32."""
    from tests.support.runtime_programs import ADD_8, linked

    return linked(ADD_8)


@pytest.fixture
def threads() -> Iterator[Any]:
    """Sets the number of threads, which are Hologram's own, for a test."""
    from hologram.backends.native import pool

    state = pool.the_pool().state
    fork, state.fork = state.fork, 0
    yield pool.set_num_threads
    pool.set_num_threads(0)
    state.fork = fork
