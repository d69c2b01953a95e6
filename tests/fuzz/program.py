"""Programs as data: what they are, how they are run by any library, and how they are printed.

A :class:`Program` is a list of inputs and a list of steps. A step calls a function, named by its public path (``numpy.roll``), on arguments in
which a :class:`Ref` stands for a value computed before. Some names are not functions of the namespace but forms of the language: see
:data:`FORMS`. Functions as arguments (bodies of loops, branches) are :class:`Lambda`: parameters, steps and a result of their own.

Invariants: names are unique in a program; a step refers to names defined before it, a body also to those around it; whatever a step gives is
flattened, and leaf ``k`` of step ``v`` is ``Ref("v", k)``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import values


@dataclass(frozen=True)
class Ref:
    """A value computed before: leaf ``leaf`` of what ``name`` gave."""

    name: str
    leaf: int = 0


@dataclass(frozen=True)
class Literal:
    """An array that a program contains: an index array, a mask, a closed-over operand."""

    dtype: str
    shape: tuple[int, ...]
    content: str = "tame"
    seed: int = 0
    layout: str = "plain"

    def array(self) -> np.ndarray:
        return values.make(self.dtype, self.shape, self.content, self.seed, self.layout)


@dataclass(frozen=True)
class Input(Literal):
    """An argument of a program."""

    name: str = ""


@dataclass(frozen=True)
class DType:
    """An element type as an argument."""

    name: str


@dataclass(frozen=True)
class Lambda:
    """A function as an argument. ``result`` is a structure of Refs."""

    parameters: tuple[str, ...]
    steps: tuple[Step, ...]
    result: Any


@dataclass(frozen=True)
class Step:
    name: str
    function: str
    args: tuple[Any, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Program:
    inputs: tuple[Input, ...] = ()
    steps: tuple[Step, ...] = ()
    outputs: tuple[Ref, ...] = ()

    def arrays(self) -> list[np.ndarray]:
        return [i.array() for i in self.inputs]

    def with_(self, **changes: Any) -> Program:
        return dataclasses.replace(self, **changes)


# --- walking ---------------------------------------------------------------------------------------------------------


def mapped(f: Callable[[Any], Any], x: Any) -> Any:
    """``x`` with every Ref, Literal, DType and Lambda in it replaced by ``f`` of it."""
    if isinstance(x, tuple):
        return tuple([mapped(f, e) for e in x])
    if isinstance(x, list):
        return [mapped(f, e) for e in x]
    if isinstance(x, dict):
        return {k: mapped(f, e) for k, e in x.items()}
    if isinstance(x, slice):
        return slice(mapped(f, x.start), mapped(f, x.stop), mapped(f, x.step))
    return f(x) if isinstance(x, (Ref, Literal, DType, Lambda)) else x


def refs(x: Any) -> Iterator[Ref]:
    """Every Ref in ``x``, in those of bodies too."""
    if isinstance(x, Ref):
        yield x
    elif isinstance(x, (tuple, list)):
        for e in x:
            yield from refs(e)
    elif isinstance(x, dict):
        yield from refs(list(x.values()))
    elif isinstance(x, slice):
        yield from refs((x.start, x.stop, x.step))
    elif isinstance(x, Lambda):
        yield from refs([s.args for s in x.steps])
        yield from refs([s.options for s in x.steps])
        yield from refs(x.result)
    elif isinstance(x, Step):
        yield from refs((x.args, x.options))


def renamed(x: Any, to: Callable[[Ref], Any]) -> Any:
    """``x`` with other values in the places of its Refs, in bodies too."""

    def change(e: Any) -> Any:
        if isinstance(e, Ref):
            return to(e)
        if isinstance(e, Lambda):
            return Lambda(e.parameters, tuple([renamed_step(s, to) for s in e.steps]), renamed(e.result, to))
        return e

    return mapped(change, x)


def renamed_step(s: Step, to: Callable[[Ref], Any]) -> Step:
    return Step(s.name, s.function, renamed(s.args, to), renamed(s.options, to))


def functions(steps: Sequence[Step]) -> Iterator[str]:
    """Names of all functions called, in bodies too."""
    for s in steps:
        yield s.function
        for x in (s.args, s.options):
            inner: list[Lambda] = []
            mapped(lambda e, inner=inner: inner.append(e) if isinstance(e, Lambda) else e, x)
            for body in inner:
                yield from functions(body.steps)


# --- running ---------------------------------------------------------------------------------------------------------


class World:
    """A library that runs programs: what a function's name means there, and what arrays are."""

    def function(self, name: str) -> Callable[..., Any]:
        raise NotImplementedError

    def array(self, a: np.ndarray) -> Any:
        return a

    def leaves(self, x: Any) -> list[Any]:
        return flat(x)


def flat(x: Any) -> list[Any]:
    """The leaves of tuples, lists and dicts (by sorted keys)."""
    if isinstance(x, (tuple, list)):
        return [y for e in x for y in flat(e)]
    if isinstance(x, dict):
        return [y for k in sorted(x) for y in flat(x[k])]
    return [] if x is None else [x]


Environment = dict[str, list[Any]]


