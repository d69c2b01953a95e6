"""Cases from seeds: a random program, the transform that it goes through, thresholds that are set, and what runs it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hologram import dtypes
from hologram.errors import HologramError

from . import values
from .arguments import draw
from .catalogue import catalogue
from .draft import Draft, Finding, Refused, Value
from .drawers.common import index_array, shaped
from .program import Lambda, Literal, Program, Ref, Step

MAX_STEPS = 9


# --- forms -----------------------------------------------------------------------------------------------------------


def _basic(d: Draft, n: int) -> Any:
    """A basic index of an axis of extent ``n``."""
    r = d.rng.random()
    if r < 0.25 and n:
        return d.integer(-n, n - 1)
    if r < 0.35:
        return slice(None)
    step = d.pick((None, 1, 2, 3, -1, -2, 8))
    start = None if d.chance(0.4) else d.integer(-n - 1, n + 1)
    stop = None if d.chance(0.4) else d.integer(-n - 1, n + 1)
    return slice(start, stop, step)


def index_of(d: Draft, x: Value) -> Any:
    """An index of any sort: basic, new axes, ellipsis, masks, index arrays, and mixtures."""
    shape, rank = x.shape, len(x.shape)
    r = d.rng.random()
    if r < 0.08 and rank:
        return shaped(d, shape, "b") if d.chance(0.5) and False else Literal("bool", shape[:1], "tame", d.seed())
    parts: list[Any] = []
    arrays = d.chance(0.55)
    common: tuple[int, ...] | None = None
    for n in shape[: d.integer(0 if d.chance(0.1) else min(1, rank), rank)]:
        if d.chance(0.06):
            parts.append(None)
        if arrays and d.chance(0.6) and (common is None or d.chance(0.5)):
            if common is None:
                common = d.shape(d.pick((1, 1, 2, 0, 0)), 3000) if d.chance(0.95) else (0,)
            parts.append(index_array(d, n, common if n else (0,)))
        else:
            parts.append(_basic(d, n))
    if d.chance(0.15):
        keep = d.integer(0, len(parts))
        rest = [p for p in parts[keep:] if p is not None]
        taken = len([p for p in parts[:keep] if p is not None])
        if len(rest) + taken == rank or not rest:
            parts = [*parts[:keep], Ellipsis, *parts[keep:]]
    return parts[0] if len(parts) == 1 and d.chance(0.7) else tuple(parts)


def _getitem(d: Draft) -> list[Value]:
    x = d.array(least=1)
    return d.emit("form.getitem", x, index_of(d, x))


def _updates(d: Draft) -> list[Value]:
    x = d.array(least=1)
    index = index_of(d, x)
    method = d.pick(("set", "set", "add", "add", "subtract", "multiply", "max", "min", "get"))
    if method == "get":
        return d.emit("form.at", x, index, "get")
    region = d.emit("form.getitem", x, index)[0]
    d.steps.pop()
    d.pool = [v for v in d.pool if v.ref != region.ref]
    value: Any = d.pick((0, 1, 2)) if d.chance(0.3) else _update_values(d, region.shape, x)
    if method == "set" and d.chance(0.4):
        return d.emit("form.setitem", x, index, value)
    return d.emit("form.at", x, index, method, value)


def _update_values(d: Draft, shape: tuple[int, ...], x: Value) -> Value:
    return shaped(d, shape, x.kind) if d.chance(0.8) else d.fresh(x.dtype, shape[-1:] if shape else ())


BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "eq", "ne", "gt", "ge", "and_", "or_", "xor")
ARITHMETIC = ("add", "sub", "mul", "add", "sub", "mul", "truediv")


def _operators(d: Draft) -> list[Value]:
    x = d.array()
    name = d.pick(ARITHMETIC) if d.chance(0.6) else d.pick(BINARY)
    if d.chance(0.35):
        number = d.pick((2, 3, -1, 1)) if x.kind in "iu" else d.chance(0.5) if x.kind == "b" else d.pick((2.0, 0.5, 3, -1, 1.5))
        if x.kind == "u" and isinstance(number, int):
            number = abs(number)
        return d.emit("form.reflected", name, x, number) if d.chance(0.4) else d.emit("form.operator", name, x, number)
    if d.chance(0.15):
        return d.emit("form.operator", d.pick(("neg", "abs", "invert", "pos")), x)
    return d.emit("form.operator", name, x, d.mate(x))


def _properties(d: Draft) -> list[Value]:
    x = d.array()
    return d.emit("form.property", x, d.pick(("T", "mT", "real", "imag", "T")))


def _methods(d: Draft) -> list[Value]:
    x = d.array()
    name = d.pick(("sum", "mean", "max", "ravel", "astype", "reshape", "transpose"))
    if name == "astype":
        from .program import DType

        return d.emit("numpy.astype", x, DType(d.dtype("f" if x.kind == "f" else "c" if x.kind == "c" else "iuf")))
    return d.emit("form.method", x, name, *([(-1,)] if name == "reshape" else []))


# --- control flow ----------------------------------------------------------------------------------------------------


def _body(d: Draft, parameters: list[tuple[str, np.ndarray]], results: list[tuple[str, tuple[int, ...]]], free: int = 0) -> Lambda:
    """A function whose first results have given types, and ``free`` more of any."""
    with d.inside(parameters) as steps:
        for _ in range(d.integer(1, 3)):
            grow(d, inside=True)
        out: list[Ref] = []
        for dtype, shape in results:
            like = d.choose(lambda v, s=shape, t=dtype: v.shape == s and v.dtype == t and v.ref.name[0] == "v")
            v = like or d.coerced(d.choose() or d.pool[-1], dtype, shape)
            out.append(v.ref)
        out += [d.choose().ref for _ in range(free)]  # type: ignore[union-attr]
        return Lambda(tuple(name for name, _ in parameters), tuple(steps), out)


def _cond(d: Draft) -> list[Value]:
    x = d.array(fresh=0.3)
    results = [(d.dtype("fi"), d.pick((x.shape, (), (3,))))]
    if d.chance(0.5):
        pred = d.emit("numpy.any", d.emit("numpy.greater", d.array("f"), 1)[0])[0]
        bodies = [_body(d, [(d.name("p"), x.array)], results) for _ in range(2)]
        return d.emit("control.cond", pred, *bodies, x)
    bodies = [_body(d, [(d.name("p"), x.array)], results) for _ in range(d.integer(1, 3))]
    return d.emit("control.switch", d.fresh("int64", (), "whole"), bodies, x)


def _small_array(d: Draft) -> Value:
    """For carries: not too large, of any type."""
    found = d.choose(lambda v: v.array.size <= 600)
    return found if found is not None and d.chance(0.8) else d.fresh(d.dtype(), d.shape(d.integer(0, 2), 300))


def _scan(d: Draft) -> list[Value]:
    init = _small_array(d)
    xs = d.choose(lambda v: len(v.shape) >= 1 and v.shape[0] <= 12 and v.array.size <= 3000) if d.chance(0.7) else None
    carry = [(init.dtype, init.shape)]
    if xs is None:
        name = d.name("p")
        body = _body(d, [(name, init.array)], carry, free=d.integer(0, 1))
        lone = Lambda((name, d.name("q")), body.steps, (body.result[0], list(body.result[1:])))
        return d.emit("control.scan", lone, init, None, d.pick((0, 1, 2, 3, 5)), reverse=d.chance(0.3))
    element = xs.array[0] if xs.shape[0] else np.zeros(xs.shape[1:], xs.array.dtype)
    body = _body(d, [(d.name("p"), init.array), (d.name("p"), element)], carry, free=1)
    step = Lambda(body.parameters, body.steps, (body.result[0], list(body.result[1:])))
    return d.emit("control.scan", step, init, xs, reverse=d.chance(0.3))


def _fori(d: Draft) -> list[Value]:
    init = _small_array(d)
    body = _body(d, [(d.name("i"), np.zeros((), np.int64)), (d.name("p"), init.array)], [(init.dtype, init.shape)])
    step = Lambda(body.parameters, body.steps, body.result[0])
    upper = d.integer(0, 5) if d.chance(0.6) else d.fresh("int64", (), "index:6")
    return d.emit("control.fori_loop", 0, upper, step, init)


def _while(d: Draft) -> list[Value]:
    """A loop that counts."""
    init = _small_array(d)
    counter, p = d.name("i"), d.name("p")
    body = _body(d, [(counter, np.zeros((), np.int64)), (p, init.array)], [(init.dtype, init.shape)])
    # the carry is a tuple, which a body's parameter flattens: leaf 0 counts
    state = d.name("s")

    def to(r: Ref) -> Ref:
        return Ref(state, 0) if r.name == counter else Ref(state, 1) if r.name == p else r

    from .program import renamed, renamed_step

    steps = tuple(renamed_step(s, to) for s in body.steps)
    more = Step(d.name("v"), "numpy.add", (Ref(state, 0), 1))
    loop = Lambda((state,), (*steps, more), (Ref(more.name), renamed(body.result[0], to)))
    other = d.name("s")
    test = Step(d.name("v"), "numpy.less", (Ref(other, 0), d.integer(0, 5)))
    start = d.fresh("int64", (), "index:3", "plain")
    return d.emit("control.while_loop", Lambda((other,), (test,), Ref(test.name)), loop, (start, init))


def _associative(d: Draft) -> list[Value]:
    x = d.array("fi", least=1)
    if x.array.size > 4000:
        raise Refused("too large")
    a, b = d.name("p"), d.name("p")
    s = Step(d.name("v"), d.pick(("numpy.add", "numpy.maximum", "numpy.multiply")), (Ref(a), Ref(b)))
    return d.emit("control.associative_scan", Lambda((a, b), (s,), Ref(s.name)), x, reverse=d.chance(0.3))


def _wrapped(d: Draft) -> list[Value]:
    """A piece of the program as a function that another function takes."""
    form = d.pick(("form.checkpoint", "form.jit", "form.vmap", "form.grad_of_sum", "form.stop_gradient"))
    if form == "form.stop_gradient":
        return d.emit(form, d.array("f"))
    x = d.array("f", least=1)
    if form == "form.vmap":
        if not 1 <= x.shape[0] <= 300:
            raise Refused("nothing to map")
        body = _body(d, [(d.name("p"), x.array[0])], [], free=1)
        return d.emit(form, Lambda(body.parameters, body.steps, body.result), x)
    if form == "form.grad_of_sum":
        body = _body(d, [(d.name("p"), x.array)], [(x.dtype, ())])
        return d.emit(form, Lambda(body.parameters, body.steps, body.result[0]), x)
    body = _body(d, [(d.name("p"), x.array)], [], free=1)
    return d.emit(form, Lambda(body.parameters, body.steps, body.result), x)


PIECES = ("numpy.roll", "numpy.pad", "numpy.concatenate", "numpy.diff", "numpy.stack", "numpy.take", "numpy.tile", "numpy.repeat", "numpy.flip")


def _pieces(d: Draft) -> list[Value]:
    """A few steps that move elements, each on what the one before gave: gathers, pieces, updates at constant places."""
    out = _gather(d) if d.chance(0.6) else [d.array(least=1)]
    for _ in range(d.integer(1, 3)):
        d.pool = [v for v in d.pool if v.ref != out[0].ref] + [out[0]]
        out = _constant_updates(d) if d.chance(0.35) else draw(d, d.pick(PIECES))
    return out


def _gather(d: Draft) -> list[Value]:
    x = d.array(least=1)
    n = x.shape[0]
    count = d.extent(d.most_elements // max(1, x.array.size // max(1, n)))
    i = d.fresh("int64", (count,), f"index:{n}") if n else index_array(d, 0, (0,))
    return d.emit("form.getitem", x, i)


def _constant_updates(d: Draft) -> list[Value]:
    x = d.array(least=1)
    if not x.shape[0]:
        raise Refused("empty")
    for _ in range(d.integer(1, 3)):
        x = d.emit("form.at", x, d.integer(-x.shape[0], x.shape[0] - 1), d.pick(("set", "add", "multiply")), d.pick((1, 2)))[0]
    return [x]


FORMS: tuple[tuple[float, Callable[[Draft], list[Value]]], ...] = (
    (3.0, _getitem),
    (1.5, _pieces),
    (3.0, _updates),
    (3.5, _operators),
    (0.4, _properties),
    (0.4, _methods),
)
CONTROL: tuple[tuple[float, Callable[[Draft], list[Value]]], ...] = (
    (0.3, _cond),
    (0.4, _scan),
    (0.25, _fori),
    (0.2, _while),
    (0.15, _associative),
    (0.5, _wrapped),
)

# functions that the compiler has paths of its own for are drawn more often
FAVOURED = (
    "numpy.roll", "numpy.pad", "numpy.concatenate", "numpy.stack", "numpy.diff", "numpy.take", "numpy.sort", "numpy.argsort", "numpy.cumsum",
    "numpy.sum", "numpy.max", "numpy.mean", "numpy.matmul", "numpy.einsum", "numpy.reshape", "numpy.transpose", "numpy.where", "numpy.broadcast_to",
    "numpy.exp", "numpy.tanh", "numpy.argmax", "numpy.cumprod", "nn.softmax", "nn.conv2d", "nn.conv1d", "numpy.flip", "numpy.tile", "numpy.repeat",
    "nn.layer_norm", "numpy.put", "numpy.expand_dims", "numpy.square", "numpy.sqrt", "numpy.astype", "numpy.bincount", "nn.dot_product_attention",
)  # fmt: skip


@functools.cache
def _names() -> tuple[str, ...]:
    return tuple(catalogue())


def grow(d: Draft, inside: bool = False) -> list[Value]:
    """Adds one step of any sort; tries several."""
    for _ in range(12):
        kept = len(d.steps), len(d.pool), len(d.inputs)
        r = d.rng.random()
        try:
            if r < 0.35:
                return _weighted(d, FORMS)
            if r < 0.43 and not inside:
                return _weighted(d, CONTROL)
            return draw(d, d.pick(FAVOURED) if d.chance(0.45) else d.pick(_names()))
        except Refused:
            del d.steps[kept[0] :], d.pool[kept[1] :]
            if not d.body:
                del d.inputs[kept[2] :]
    raise Refused("no step was taken")


def _weighted(d: Draft, table: tuple[tuple[float, Callable[[Draft], list[Value]]], ...]) -> list[Value]:
    weights = np.array([w for w, _ in table])
    return table[int(d.rng.choice(len(table), p=weights / weights.sum()))][1](d)


# --- cases -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A program and the way in which it is tried."""

    seed: int
    program: Program
    transform: str = ""  # "", "vmap", "grad", "jvp", "vjp", "hessian"
    thresholds: dict[str, int] = field(default_factory=dict)
    refusals: dict[str, int] = field(default_factory=dict)


