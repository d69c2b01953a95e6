"""Where tests stand: folders mirror the packages, helpers stand in ``tests/support``, and no test module imports another."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent
APART = {"support", "fuzz", "gpu", "programs"}  # folders with modules that are no tests: helpers, the fuzzer, the runner on GPUs, whole programs
PACKAGES = {"torch": ROOT / "hologram_torch", "ffi": ROOT / "hologram_ffi", "clients": ROOT / "hologram"} | {
    name: ROOT / name for name in ("benchmarks", "docs", "examples")
}
MODULES = sorted(TESTS.rglob("*.py"))
MAX_FILES = 20


def imported(source: str, package: str) -> Iterator[str]:
    """Full names of the modules that a module of ``package`` imports, and of all that it imports from them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def is_test(module: str) -> bool:
    return any(part.startswith("test_") for part in module.split("."))


def package_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).parent.parts)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import tests.graph.test_fuse", True),
        ("from tests.graph import test_fuse", True),
        ("from tests.graph.test_fuse import chain", True),
        ("def f():\n    from .test_fuse import chain", True),
        ("from ..trace.test_jit import add", True),
        ("from test_jit import add", True),
        ("from tests.support.building import Draft", False),
        ("from hologram.ir import testing", False),
    ],
)
def test_imports_of_test_modules_are_seen(source: str, found: bool) -> None:
    assert any(map(is_test, imported(source, "tests.graph"))) == found


def test_no_module_imports_a_test_module() -> None:
    wrong = [(str(p.relative_to(TESTS)), m) for p in MODULES for m in imported(p.read_text(), package_of(p)) if is_test(m)]
    assert not wrong, "what tests share belongs in tests/support"


def test_helpers_stand_apart_and_are_no_tests() -> None:
    for path in MODULES:
        folder = path.relative_to(TESTS).parts[0]
        if path.name.startswith("test_"):
            assert folder not in ("support", "fuzz"), f"{path} is a test among helpers"
        else:
            assert folder in APART or path.name in ("__init__.py", "conftest.py"), f"{path} belongs in tests/support"
    for path in (TESTS / "support").rglob("*.py"):
        names = [n.name for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
        assert not [n for n in names if n.startswith(("test_", "Test"))], f"{path} has tests"


def test_folders_are_packages_of_few_files_that_mirror_the_tree() -> None:
    for folder in {p.parent for p in MODULES}:
        files = [p for p in folder.iterdir() if p.is_file()]
        assert folder / "__init__.py" in files and len(files) <= MAX_FILES, f"{folder}: {len(files)} files"
        first, *rest = folder.relative_to(TESTS).parts or ("",)
        if first and first not in APART:
            mirrored = PACKAGES.get(first, ROOT / "hologram" / first).joinpath(*rest)
            assert mirrored.is_dir(), f"{folder} has tests of {mirrored}, which is not there"
