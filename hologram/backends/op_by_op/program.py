"""A graph as steps of one op each, which run without any of it being compiled as a whole.

The graph is legalized as for kernels. So its nodes say which products are rounded with which sums, and which sums are cut, and each has one result,
bit for bit, whoever computes it (:mod:`hologram.graph.multiply_add`). NumPy computes those whose reference has the bits of every backend, by that
reference; :mod:`.ready_kernels` the others: mathematical functions, fused multiply-adds, sums of products, reductions, scans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from hologram.backends.base import NODE_BYTES
from hologram.backends.native import storage
from hologram.backends.op_by_op import ready_kernels
from hologram.backends.op_by_op.ready_kernels import Use, static_prod
from hologram.backends.op_by_op.transforms import TRANSFORMS, function_of_transform, is_transform
from hologram.graph.multiply_add import Product, factors_of, product_of
from hologram.graph.pass_manager import Context, run_passes
from hologram.graph.pipeline import LEGALIZE, canonicalise_but_for_order
from hologram.ir.aval import Aval, aval
from hologram.ir.devices import CPU, backend
from hologram.ir.graph import Graph
from hologram.ir.leaves import const
from hologram.ir.node import Builder, Node
from hologram.ir.op import Op
from hologram.ir.symbolic import substitute
from hologram.ir.traversal import topological
from hologram.primitives.iota import iota
from hologram.primitives.reductions import LAST, PAGE, reduce_sum
from hologram.primitives.scalar.composite import pair_dot
from hologram.primitives.scalar.elementwise import fused_mul
from hologram.settings import settings
from hologram.support.lru_cache import Recent

_BY_REFERENCE = ("movement", "gather", "elementwise")  # kinds whose references cost about what a kernel does
_ALONG_AXES = ("reduce", "scan")
_TERMS = (fused_mul, pair_dot)  # each is rounded with the sum that reads it

PREPARE_NS = 1e5  # that a graph takes to be split into steps, ...
REWRITE_NODE_NS = 1.2e5  # ... and each of its nodes, where rewrite rules change it
STEP_NS = 1000  # of a step, besides its elements
ELEMENT_NS = 0.5  # of an element, for each unit of its op's cost


class Step(NamedTuple):
    """One op: a function of arrays and attributes; or, where a result's type is given, of the addresses of operands and result, and sizes."""

    function: Callable[..., Any]
    operands: list[int]
    attrs: tuple[Any, ...]
    result: Aval | None


class OpByOp:
    """An executable of storages on the host. Values are numbered: arguments, constants, then what the steps compute. ``graph`` has the inputs and
    outputs of the graph that the steps compute, which is ``legal()``."""

    remote = False
    reusable: tuple[Any, ...] = ()  # no result takes the memory of an argument
    placement = None
    initializer = None
    long = False
    peepholes: Callable[[], Mapping[Any, Any]] | None = None  # what gives the steps of nodes that are the same in every expression

    def __init__(
        self,
        steps: list[Step],
        drafts: list[Draft],
        constants: list[Any],
        results: list[tuple[int, Aval]],
        ns: float,
        graph: Graph,
        legal: Callable[[], Graph],
        prepare_ns: float,
    ) -> None:
        self.steps, self.drafts, self.constant_storages, self.results, self._legal = steps, drafts, constants, results, legal
        self.n_inputs, self.outputs = len(graph.inputs), graph.outputs
        self.ns, self.prepare_ns = ns, prepare_ns  # about what a run takes, and making the program took
        self.constants: list[Any] = []  # that a call supplies
        self.nbytes = NODE_BYTES // 4 * len(steps)

    def run(self, inputs: Sequence[Any], donated: Any = None, sizes: Any = None) -> list[Any]:
        """Storages of the results. Raises OutOfMemory and MemoryError."""
        return run_steps(self.steps, [*inputs, *self.constant_storages], self.results)

    def replays(self, inputs: Sequence[Any]) -> None:
        """No call is captured."""

    def as_text(self, stage: str) -> str:
        """The legalized graph, whose nodes run one by one."""
        return str(self._legal())


def run_steps(steps: Iterable[Step], stores: list[Any], results: Iterable[tuple[int, Aval]]) -> list[Any]:
    """Storages of the results of steps on ``stores``, which are added to."""
    arrays: list[Any] = [None] * len(stores)
    view, empty = storage.view, storage.empty
    with np.errstate(all="ignore"):
        for function, operands, attrs, result in steps:
            if result is None:
                for i in operands:
                    if arrays[i] is None:
                        arrays[i] = view(stores[i])
                arrays.append(function(*[arrays[i] for i in operands], *attrs))
                stores.append(None)
                continue
            for i in operands:
                if stores[i] is None:
                    stores[i] = storage.copy_of(arrays[i])
            out = empty(result)
            function(*[stores[i].data for i in operands], out.data, *attrs)
            stores.append(out)
            arrays.append(None)
    return [_stored(stores[i], arrays[i], of) for i, of in results]


