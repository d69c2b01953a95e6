"""Programs that run op by op without Python: their steps as records for native code (:mod:`hologram.backends.native.code.steps`).

A ready kernel is called at its address. An op that NumPy computes by a ufunc is the ufunc's own inner loop for these types. A movement that NumPy
makes as a view is no step where the elements lie as before, and a strided copy elsewhere. For the other ops ready kernels are asked for.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from hologram.backends.native import storage
from hologram.backends.native.code.expression_records import Expression
from hologram.backends.native.code.records import LONG, Bound
from hologram.backends.native.code.records import Step as StepRecord
from hologram.backends.native.module import Record, module
from hologram.backends.native_lang.language import fields_of, size_of
from hologram.backends.op_by_op import ready_kernels
from hologram.backends.op_by_op.program import Draft, KnownStep, OpByOp, Step, use_of
from hologram.ir.aval import Aval
from hologram.ir.node import Node
from hologram.ir.op import Op, Shape
from hologram.primitives.movement import concatenate, reshape

CALL_NS = 100  # of a step, besides its elements
ELEMENT_NS = 0.25  # of an element, for each unit of its op's cost
_ALIGNMENT = 64  # of intermediates


class NativeProgram:
    """A program that runs op by op as :class:`hologram.backends.native.expressions.KnownExpressions` takes it: an executable whose code is that of
    all such programs, and whose ``steps`` are records."""

    remote = False
    long = False
    computes_all_results = True

    def __init__(self, steps: list[_Step], constants: list[Any], computed: list[Aval], intermediates: int, ns: float) -> None:
        self.address: int = module().address("hg_steps_graph")
        self.constants, self.computed, self.ns = constants, computed, ns
        self.n_steps = len(steps)
        scratch, self.parallel = 0, 0
        for form, _ in steps:
            scratch, self.parallel = max(scratch, form.arena_bytes), self.parallel | form.flags
        scratch = -(-scratch // _ALIGNMENT) * _ALIGNMENT  # of kernels, before what is between the steps
        self.arena_bytes = scratch + intermediates
        self._kept = [form.kept for form, _ in steps]
        self._table = _table(steps, scratch)
        self.steps: int = ctypes.addressof(self._table)
        self.record: Any = None  # the record Expression by which native code knows it

    @property
    def left(self) -> int:
        """How often native code may still run it."""
        return 0 if self.record is None else Record(Expression, ctypes.addressof(self.record)).left


class StepForm(NamedTuple):
    """What a step does, whatever the places of its operands and its result, for which ``args`` have zeros."""

    graph: int = 0
    loop: int = 0
    data: int = 0
    n_elements: int = 0
    result_at: int = 1
    args: tuple[int, ...] = (0, 0)
    strides: tuple[int, ...] = ()
    arena_bytes: int = 0
    flags: int = 0
    kept: Any = None
    n_sizes: int = 0  # of a kernel, among the arguments behind its result

    @property
    def is_nothing(self) -> bool:
        """Whether the result is where the operand is."""
        return not (self.graph or self.loop or self.strides)


_Step = tuple[StepForm, list[int]]  # with the places of operands and result: slots, or -1 - bytes behind what kernels have of the arena


def native_program(program: OpByOp, compiles: bool) -> NativeProgram | None:
    """The native form of a program; None where it has none, or needs a kernel that is not ready and ``compiles`` is false. Raises what the compiler
    raises for a kernel."""
    first = program.n_inputs + len(program.constant_storages)  # the number of the first step's value
    alias: dict[int, int] = {}
    constants: dict[int, Any] = {}  # Storages of the values of steps without operands
    found: list[tuple[StepForm, list[int], int, Node]] = []
    for number, (draft, step) in enumerate(zip(program.drafts, program.steps, strict=True), first):
        x, operands = draft.node, [alias.get(i, i) for i in step.operands]
        if not operands:
            constants[number] = storage.copy_of(step.function(*step.attrs))
            continue
        forms = _forms(draft, step, compiles)
        if forms is None:
            return None
        if len(forms) == 1 and forms[0].is_nothing:
            alias[number] = operands[0]
        elif x.op is concatenate:
            found += [(form, [i], number, x) for form, i in zip(forms, operands, strict=True)]
        else:
            found.append((forms[0], operands, number, x))
    wanted = [alias.get(i, i) for i, _ in program.results]
    end = first + len(program.steps)
    for r, (_, of) in enumerate(program.results):
        if wanted[r] < first or wanted[r] in constants or wanted[r] in wanted[:r]:  # an argument, or the same as another result: a copy
            found.append((_copy(of), [wanted[r]], end + r, program.outputs[r]))
            wanted[r] = end + r
    places = {i: i for i in range(first)}
    for i in (*constants, *wanted):
        places[i] = len(places)
    intermediates = _place_intermediates(found, places)
    ns = sum([CALL_NS + ELEMENT_NS * x.op.cost * _elements(x) for _, _, _, x in found])
    steps = [(form, [places[i] for i in (*operands, number)]) for form, operands, number, _ in found]
    supplied = [*program.constant_storages, *constants.values()]
    return NativeProgram(steps, supplied, [of for _, of in program.results], intermediates, ns)


def _forms(draft: Draft, step: Step, compiles: bool) -> Sequence[StepForm] | None:
    """What native code does for a step: for a concatenation of each operand, for others at once. None where it has no form."""
    x = draft.node
    if x.op is concatenate:
        return _parts(tuple([i.shape for i in x.inputs]), x.attrs[0], x.dtype.itemsize)
    if x.op.kind == "movement":
        form = _view(x.op, x.attrs, x.inputs[0].shape, x.dtype.np, x.shape) if len(x.inputs) == 1 else None
    else:
        form = _of_function(step.function, step.attrs, x) or (_with_kernel(draft) if compiles else None)
    return None if form is None else (form,)


def form_of(known: KnownStep, x: Node) -> StepForm | None:
    """What native code does for the step of a node; None where that is nothing, and as long as a kernel would be needed that few have asked for."""
    found = _of_function(known.function, known.attrs, x)
    if found is None and x.op.kind == "elementwise":
        use = ready_kernels.elementwise(x)
        kernel = ready_kernels.kernel_unless_rare(use.signature)
        found = None if kernel is None else _of_function(*kernel.at(use.sizes), x)
    return found


def _elements(x: Node) -> int:
    return max([ready_kernels.static_prod(n.shape) for n in (x, *x.inputs)])


def _place_intermediates(steps: Sequence[tuple[StepForm, list[int], int, Node]], places: dict[int, int]) -> int:
    """Adds the places of values that are neither slots nor results: memory is used again when the last reader is done. The bytes of all."""
    last = {i: at for at, (_, operands, _, _) in enumerate(steps) for i in operands}
    free: dict[int, list[int]] = {}
    sizes: dict[int, int] = {}
    end = 0
    for at, (_, operands, number, node) in enumerate(steps):
        if number not in places:
            nbytes = ready_kernels.static_prod(node.shape) * node.dtype.itemsize
            size = sizes[number] = -(-nbytes // _ALIGNMENT) * _ALIGNMENT
            start = free[size].pop() if free.get(size) else end
            end = max(end, start + size)
            places[number] = -1 - start
        for i in {*operands, number}:
            if i in sizes and last.get(i, at) == at:
                free.setdefault(sizes[i], []).append(-1 - places[i])
    return end


_HEAD = size_of(StepRecord) // 8
_FIELDS = tuple(fields_of(StepRecord))


def _table(steps: Sequence[_Step], scratch: int) -> Any:
    """The records :class:`StepRecord`, followed by their arrays of words."""
    total = sum([_HEAD + len(places) + len(form.args) + len(form.strides) for form, places in steps])
    made: Any = (ctypes.c_int64 * total)()
    start, at = ctypes.addressof(made), _HEAD * len(steps)
    heads: list[int] = []
    words: list[int] = []
    for form, places in steps:
        values = {"graph": form.graph, "loop": form.loop, "data": form.data, "count": form.n_elements}
        values["n_operands"], values["result_at"] = len(places) - 1, form.result_at
        values["places"] = start + 8 * at
        values["args"] = values["places"] + 8 * len(places)
        values["strides"] = values["args"] + 8 * len(form.args)
        heads += [values[name] for name in _FIELDS]
        words += [*[p if p >= 0 else p - scratch for p in places], *form.args, *form.strides]
        at = _HEAD * len(steps) + len(words)
    made[:] = heads + words
    return made


# --- steps -----------------------------------------------------------------------------------------------------------------------------------

FORM_LIMIT = 1024


def clear() -> None:
    """Forgets the forms of steps."""
    _of_kernel.cache_clear()
    _of_ufunc.cache_clear()
    _view.cache_clear()
    _parts.cache_clear()


def _of_function(function: Any, attrs: tuple[Any, ...], x: Node) -> StepForm | None:
    """The native form of what a step of Python calls; None where it is neither a kernel nor a ufunc."""
    if isinstance(function, np.ufunc):
        return _of_ufunc(function, tuple([i.dtype.np for i in x.inputs]), tuple([not i.shape for i in x.inputs]), x.dtype.np, x.shape)
    return _of_kernel(function, attrs) if isinstance(getattr(function, "__self__", None), tuple) else None


def _with_kernel(draft: Draft) -> StepForm | None:
    """A step by a ready kernel, which is compiled if there is none."""
    x = draft.node
    use = draft.use
    if x.op.kind == "elementwise" or isinstance(use, KnownStep):
        use = use_of(x) if x.op.kind in ("elementwise", "reduce") else None
    if not isinstance(use, ready_kernels.Use):
        return None
    return _of_function(*ready_kernels.kernel(use.signature).at(use.sizes), x)


@lru_cache(FORM_LIMIT)
def _of_kernel(function: Any, integers: tuple[int, ...]) -> StepForm:
    """A step by a kernel that :func:`hologram.backends.native.addresses.bind` has bound: its table, its constants, and what keeps its code."""
    bound = function.__self__
    record = Record(Bound, bound[0].data)
    constants, symbols = (_words(getattr(record, name), getattr(record, "n_" + name)) for name in ("constants", "symbols"))
    result_at = record.n_inputs + len(constants)
    args = (*[0] * record.n_inputs, *constants, 0, *integers, *symbols)
    return StepForm(
        record.graph, result_at=result_at, args=args, n_sizes=len(integers), arena_bytes=record.arena_bytes, flags=record.flags & ~LONG, kept=bound
    )


def _words(address: int, n: int) -> list[int]:
    return list((ctypes.c_int64 * n).from_address(address)) if n else []


@lru_cache(FORM_LIMIT)
def _of_ufunc(
    ufunc: np.ufunc, types: tuple[np.dtype[Any], ...], are_scalars: tuple[bool, ...], result: np.dtype[Any], shape: Shape
) -> StepForm | None:
    found = _loop(ufunc, "".join([t.char for t in types]) + "->" + result.char)
    if found is None:
        return None
    strides = [0 if is_scalar else t.itemsize for t, is_scalar in zip(types, are_scalars, strict=True)] + [result.itemsize]
    count = ready_kernels.static_prod(shape)
    return StepForm(0, *found, count, len(types), tuple([0] * len(strides)), tuple(strides), kept=ufunc)


class _Ufunc(ctypes.Structure):
    """The head of NumPy's PyUFuncObject, which is part of its ABI."""

    _fields_ = [
        ("refcount", ctypes.c_ssize_t),
        ("type", ctypes.c_void_p),
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
        ("reserved", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("types", ctypes.POINTER(ctypes.c_uint8)),
    ]


@cache
def _loop(ufunc: np.ufunc, types: str) -> tuple[int, int] | None:
    """The address of the inner loop of a ufunc for these types, and of its data; None where there is none, or where a ufunc does not look as
    expected."""
    head = _Ufunc.from_address(id(ufunc))
    if (head.nin, head.nout, head.nargs, head.ntypes) != (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes) or types not in ufunc.types:
        return None
    if head.name != ufunc.__name__.encode() or not head.functions or not head.types:
        return None
    at = ufunc.types.index(types)
    numbers = [np.dtype(c).num for c in types.replace("->", "")]
    if [head.types[at * ufunc.nargs + i] for i in range(ufunc.nargs)] != numbers or not head.functions[at]:
        return None
    return head.functions[at], (head.data[at] or 0) if head.data else 0


def _copy(of: Aval) -> StepForm:
    """A copy of all elements of a value that has some."""
    return _strided(of.dtype.itemsize, 0, (of.size,), (of.dtype.itemsize,))


def _strided(itemsize: int, start: int, extents: Sequence[int], strides: Sequence[int], to: int = 0, row: int | None = None) -> StepForm:
    """A copy of what lies at ``start`` bytes of the operand, to ``to`` bytes of the result, whose rows are ``row`` bytes apart, adjacent for None."""
    nbytes = itemsize * extents[-1] if row is None else row
    return StepForm(n_elements=math.prod(extents), strides=(itemsize, start, to, nbytes, len(extents), *extents, *strides))


@lru_cache(FORM_LIMIT)
def _parts(shapes: tuple[tuple[int, ...], ...], axis: int, itemsize: int) -> tuple[StepForm, ...]:
    """Copies of the operands of a concatenation into its result."""
    sizes = [itemsize * math.prod(shape[axis:]) for shape in shapes]
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    outer = math.prod(shapes[0][:axis])
    return tuple([_strided(itemsize, 0, (outer, n // itemsize), (n, itemsize), to, sum(sizes)) for n, to in zip(sizes, starts, strict=True)])


@lru_cache(FORM_LIMIT)
def _view(op: Op, attrs: tuple[Any, ...], source: tuple[int, ...], dtype: np.dtype[Any], shape: tuple[int, ...]) -> StepForm | None:
    """A movement as a strided copy, or as nothing where the elements lie as they did; None where NumPy makes no view of the operand."""
    array = np.empty(source, dtype)
    view = op.reference(array, *attrs) if source else array.reshape(shape) if op is reshape else np.broadcast_to(array, shape)
    if view.dtype != dtype or view.shape != shape or not np.may_share_memory(view, array):
        return None
    start = view.__array_interface__["data"][0] - array.__array_interface__["data"][0]
    if view.size == array.size and start == 0 and view.flags.c_contiguous:
        return StepForm()
    return _strided(dtype.itemsize, start, view.shape or (1,), view.strides or (0,))


__all__ = ["NativeProgram", "clear", "native_program"]