class BadDraft(Exception):
    """Tracing a step failed in a way that no step may: the program up to it, and the exception."""

    def __init__(self, program: Program, error: BaseException) -> None:
        super().__init__(str(error))
        self.program, self.error = program, error


def generate(seed: int) -> Case:
    """The case of a seed. Raises BadDraft."""
    from .thresholds import draw_overrides

    rng = np.random.default_rng([seed, 0x686F6C])
    d = Draft(rng, most_elements=int(rng.choice([300, 3000, 12_000, 40_000], p=[0.35, 0.4, 0.2, 0.05])))
    kinds = rng.random()
    if kinds < 0.85:
        d.home_dtype = str(rng.choice(["float32", "float64", "int32", "int64", "float16", "bfloat16", "complex64", "uint8", "bool", "int8"],
                                      p=[0.45, 0.15, 0.06, 0.08, 0.06, 0.06, 0.05, 0.04, 0.03, 0.02]))  # fmt: skip
    else:
        d.home_dtype = d.pick(values.DTYPES)
    d.contents = str(rng.choice(["tame", "normal", "whole", "special", "unit", "repeated", "wide"], p=[0.34, 0.28, 0.1, 0.1, 0.08, 0.06, 0.04]))
    transform = str(rng.choice(["", "vmap", "grad", "jvp", "vjp", "hessian"], p=[0.8, 0.05, 0.07, 0.03, 0.03, 0.02]))
    if transform:
        d.most_elements = min(d.most_elements, 3000)
    if transform in ("grad", "jvp", "vjp", "hessian"):
        d.home_dtype = d.pick(("float64", "float32", "float64"))
        d.contents = "normal"
    with d.trace:
        d.fresh(d.dtype(), d.shape())
        count = int(rng.integers(1, MAX_STEPS))
        try:
            for _ in range(count):
                try:
                    grow(d)
                except Refused:
                    continue
        except Finding as e:
            raise BadDraft(trimmed(Program(tuple(d.inputs), (*d.steps, e.step), (Ref(e.step.name),))), e.error) from e
        except HologramError as e:  # of a placeholder or a capture
            raise BadDraft(d.program(()), e) from e
        outputs = _outputs(d)
    overrides = draw_overrides(rng) if rng.random() < 0.35 else {}
    return Case(seed, trimmed(d.program(outputs)), transform, overrides, dict(d.refusals))


def _outputs(d: Draft) -> list[Ref]:
    """What nothing else reads, and some of the rest."""
    from .program import refs

    read = {r for s in d.steps for r in refs(s)}
    made = [v for v in d.pool if v.ref.name[0] == "v"]
    ends = [v.ref for v in made if v.ref not in read]
    ends = ends[-4:]
    if len(made) > 1 and d.chance(0.3):
        ends.append(d.pick(made).ref)
    return list(dict.fromkeys(ends)) or [d.pool[-1].ref]


def trimmed(p: Program) -> Program:
    """Without the steps and the inputs that no output needs."""
    from .program import refs

    wanted = {r.name for r in p.outputs}
    steps = []
    for s in reversed(p.steps):
        if s.name in wanted:
            steps.append(s)
            wanted |= {r.name for r in refs(s)}
    return p.with_(inputs=tuple(i for i in p.inputs if i.name in wanted), steps=tuple(reversed(steps)))


__all__ = ["BadDraft", "Case", "dtypes", "generate", "grow", "trimmed"]