def _stored(found: Any, array: Any, of: Aval) -> Any:
    """The storage of a result; one of the type that it should have, of which it may be a reshaped one."""
    if found is not None and found.aval is of:
        return found
    return storage.copied(of, np.asarray(storage.view(found) if found is not None else array).reshape(of.shape))


def op_by_op(graph: Graph, max_ns: float) -> OpByOp | None:
    """The program of a graph of static shapes, in ``standard``; None where an op has no kernel for all sizes, or a run takes longer than ``max_ns``.

    Raises what the compiler raises for a kernel.
    """
    canonical = canonicalise_but_for_order(graph, "standard")
    legal = legalized(canonical)
    found = Drafts(legal.inputs)
    if not found.take_all(legal) or found.ns > max_ns:
        return None
    number = found.numbered(legal)
    results = [(number[x], aval(x.dtype, x.shape)) for x in legal.outputs]  # type: ignore[arg-type]
    prepare_ns = PREPARE_NS + (0 if canonical is graph else REWRITE_NODE_NS * len(graph.nodes()))
    steps, constants = [step_of(d, number) for d in found.drafts], constants_of(found.constants)
    return OpByOp(steps, found.drafts, constants, results, found.ns, legal, lambda: legal, prepare_ns)


def legalized(canonical: Graph) -> Graph:
    """A canonical graph in ops that have steps."""
    legal: Graph = run_passes(canonical, LEGALIZE, Context("standard", backend(CPU).tile))
    return legal


def constants_of(nodes: Iterable[Node]) -> list[Any]:
    """The storages of constants."""
    return [storage.of_bits(aval(x.dtype, ()), x.attrs[1]) for x in nodes]


class KnownStep(NamedTuple):
    """What a step is for every node of one op, with the same attributes, types and shapes: all but the numbers of its operands."""

    ns: float
    function: Callable[..., Any]
    attrs: tuple[Any, ...]
    result: Aval | None


KNOWN_LIMIT = 1024
_known_steps = Recent(KNOWN_LIMIT)
_PER_ELEMENT = ("elementwise", "movement")  # kinds whose steps are remembered


class Draft(NamedTuple):
    """A step whose kernel, if it takes one, is not compiled yet, unless the step is known."""

    node: Node
    operands: Sequence[Node]
    use: Use | KnownStep | None
    ns: float


class Drafts:
    """The steps of a graph, in order, and the constants that they read. Kernels are asked for when all nodes are known to have a step. ``sizes`` are
    the values of symbols for which the time of a run is told."""

    def __init__(self, inputs: Iterable[Node], sizes: Mapping[str, int] | None = None) -> None:
        self.constants: list[Node] = []
        self.drafts: list[Draft] = []
        self.ns = 0.0
        self._sizes = sizes
        self._known = set(inputs)
        self._build = Builder()

    def take_all(self, legal: Graph) -> bool:
        """Adds steps for what a legal graph needs; False where a node has none."""
        return self.take(topological(legal.outputs, stop=self.is_end) if "reduce" in legal.kinds() else legal.nodes())

    def numbered(self, legal: Graph) -> dict[Node, int]:
        """The numbers of the values: inputs, constants, what steps compute."""
        return {x: i for i, x in enumerate([*legal.inputs, *self.constants, *[d.node for d in self.drafts]])}

    def take(self, order: Iterable[Node]) -> bool:
        """Adds steps for nodes, inputs first; False where one has none."""
        return all(x in self._known or self._takes(x) for x in order)

    def is_end(self, x: Node) -> bool:
        """Whether a node has a step already, or takes other operands than its inputs."""
        return x in self._known or _terms(x) is not None

    def _takes(self, x: Node) -> bool:
        kind = x.op.kind
        known = _known_steps.get(_form(x)) if kind in _PER_ELEMENT and self._sizes is None else None
        if known is not None:
            return self._append(Draft(x, x.inputs, known, known.ns))
        if x.op is const:
            self.constants.append(x)
            self._known.add(x)
            return True
        if 0 in x.shape or x.op in _TERMS:
            return False
        if x.op in TRANSFORMS:
            self._known.add(x)  # whose one result has the step
            return True
        if is_transform(x):
            return self._add(x, x.inputs[0].inputs, None)
        if kind in _ALONG_AXES:
            product = _terms(x)
            return self._takes_along(x, x.inputs, None) if product is None else self._takes_sum(x, product)
        if kind == "elementwise" and not x.op.exact:
            return self._add(x, x.inputs, ready_kernels.elementwise(x))
        return (kind in _BY_REFERENCE or x.op is iota) and self._add(x, x.inputs, None)

    def _takes_sum(self, x: Node, product: Product) -> bool:
        """Adds a reduction of products that are not rounded, which reads their factors. Longer ones have an order of the kernel's."""
        n = static_prod([x.inputs[0].shape[a] for a in x.attrs[0]])
        if not isinstance(n, int) or n > PAGE:
            return False
        factors = factors_of(self._build, product, {f: f for f in product.node.inputs})
        if not any(f.shape for f in factors) or not self.take(topological(factors, stop=self.is_end)):
            return False
        return self._takes_along(x, factors, fused_mul)

    def _takes_along(self, x: Node, operands: Sequence[Node], term: Op | None) -> bool:
        named = dict(zip(x.op.attrs, x.attrs, strict=True))
        axes = named["axes"] if "axes" in named else (named["axis"],)
        if not axes or axes != tuple(range(axes[0], axes[-1] + 1)) or named.get("reverse") == LAST:
            return False
        return self._add(x, operands, ready_kernels.along_axes(x, axes, operands, term))

    def _add(self, x: Node, operands: Sequence[Node], use: Use | None) -> bool:
        return self._append(Draft(x, operands, use, _ns(x, self._sizes)))

    def _append(self, draft: Draft) -> bool:
        self.drafts.append(draft)
        self._known.add(draft.node)
        self.ns += draft.ns
        return True


