"""Kernel IR as text. Two kernels with the same text are the same kernel."""

from __future__ import annotations

from hologram.graph.kernel.ir import Acc, Accumulate, Buffer, Kernel, Loop, Prefetch, Stmt, Store, Value


class Names(dict[Value, str]):
    """Names of values. One that was not computed yet, in a malformed kernel, is ``?``."""

    def __missing__(self, v: Value) -> str:
        return "?"


def print_kernel(k: Kernel) -> str:
    """One line a statement; values are numbered in order."""
    names = Names()
    head = ", ".join(f"{b.name}: {b.dtype}[{b.size}] {b.role}" for b in k.params)
    lines = [f"kernel({head}{''.join(f', {s}: symbol' for s in k.symbols)})"]
    lines += [f"  scratch {b.name}: {b.dtype}[{b.size}]" for b in k.scratch]
    if k.ready is not None:
        lines.append(f"  ready {k.ready[0]}({', '.join(map(str, k.ready[1]))}) {k.iterations} times")
    _print_block(k.body, names, lines, 1)
    return "\n".join(lines) + "\n"


def _print_block(body: list[Stmt], names: Names, lines: list[str], depth: int) -> None:
    for s in body:
        lines.append("  " * depth + statement_text(s, names))
        if isinstance(s, Loop):
            _print_block(s.body, names, lines, depth + 1)


def loop_text(loop: Loop) -> str:
    """A loop in a list of loops: ``parallel p 172``."""
    return f"{loop.kind} {loop.var} {loop.extent}"


def statement_text(s: Stmt, names: Names) -> str:
    """``s`` as one line, a loop without its body; what it computes gets a name."""
    if isinstance(s, Loop):
        limit = "" if s.limit is None else f" below {s.limit}"
        accs = []
        for a in s.accs:
            names[a] = f"a{len(names)}"
            accs.append(f"{names[a]} = {a.op.name} {a.value_dtype} -> {a.dtype}")
        carry = f" with {', '.join(accs)}" if accs else ""
        shared = f" shared by {s.shared}" if s.shared != 1 else ""
        repeats = " repeating" if s.repeats else ""
        return f"{s.kind} {s.var} from {s.start} count {s.extent}{limit}{shared}{repeats}{carry}"
    if isinstance(s, Store):
        where = "" if s.mask is None else f" where {names[s.mask]}"
        return f"{s.buffer.name}[{s.index}] = {names[s.value]}{where}"
    if isinstance(s, Prefetch):
        return f"prefetch {s.buffer.name}[{s.index}]"
    if isinstance(s, Accumulate):
        return f"{names[s.acc]} <- {', '.join(names[a] for a in s.args)}"
    args = ", ".join([*(names[a] for a in s.args), *(_attr(a, names) for a in s.attrs)])
    names[s] = s.name or f"v{len(names)}"
    known = f"{' assumed' if s.assumed else ''}{'' if s.extent is None else f' below {s.extent}'}"
    return f"{names[s]} = {s.opname}({args}) : {s.dtype}{known}"


def _attr(x: object, names: Names) -> str:
    if isinstance(x, Buffer):
        return x.name
    if isinstance(x, Acc):
        return names[x]
    if isinstance(x, bytes):
        return "0x" + x[::-1].hex()
    return str(x)


Kernel.__str__ = print_kernel  # type: ignore[assignment, method-assign]
