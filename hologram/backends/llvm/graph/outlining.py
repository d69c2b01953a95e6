"""Outlining: a part of the graph function becomes a function of its own, which is called like a kernel."""

from __future__ import annotations

import re

from hologram.backends.llvm.abi import CANCELLED_AT
from hologram.backends.llvm.text import FunctionText, Reg

_DEFINED, _REGISTER = re.compile(r"  (%[\w.]+) = "), re.compile(r"%[A-Za-z_][\w.]*")

POLL_SHARED = f"""
define internal i64 @hg_poll_shared(ptr %ctx, ptr %scratch) #0 {{
  %own = load ptr, ptr %ctx, align 8
  %calls = icmp eq ptr %own, %scratch
  br i1 %calls, label %poll, label %look
poll:
  %status = call i64 @hg_poll(ptr %ctx)
  ret i64 %status
look:
  %at = getelementptr i8, ptr %ctx, i64 {CANCELLED_AT}
  %cancelled = load atomic i64, ptr %at monotonic, align 8
  ret i64 %cancelled
}}
"""  # the thread of the call handles signals, the others see what comes of it


class Outlined:
    """A function under construction that is called like a kernel; ``f`` is its text. What it names of the function around it comes in ``args``."""

    def __init__(self, name: str, outer: FunctionText) -> None:
        self.name, self.outer = name, outer
        self.f = FunctionText()
        self.f.counter, self.f.kept_rolled = outer.counter, outer.kept_rolled
        self.f.types.update(outer.types, **{"%ctx": "ptr", "%bufs": "ptr"})
        self.taken: list[str] = []

    def close(self) -> str:
        """The text of the function."""
        self.f.do("ret void")
        self.outer.counter = self.f.counter
        lines = [*self.f.entry, *self.f.lines]
        own = {m[1] for line in lines if (m := _DEFINED.match(line))} | {f"%{line[:-1]}" for line in lines if line.endswith(":")}
        own |= {"%entry", "%args", "%begin", "%end", "%scratch"}
        self.taken = sorted({name for line in lines for name in _REGISTER.findall(line)} - own)
        loads = []
        for i, name in enumerate(self.taken):
            loads += [f"  %at.{i} = getelementptr i64, ptr %args, i64 {i}", f"  {name} = load {self.f.types[name]}, ptr %at.{i}, align 8"]
        self.f.entry = [*loads, *self.f.entry]
        return self.f.text(f"define internal void @{self.name}(ptr noalias readonly %args, i64 %begin, i64 %end, ptr noalias %scratch) #0")

    def arguments(self) -> Reg:
        """What is handed over, in memory of the function around it."""
        place = Reg(self.outer.slot("i64", max(1, len(self.taken)), 8), "ptr", 1)
        for i, name in enumerate(self.taken):
            at = self.outer.emit(f"getelementptr i64, ptr {place.text}, i64 {i}", "ptr", 1)
            self.outer.do(f"store {self.f.types[name]} {name}, ptr {at.text}, align 8")
        return place
