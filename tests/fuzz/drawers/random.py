"""Arguments of functions that draw random numbers."""

from __future__ import annotations

import functools
from typing import Any

from ..catalogue import catalogue, parameters
from ..draft import Draft, Value
from ..program import DType
from .common import DRAWERS, shaped


def _random(d: Draft, function: str) -> list[Value]:
    if function == "random.key":
        return d.emit(function, d.integer(0, 2**40))
    args: list[Any] = [d.emit("random.key", d.integer(0, 1000))[0] if d.chance(0.5) else d.fresh("uint32", (2,), "wide", "plain")]
    name = function.partition(".")[2]
    shape = d.shape(d.integer(0, 2), 5000)
    options: dict[str, Any] = {"shape": shape}
    floats = {"dtype": DType(d.pick(("float32", "float64", "float16", "bfloat16")))} if d.chance(0.4) else {}
    match name:
        case "split":
            return d.emit(function, *args, d.integer(1, 9))
        case "fold_in":
            return d.emit(function, *args, d.integer(0, 99))
        case "permutation" | "shuffle":
            return d.emit(function, *args, d.array(least=1))
        case "choice":
            return d.emit(function, *args, d.integer(1, 30), shape=shape)
        case "categorical":
            return d.emit(function, *args, d.array("f", least=1))
        case "bits":
            return d.emit(function, *args, shape, DType(d.pick(("uint32", "uint8", "uint16", "uint64"))))
        case "randint":
            return d.emit(function, *args, shape=shape, minval=d.integer(-9, 0), maxval=d.integer(1, 99))
        case "ball":
            return d.emit(function, *args, d.integer(1, 4), shape=shape[:1])
        case "dirichlet":
            return d.emit(function, *args, d.fresh("float32", (d.integer(1, 5),), "positive"), shape=shape[:1])
        case "multivariate_normal":
            n = d.integer(1, 5)
            cov = d.emit("numpy.eye", n)[0]
            return d.emit(function, *args, shaped(d, (n,), "f"), cov)
        case "bernoulli":
            return d.emit(function, *args, round(float(d.rng.uniform(0.1, 0.9)), 2), shape)
        case "geometric":
            return d.emit(function, *args, round(float(d.rng.uniform(0.1, 0.9)), 2), shape)
        case "multinomial":
            return d.emit(function, *args, d.integer(0, 30), d.fresh("float32", (d.integer(1, 5),), "positive"))
        case "orthogonal":
            return d.emit(function, *args, d.integer(1, 5), shape[:1])
        case "triangular":
            return d.emit(function, *args, -1.0, round(float(d.rng.uniform(-1, 2)), 2), 2.0, shape)
        case "binomial":
            return d.emit(function, *args, d.integer(0, 30), round(float(d.rng.uniform(0.1, 0.9)), 2), shape[:1])
    for p in parameters(function)[1:]:
        if p.default is p.empty and p.name not in ("shape", "dtype"):
            args.append({"lower": -1.0, "upper": 1.5}.get(p.name, round(float(d.rng.uniform(0.5, 4.0)), 2)))
    return d.emit(function, *args, **options, **floats)


def install_random() -> None:
    for name in catalogue():
        if name.startswith("random."):
            DRAWERS[name] = functools.partial(_random, function=name)


install_random()
