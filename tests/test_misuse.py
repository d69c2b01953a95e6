"""Arguments that make no sense, to every public function: an error that says so, never one that only a defect of ours can raise."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hologram as hg
from tests.support.optable import seeded
from tests.support.public_functions import FUNCTIONS

PLAIN: list[Any] = [np.ones((2, 3), np.float32), np.eye(3), hg.tensor([1.0, 2.0, 3.0]), hg.tensor([1, 0, 2])]
STRANGE: list[Any] = [
    None, "a", b"a", 2.5, -1, 0, 3, 1j, float("nan"), True, object(), slice(1), {}, (), (0,), (5,), (2.5,), [1, "a"], np.ones(3), np.array("a"),
    np.array([object()]), hg.tensor(2), *PLAIN,
]  # fmt: skip
OF_A_DEFECT = (
    AssertionError,
    AttributeError,
    ArithmeticError,
    KeyError,
    NameError,
    NotImplementedError,
    RecursionError,
    SystemError,
    ZeroDivisionError,
)


def arguments(f: Callable[..., Any], rng: np.random.Generator) -> tuple[list[Any], dict[str, Any]]:
    """Positional ones plain or strange; some of those with defaults, strange."""

    def one_of(values: list[Any]) -> Any:
        return values[rng.integers(len(values))]

    given: list[Any] = []
    named: dict[str, Any] = {}
    for p in inspect.signature(f).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            given += [one_of(STRANGE) for _ in range(rng.integers(3))]
        elif p.kind is p.KEYWORD_ONLY or (p.default is not p.empty and p.kind is p.POSITIONAL_OR_KEYWORD):
            if p.default is p.empty or rng.random() < 0.3:
                named[p.name] = one_of(STRANGE)
        elif p.default is p.empty and p.kind is not p.VAR_KEYWORD:
            given.append(one_of(PLAIN if rng.random() < 0.5 else STRANGE))
    return given, named


@pytest.mark.costly(5)
@pytest.mark.parametrize("f", FUNCTIONS)
def test_misuse_is_told(f: Callable[..., Any], everything: bool) -> None:
    rng = seeded("misuse", f.__name__)
    for _ in range(40 if everything else 4):
        given, named = arguments(f, rng)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = f(*given, **named)
                if isinstance(result, hg.Tensor):
                    result.numpy()
        except hg.errors.HologramError:
            pass
        except (AttributeError, *OF_A_DEFECT) as e:
            raise AssertionError(f"{f.__name__}(*{given}, **{named}) raises {type(e).__name__}") from e
        except (TypeError, ValueError, IndexError, OverflowError):
            pass  # Python's and NumPy's own, of values that they are asked to take as numbers


def test_known_indices_may_be_tensors() -> None:
    x = np.arange(5.0)
    np.testing.assert_array_equal(hg.numpy.delete(x, hg.tensor([1, 3])).numpy(), np.delete(x, [1, 3]))
    np.testing.assert_array_equal(hg.numpy.insert(x, hg.tensor([1, 3]), 7.0).numpy(), np.insert(x, [1, 3], 7.0))
    np.testing.assert_array_equal(hg.numpy.delete(x, x > 2).numpy(), np.delete(x, x > 2))
    for a, b in zip(hg.numpy.split(x, hg.tensor([2, 3])), np.split(x, [2, 3]), strict=True):
        np.testing.assert_array_equal(a.numpy(), b)
