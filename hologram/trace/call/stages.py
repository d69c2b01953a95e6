"""A call on its way to native code, to look at: Lowered, Compiled, Explanation."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from hologram.errors import ArgumentError
from hologram.ir.graph import Graph, text
from hologram.support.html import html_method
from hologram.support.user_lines import located
from hologram.trace import compiling, hooks, tree
from hologram.trace.call import cache_misses
from hologram.trace.call.signature import Call, Signature, name_of
from hologram.trace.call.specialisation import Specialisation
from hologram.trace.call.trace_call import Traced, holds, trace_call
from hologram.trace.checks import as_function
from hologram.trace.convert import given_array

OUTPUTS = ("tensor", "numpy")  # what the results of a jitted function are


class Lowered:
    """A traced call. ``graph`` is what was traced."""

    _repr_html_ = html_method("notebook.programs:lowered_html")

    def __init__(
        self,
        name: str,
        signature: Signature,
        call: Call,
        traced: Traced,
        precision: str,
        device: str | None,
        homes: tuple[str, ...],
        output: str = "tensor",
    ) -> None:
        self.name, self.graph, self.precision, self.device, self._homes = name, traced.graph, precision, device, homes
        self._signature, self._call, self._traced = signature, call, traced
        self._output = output
        self._compiled: Compiled | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """The values that symbolic extents have in this call."""
        return dict(self._call.sizes)

    def as_text(self, stage: str = "trace") -> str:
        """The program at ``stage``: trace, canonical, legalized, folded, groups, kernels, plan; on the CPU llvm and asm, on devices the name of their
        language; or after the compiler's pass of that name. Raises ValueError for another, which names them all."""
        return text(self.graph, lines=True) if stage == "trace" else self.compile().as_text(stage)

    def compile(self) -> Compiled:
        """The native program."""
        if self._compiled is None:
            executable: Any = compiling.compile_graph(self.graph, self.precision, self.device, self._homes, name=self.name)
            self._compiled = Compiled(self.name, self._signature, self._call, self._traced, executable, self._output)
        return self._compiled


class Compiled:
    """A compiled call; itself callable with arguments of the same signature."""

    _repr_html_ = html_method("notebook.programs:compiled_html")

    def __init__(self, name: str, signature: Signature, call: Call, traced: Traced, executable: Any, output: str = "tensor") -> None:
        self.name, self.executable, self._output = name, executable, output
        self._signature, self._key = signature, call.key
        self._run = Specialisation(executable, traced, [], cache_misses.Record(signature, call))

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Runs. Raises ArgumentError for arguments of another signature, or of sizes for which the program does not hold."""
        call = self._signature.flatten_call(args, options)
        if call.key != self._key:
            difference = cache_misses.explain(self.name, cache_misses.Record(self._signature, call), [self._run.record]).partition("because")[2]
            raise located(ArgumentError(f"{self.name} was compiled for another signature:{difference}"))
        if not holds(self._run.assumptions, call):
            sizes = ", ".join(f"{symbol} = {n}" for symbol, n in call.sizes.items())
            raise located(ArgumentError(f"{self.name} was compiled for sizes that its slices and indices fit, not {sizes}: call the jitted function"))
        made = self._run.run(call.leaves)
        return made if self._output == "tensor" else tree.map(given_array, made)

    def as_text(self, stage: str = "kernels") -> str:
        """The program at ``stage``: trace, canonical, legalized, folded, groups, kernels, plan; on the CPU llvm and asm, on devices the name of their
        language; or after the compiler's pass of that name. Raises ValueError for another, which names them all."""
        return self.executable.as_text(stage)

    def memory_analysis(self) -> Any:
        """The memory plan: for each buffer its page or offset, size and lifetime; the peak; the lower bound."""
        return self.executable.memory_analysis()

    def cost_analysis(self) -> Any:
        """Bytes moved and operations done."""
        return self.executable.cost_analysis()

    def reduction(self) -> Any:
        """Operations traced, canonical, and kernels launched, and how often each rewrite rule fired."""
        return self.executable.reduction()


class Explanation:
    """What became of a function's program: as text, as a page for a browser, as data."""

    _repr_html_ = html_method("notebook.programs:explanation_html")

    def __init__(self, lowered: Lowered) -> None:
        self.lowered, self.compiled = lowered, lowered.compile()

    def sections(self) -> list[tuple[str, Any]]:
        """The titles of its parts, and what each says."""
        sections: Mapping[str, Any] = {
            "traced": self.lowered.as_text("trace"),
            "placement": self.compiled.executable.placement,
            "canonical": self.compiled.as_text("canonical"),
            "computed once": self.compiled.executable.initializer,
            "kernels": self.compiled.as_text("kernels"),
            "reduction": self.compiled.reduction(),
            "memory": self.compiled.memory_analysis(),
            "cost": self.compiled.cost_analysis(),
        }
        return [(title, body) for title, body in sections.items() if body is not None]

    def __str__(self) -> str:
        return "\n\n".join([self.lowered.name, *[f"--- {title} ---\n{body}" for title, body in self.sections()]])

    __repr__ = __str__

    def data(self, profile: Any = None) -> dict[str, Any]:
        """All that the page shows, as plain data: see docs/report.md.

        ``profile``: measured times of this program, what ``hg.profile`` gives or its ``as_dict()``. Raises ArgumentError for what is none, or one of
        another program.
        """
        return hooks.report_data(self.lowered, profile)

    def json(self, path: str | os.PathLike[str], profile: Any = None) -> None:
        """Writes :meth:`data` as JSON."""
        hooks.write_report_data(path, self.data(profile))

    def html(self, path: str | os.PathLike[str], profile: Any = None) -> None:
        """Writes a page that needs nothing else and no network: graphs at each stage, what each rule did, kernels, the memory map, the roofline.
        Times are estimates where no ``profile`` is given.

        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "report.html")
        >>> hg.explain(lambda x: hnp.sum(x * x))(hnp.ones(3)).html(path)
        >>> path.read_text(encoding="utf-8")[:15]
        '<!doctype html>'
        """
        hooks.write_report(path, self.data(profile))


def make_graph(f: Callable[..., Any]) -> Callable[..., Graph]:
    """Traces a function: called as ``f`` would be, the result gives the graph of its ops. Nothing is computed.

    >>> print(hg.make_graph(lambda x: hnp.sum(x * x))(hnp.ones(3)))
    graph(%0: float32[3])
      %1 = mul %0 %0               float32[3]
      %2 = reduce_sum %1 axes=(0)  float32[]
      return %2
    """
    signature = Signature(as_function(f, "make_graph"), (), (), False)

    def graph_of(*args: Any, **options: Any) -> Graph:
        return trace_call(name_of(f), f, signature.flatten_call(args, options)).graph

    return graph_of
