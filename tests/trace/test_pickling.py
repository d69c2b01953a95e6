"""Functions that jit and the transforms make are pickled and copied, before and after their first call."""

from __future__ import annotations

import copy
import functools
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

import hologram as hg
import hologram.numpy as hnp

X = np.linspace(0.5, 2.0, 6)


def plain(x: Any, power: int = 2) -> Any:
    """A sum of powers."""
    return hnp.sum(hnp.sin(x) * x**power)


def rows(x: Any, scale: Any) -> Any:
    return {"rows": x * scale, "last": x[..., -1]}


@hg.jit
def decorated(x: Any) -> Any:
    return plain(x) + 1


@functools.partial(hg.jit, static_argnames="power")
def decorated_with_options(x: Any, power: int = 2) -> Any:
    return plain(x, power) * 2


@hg.grad
def slope(x: Any) -> Any:
    return plain(x)


@hg.jit
@functools.partial(hg.vmap, in_axes=(0, None))
def stacked(x: Any, scale: Any) -> Any:
    return x * scale


@hg.custom_vjp
def ruled(x: Any) -> Any:
    return plain(x)


ruled.defvjp(lambda x: (plain(x), x), lambda x, ct: (ct * x,))


class Model:
    def __init__(self) -> None:
        self.step = hg.jit(self.energy)

    def energy(self, x: Any) -> Any:
        return plain(x) * 3

    @functools.partial(hg.jit, static_argnums=0)
    def doubled(self, x: Any) -> Any:
        return x * 2


dynamic = hg.jit(plain, dynamic={0: (0,)}, precision="exact")
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "jit": hg.jit(plain),
    "jit with options": hg.jit(plain, static_argnums=1, donate_argnums=(), precision="exact"),
    "jit dynamic": dynamic,
    "jit of partial": hg.jit(functools.partial(plain, power=3)),
    "decorated": decorated,
    "decorated with options": decorated_with_options,
    "decorated with grad": slope,
    "decorated with vmap and jit": lambda x: stacked(x, 2.0),
    "custom_vjp": ruled,
    "grad": hg.grad(plain),
    "value_and_grad": hg.value_and_grad(plain),
    "grad of decorated": hg.grad(decorated),
    "grad of custom_vjp": hg.grad(ruled),
    "jit of grad": hg.jit(hg.grad(plain)),
    "grad of grad": hg.vmap(hg.grad(hg.grad(plain))),
    "vmap": hg.vmap(rows, in_axes=(0, None), out_axes={"rows": 0, "last": 0}),
    "jacfwd": hg.jacfwd(slope),
    "jacrev": hg.jit(hg.jacrev(slope)),
    "hessian": hg.hessian(plain),
    "checkpoint": hg.jit(hg.grad(hg.checkpoint(plain))),
    "bound method": Model().step,
}
ARGUMENTS = {"vmap": (X.reshape(2, 3), 2.0)}
CLOSURES = ("decorated with vmap and jit",)


def same(got: Any, want: Any) -> None:
    hg.tree.map(np.testing.assert_array_equal, got, want)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_pickled_and_copied(name: str) -> None:
    f, args = FUNCTIONS[name], ARGUMENTS.get(name, (X,))
    for called in (False, True):
        for pickler in (pickle, cloudpickle):
            if pickler is pickle and name in CLOSURES:
                continue
            other = pickle.loads(pickler.dumps(f))
            same(other(*args), f(*args))
            assert getattr(other, "__name__", "") == getattr(f, "__name__", "") and other.__doc__ == f.__doc__
        assert copy.copy(f) is f and copy.deepcopy({"f": f})["f"] is f
        if not called:
            f(*args)


def test_options_are_kept() -> None:
    f = hg.jit(plain, static_argnames=("power",), donate_argnums=0, dynamic={"x": 0}, precision="exact")
    other = pickle.loads(pickle.dumps(f))
    assert other._donated == f._donated and other._precision == "exact" and other._signature.dynamic == f._signature.dynamic
    assert (other._signature.static_positions, other._signature.static_names) == (f._signature.static_positions, f._signature.static_names)
    for n in (2, 5):
        same(other(X[:n], 3), plain(X[:n], 3))
    assert len(other._specialisations) == 1
    assert pickle.loads(pickle.dumps(decorated)) is decorated and pickle.loads(pickle.dumps(slope)) is slope


def test_methods() -> None:
    model = pickle.loads(pickle.dumps(Model()))
    same(model.step(X), Model().energy(X))
    assert pickle.loads(pickle.dumps(Model.doubled)) is Model.doubled
    same(hg.grad(Model().energy)(X), hg.grad(lambda x: plain(x) * 3)(X))


def test_transforms_of_methods_bind() -> None:
    class Lens:
        @functools.partial(hg.grad, argnums=1)
        def loss(self, x: Any) -> Any:
            return 2 * x

    assert float(Lens().loss(3.0)) == 2.0
    assert "grad of" in repr(hg.grad(plain)) and "plain" in repr(hg.grad(plain))


MAIN = """
import pickle, sys, functools
import cloudpickle
import hologram as hg
@hg.jit
def f(x):
    return x * scale
@hg.grad
def g(x):
    return f(x) * x
scale = 3.0
if __name__ == "__main__":
    assert pickle.loads(pickle.dumps(f)) is f and pickle.loads(pickle.dumps(g)) is g
    f(1.0)
    sys.stdout.buffer.write(cloudpickle.dumps((f, g)))
"""


def test_what_main_holds_goes_along(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(MAIN)
    sent = subprocess.run([sys.executable, tmp_path / "program.py"], capture_output=True, check=True).stdout
    f, g = pickle.loads(sent)
    assert float(f(2.0)) == 6.0 and float(g(2.0)) == 12.0