def resolve(x: Any, env: Mapping[str, list[Any]], world: World) -> Any:
    """An argument as a library's function takes it."""

    def value(e: Any) -> Any:
        if isinstance(e, Ref):
            return env[e.name][e.leaf]
        if isinstance(e, DType):
            return values.dtype_of(e.name)
        if isinstance(e, Lambda):
            return lambda *args: call(e, args, env, world)
        return world.array(e.array())

    return mapped(value, x)


def call(f: Lambda, args: Sequence[Any], env: Mapping[str, list[Any]], world: World) -> Any:
    """A body on arguments, in the environment around it."""
    inner = {**env, **{p: world.leaves(a) for p, a in zip(f.parameters, args, strict=True)}}
    run_steps(f.steps, inner, world)
    return resolve(f.result, inner, world)


def run_step(s: Step, env: Environment, world: World) -> list[Any]:
    f = world.function(s.function)
    return world.leaves(f(*resolve(s.args, env, world), **{k: resolve(v, env, world) for k, v in s.options}))


def run_steps(steps: Sequence[Step], env: Environment, world: World) -> None:
    for s in steps:
        env[s.name] = run_step(s, env, world)


def function_of(p: Program, world: World, outputs: Sequence[Ref] | None = None) -> Callable[..., Any]:
    """The program as a function of its inputs that gives a list."""

    def program(*args: Any) -> list[Any]:
        env = {i.name: [a] for i, a in zip(p.inputs, args, strict=True)}
        run_steps(p.steps, env, world)
        return [env[r.name][r.leaf] for r in (p.outputs if outputs is None else outputs)]

    return program


# --- printing --------------------------------------------------------------------------------------------------------

LITERAL_ELEMENTS = 24  # up to which an array is written out


def array_source(a: Literal) -> str:
    """An expression for an array."""
    x = a.array()
    if x.size > LITERAL_ELEMENTS or a.layout not in ("plain", "read-only", "offset"):
        return f"make({a.dtype!r}, {a.shape!r}, {a.content!r}, {a.seed}, {a.layout!r})"
    kind = f"dtype_of({a.dtype!r})" if a.dtype == "bfloat16" else f"np.{a.dtype}" if a.dtype != "bool" else "bool"
    text = f"np.array({x.tolist()!r}, {kind})"
    return text if np.prod(x.shape) and np.array(x.tolist()).shape == x.shape else f"np.zeros({x.shape}, {kind})" if not x.size else text


@dataclass
class Printer:
    """Writes a program as Python. ``lines`` grow; bodies become functions above the line that uses them."""

    lines: list[str] = field(default_factory=list)
    bodies: int = 0
    indent: str = ""

    def text(self, x: Any) -> str:
        if isinstance(x, Ref):
            return f"{x.name}[{x.leaf}]"
        if isinstance(x, Literal):
            return array_source(x)
        if isinstance(x, DType):
            return f"dtype_of({x.name!r})"
        if isinstance(x, Lambda):
            return self.body(x)
        if isinstance(x, tuple):
            return "(" + "".join(self.text(e) + ", " for e in x).rstrip() + ")"
        if isinstance(x, list):
            return "[" + ", ".join(self.text(e) for e in x) + "]"
        if isinstance(x, dict):
            return "{" + ", ".join(f"{k!r}: {self.text(e)}" for k, e in x.items()) + "}"
        if isinstance(x, slice):
            return f"slice({self.text(x.start)}, {self.text(x.stop)}, {self.text(x.step)})"
        if isinstance(x, float) and not np.isfinite(x):
            return f"float({str(x)!r})"
        return "..." if x is Ellipsis else repr(x)

    def body(self, f: Lambda) -> str:
        self.bodies += 1
        name = f"body{self.bodies}"
        self.lines.append(f"{self.indent}def {name}({', '.join(f.parameters)}):")
        outer, self.indent = self.indent, self.indent + "    "
        for p in f.parameters:
            self.lines.append(f"{self.indent}{p} = flat({p})")
        self.steps(f.steps)
        self.lines.append(f"{self.indent}return {self.text(f.result)}")
        self.indent = outer
        return name

    def steps(self, steps: Sequence[Step]) -> None:
        for s in steps:
            arguments = [self.text(a) for a in s.args] + [f"{k}={self.text(v)}" for k, v in s.options]
            self.lines.append(f"{self.indent}{s.name} = flat({form_source(s.function, arguments)})")


def form_source(function: str, arguments: list[str]) -> str:
    module, _, name = function.partition(".")
    if module == "form":
        return f"form_{name}({', '.join(arguments)})"
    if module == "control":
        return f"hg.{name}({', '.join(arguments)})"
    return f"{'hnp' if module == 'numpy' else 'hg.' + module}.{name}({', '.join(arguments)})"


def source(p: Program, name: str = "program") -> str:
    """The program as a Python function, and its arguments as the list ``args``."""
    printer = Printer(indent="    ")
    printer.steps(p.steps)
    head = [f"def {name}({', '.join('i_' + i.name for i in p.inputs)}):", *[f"    {i.name} = [i_{i.name}]" for i in p.inputs]]
    outputs = ", ".join(f"{r.name}[{r.leaf}]" for r in p.outputs)
    arguments = [f"    {array_source(i)},  # {i.dtype}{list(i.shape)}, {i.content}, {i.layout}" for i in p.inputs]
    return "\n".join([*head, *printer.lines, f"    return [{outputs}]", "", "", "args = [", *arguments, "]"])
