"""How each framework runs a program of the loop benchmarks, by its best idiom and with default settings; JAX with 64-bit types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.frameworks import map_tree
from benchmarks.loop_programs.program import Program


class Traced(NamedTuple):
    """What the programs of Hologram and JAX are written against."""

    np: Any
    nn: Any
    jit: Callable[..., Any]
    array: Callable[..., Any]
    wait: Callable[..., Any]
    fori_loop: Callable[..., Any]
    while_loop: Callable[..., Any]
    scan: Callable[..., Any]
    cond: Callable[..., Any]
    vmap: Callable[..., Any]
    grad: Callable[..., Any]
    window: Callable[..., Any]  # of (array, starts, sizes)
    update: Callable[..., Any]  # of (array, window, starts)
    assign: Callable[..., Any]  # of (array, index, value): the array after array[index] = value
    planned: Callable[..., int]  # bytes of intermediates, of what ``memory_analysis`` gives


def of_hologram() -> Traced:
    import hologram as hg
    import hologram.numpy as hnp

    def assign(x: Any, index: int, value: Any) -> Any:
        x[index] = value
        return x

    loops = hg.fori_loop, hg.while_loop, hg.scan, hg.cond
    return Traced(
        hnp,
        hg.nn,
        hg.jit,
        hg.tensor,
        hg.block_until_ready,
        *loops,
        hg.vmap,
        hg.grad,
        hg.lax.dynamic_slice,
        hg.lax.dynamic_update_slice,
        assign,
        lambda of: of.peak,
    )


def of_jax() -> Traced:
    import jax
    import jax.numpy as jnp
    from jax import lax

    jax.config.update("jax_enable_x64", True)
    loops = lax.fori_loop, lax.while_loop, lax.scan, lax.cond
    window, update = lax.dynamic_slice, lax.dynamic_update_slice
    assign = jax.jit(lambda x, index, value: x.at[index].set(value), donate_argnums=0)  # arrays are constant: the next best is to donate
    return Traced(
        jnp, jax.nn, jax.jit, jnp.array, jax.block_until_ready, *loops, jax.vmap, jax.grad, window, update, assign, lambda of: of.temp_size_in_bytes
    )


class Prepared:
    """A program with its arguments, ready to be called. The first results replace the arguments that the call before had for itself."""

    def __init__(self, run: Callable[..., Any], program: Program, arguments: tuple[Any, ...], plan: Callable[..., int] | None = None) -> None:
        self.run, self.plan, self.donated = run, plan, program.donated
        self.arguments = arguments
        self.bytes_planned: int | None = None

    def __call__(self) -> Any:
        results = self.run(*self.arguments)
        if self.donated:
            state = results[: self.donated] if isinstance(results, (tuple, list)) else (results,)
            self.arguments = (*state, *self.arguments[self.donated :])
        return results

    def planned(self) -> int | None:
        """Bytes of intermediates, where the framework plans them."""
        if self.bytes_planned is None and self.plan:
            self.bytes_planned = self.plan(*self.arguments)
        return self.bytes_planned


def _traced(f: Traced, program: Program, arguments: tuple[Any, ...]) -> Prepared:
    static = tuple(i for i, a in enumerate(arguments) if isinstance(a, int))
    given = tuple(a if isinstance(a, int) else map_tree(f.array, a) for a in arguments)
    if program.eager:
        return Prepared(lambda *args: program.traced(f, *args), program, given)

    def text(*args: Any) -> Any:
        return program.traced(f, *args)

    run = f.jit(text, static_argnums=static, donate_argnums=tuple(range(program.donated)))
    return Prepared(lambda *args: f.wait(run(*args)), program, given, lambda *args: f.planned(run.lower(*args).compile().memory_analysis()))


def hologram(program: Program, arguments: tuple[Any, ...]) -> Prepared:
    return _traced(of_hologram(), program, arguments)


def jax(program: Program, arguments: tuple[Any, ...]) -> Prepared:
    return _traced(of_jax(), program, arguments)


def numba(program: Program, arguments: tuple[Any, ...], parallel: bool = False) -> Prepared:
    import numba

    assert program.numba is not None
    return Prepared(program.numba if program.eager else numba.njit(parallel=parallel)(program.numba), program, arguments)


def numba_parallel(program: Program, arguments: tuple[Any, ...]) -> Prepared:
    return numba(program, arguments, parallel=True)


def numpy(program: Program, arguments: tuple[Any, ...]) -> Prepared:
    """The reference; it leaves its arguments as they are."""
    return Prepared(program.reference, program, arguments)


REFERENCE = numpy.__name__
FRAMEWORKS: dict[str, Callable[[Program, tuple[Any, ...]], Prepared]] = {f.__name__: f for f in (hologram, jax, numba, numba_parallel, numpy)}
MODULES = {name: name.split("_")[0] for name in FRAMEWORKS}  # what each of them imports


def runs(framework: str, program: Program) -> bool:
    return program.numba is not None and (framework == "numba" or program.parallel) if MODULES[framework] == "numba" else True


def as_arrays(tree: Any) -> list[np.ndarray]:
    """The leaves of tuples and lists of arrays and numbers."""
    return [a for t in tree for a in as_arrays(t)] if isinstance(tree, (list, tuple)) else [np.asarray(tree)]


def compared(program: Program, arguments: tuple[Any, ...], result: Any) -> list[np.ndarray]:
    """What of a result is compared with the reference."""
    arrays = as_arrays(result)
    return arrays if program.compared is None else [program.compared(arrays[0], *arguments)]


def agree(program: Program, found: list[np.ndarray], expected: list[np.ndarray]) -> bool:
    """Whether all elements do, to the program's tolerance, relative to the largest of an array; integers exactly."""
    pairs = list(zip(found, expected, strict=False))
    return len(found) == len(expected) and all(_close(a, b, program.tolerance) for a, b in pairs)


def _close(found: np.ndarray, expected: np.ndarray, tolerance: float) -> bool:
    if found.shape != expected.shape or (expected.ndim and found.dtype != expected.dtype):  # Numba's scalars are Python's
        return False
    if expected.dtype.kind in "iub":
        return bool((found == expected).all())
    finite = np.abs(expected[np.isfinite(expected)])
    return bool(np.allclose(found, expected, rtol=tolerance, atol=tolerance * finite.max(initial=1e-300), equal_nan=True))