def _ns(x: Node, sizes: Mapping[str, int] | None = None) -> float:
    """About what the step of a node takes, at sizes of its symbols."""
    counts: list[Any] = [static_prod(n.shape) for n in (x, *x.inputs)]
    if sizes is not None:
        counts = [substitute(n, sizes) for n in counts]
    return STEP_NS + ELEMENT_NS * x.op.cost * max(counts)


def operands_of(x: Node) -> tuple[Node, ...]:
    """What the step of a node reads: the factors of the products that it sums."""
    product = product_of(x.inputs[0]) if x.op is reduce_sum else None
    return x.inputs if product is None else product.node.inputs


def use_of(x: Node) -> Use:
    """The use of a kernel by a node that computes elements one by one, or reduces all of them."""
    if x.op.kind == "elementwise":
        return ready_kernels.elementwise(x)
    operands = operands_of(x)
    return ready_kernels.along_axes(x, x.attrs[0], operands, None if operands is x.inputs else fused_mul)


def ready_draft(x: Node) -> Draft | None:
    """The step of a node that computes elements one by one, moves them, or reduces all of them; None where a kernel would have to be compiled."""
    is_reduction, operands = x.op.kind == "reduce", operands_of(x)
    form = (*_form(x), *[(i.dtype, i.shape) for i in operands]) if is_reduction else _form(x)
    known: KnownStep | None = _known_steps.get(form)
    if known is None:
        use = use_of(x) if is_reduction or (x.op.kind == "elementwise" and not x.op.exact) else None
        if use is not None and not (ready_kernels.is_ready(use.signature) or (is_reduction and operands is x.inputs)):
            return None
        known = _found(x, use, _ns(x))
        if not is_reduction or known.result is not None:  # else a kernel may serve it later
            _known_steps.put(form, known)
    return Draft(x, operands, known, known.ns)


def _form(x: Node) -> tuple[Any, ...]:
    """What the step of a node depends on that computes elements one by one, or moves them."""
    return (settings.code, x.op, x.attrs, x.shape, *[(i.dtype, i.shape) for i in x.inputs])


def step_of(draft: Draft, number: Mapping[Node, int]) -> Step:
    x, operands = draft.node, [number[o] for o in draft.operands]
    use = draft.use
    if type(use) is not KnownStep:
        use = _found(x, use, draft.ns)  # type: ignore[arg-type]
        if x.op.kind in _PER_ELEMENT:
            _known_steps.put(_form(x), use)
    return Step(use.function, operands, use.attrs, use.result)


def _found(x: Node, use: Use | None, ns: float) -> KnownStep:
    if use is None:
        return KnownStep(ns, function_of(x), x.attrs, None)
    kernel = ready_kernels.kernel_of(use, x.op.exact)
    if kernel is None:
        return KnownStep(ns, x.op.reference, x.attrs, None)
    function, integers = kernel.at(use.sizes)
    return KnownStep(ns, function, integers, aval(x.dtype, x.shape))  # type: ignore[arg-type]


def clear() -> None:
    """Forgets all steps and kernels."""
    _known_steps.clear()
    ready_kernels.clear()


def function_of(node: Node) -> Callable[..., Any]:
    """What computes a node: its reference, the NumPy function that this wraps where it needs no wrapping, or the plan of a transform."""
    if is_transform(node):
        return function_of_transform(node)
    plain = getattr(node.op.reference, "plain", None)
    if isinstance(plain, np.ufunc) and not any(x.dtype.is_narrow_float or x.dtype.is_complex for x in node.inputs):
        found = plain.resolve_dtypes((*[x.dtype.np for x in node.inputs], None))
        if found[-1] == node.dtype.np and all(f == x.dtype.np for f, x in zip(found, node.inputs, strict=False)):
            return plain
    return node.op.reference


def _terms(node: Node) -> Product | None:
    """The unrounded products that a node reduces, with what moves them; None where it reduces a value."""
    if node.op.kind != "reduce":
        return None
    moves, x = [], node.inputs[0]
    while x.op.kind == "movement":
        moves.append(x)
        x = x.inputs[0]
    return Product(x, tuple(moves), False) if x.op is fused_mul else None


__all__ = ["Draft", "Drafts", "OpByOp", "Step", "clear", "op_by_op", "run_steps"]
